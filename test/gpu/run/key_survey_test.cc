#include "gpu/run/key_survey.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "test/test_random.h"

// Surveys on the host; needs no device. Those of a device are checked against them
// (packed_size_test).
namespace cairn::gpu {
BOOST_AUTO_TEST_SUITE(key_survey_test)
namespace {

template <typename Key>
void Check(const std::string& name, std::vector<Key> keys) {
  std::sort(keys.begin(), keys.end());
  BOOST_TEST_CONTEXT(name << ", " << keys.size() << " keys of " << 8 * sizeof(Key) << " bits") {
    for (int threads : {1, 4}) {
      const KeySurvey<Key> survey = SurveyOnHost<Key>(keys, threads);
      BOOST_TEST(survey.least == keys.front());
      BOOST_TEST(survey.greatest == keys.back());
      BOOST_TEST(survey.rows_ascend);
      const std::multiset<Key> all(keys.begin(), keys.end());
      size_t most = 0;
      for (size_t i = 0; i < keys.size(); i += most) {
        const size_t count = all.count(keys[i]);
        if (count > KeySurvey<Key>::kLongRun) {
          most = count;
          break;
        }
        most = count;
      }
      BOOST_TEST(survey.has_long_run == (most > KeySurvey<Key>::kLongRun));
      BOOST_TEST(survey.distinct == std::set<Key>(keys.begin(), keys.end()).size());
      for (int width = 0; width < KeySurvey<Key>::kWidths; ++width) {
        const size_t bits = 16 * (static_cast<size_t>(width) + 1);
        std::set<Key> blocks;
        size_t gaps = 0;
        if (bits < 8 * sizeof(Key)) {
          for (Key key : keys) blocks.insert(key >> bits);
          for (Key block : blocks) gaps += block != 0 && !blocks.contains(block - 1) ? 1 : 0;
        }
        BOOST_TEST(survey.blocks[width] == blocks.size());
        BOOST_TEST(survey.gaps[width] == gaps);
      }
    }
  }
}

template <typename Key>
void CheckAll() {
  constexpr Key kMax = std::numeric_limits<Key>::max();
  auto random = TestRandom(51);
  const auto drawn = [&](size_t size, auto draw) {
    std::vector<Key> keys(size);
    for (Key& key : keys) key = static_cast<Key>(draw());
    return keys;
  };
  Check<Key>("zero", {0});
  Check<Key>("the greatest", {kMax});
  Check<Key>("both ends", {0, 0, kMax, kMax});
  Check<Key>("around a block", {65535, 65536, 65537, 131072});
  Check("equal", std::vector<Key>(1000, 77));
  Check("even", drawn(50000, random));
  Check("repeating", drawn(50000, [&] { return random() % 1000 << 12; }));
  // Several parts, with a key that goes across the end of one.
  std::vector<Key> dense(1200000);
  for (size_t i = 0; i < dense.size(); ++i) dense[i] = static_cast<Key>(i / 3);
  Check("dense", std::move(dense));
}

BOOST_AUTO_TEST_CASE(counts_keys_blocks_and_gaps) {
  CheckAll<uint32_t>();
  CheckAll<uint64_t>();
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
