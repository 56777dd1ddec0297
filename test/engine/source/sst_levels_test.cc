#include "engine/source/sst_levels.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "test/engine/source/source_test.h"
#include "test/engine/source/sst_files.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(sst_levels_test)
namespace {

BOOST_AUTO_TEST_CASE(levels_are_few_and_newer_files_lie_above) {
  std::mt19937_64 random = TestRandom();
  for (int round = 0; round < 200; ++round) {
    std::vector<SstFile> files(1 + random() % 30);
    const SstOrigin origin = round % 2 == 0 ? SstOrigin::kWriter : SstOrigin::kDatabase;
    for (SstFile& file : files) {
      file.origin = origin;
      file.smallest = AdversarialKey(&random);
      file.largest = AdversarialKey(&random);
      if (file.largest < file.smallest) std::swap(file.smallest, file.largest);
      if (origin == SstOrigin::kWriter && random() % 10 == 0) {
        file.range_deletions = 1;
        file.smallest = "";
        file.largest = std::string(4000, '\xFF');
      }
    }
    const SstLevels levels = RequireOk(ArrangeSstFiles(files));
    size_t max_at_a_key = 1;
    for (size_t i = 0; i < files.size(); ++i) {
      BOOST_TEST(levels.level[i] >= 1);
      BOOST_TEST(levels.level[i] <= levels.depth);
      size_t at_key = 0;
      for (size_t j = 0; j < files.size(); ++j) {
        at_key += files[j].smallest <= files[i].smallest && files[i].smallest <= files[j].largest;
        if (j <= i || files[i].largest < files[j].smallest ||
            files[j].largest < files[i].smallest) {
          continue;
        }
        BOOST_TEST(levels.level[i] != levels.level[j]);
        if (origin == SstOrigin::kWriter) BOOST_TEST(levels.level[j] < levels.level[i]);
      }
      max_at_a_key = std::max(max_at_a_key, at_key);
    }
    if (origin == SstOrigin::kDatabase) {
      BOOST_TEST(static_cast<size_t>(levels.depth) == max_at_a_key);
      BOOST_TEST(levels.overlapping_database_files == (levels.depth > 1));
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
