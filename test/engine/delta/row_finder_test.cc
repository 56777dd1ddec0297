#include "engine/delta/row_finder.h"

#include <boost/test/unit_test.hpp>
#include <set>

#include "test/engine/delta/delta_model.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(row_finder_test)
namespace {

using Keys = std::vector<std::string>;

// Searches every key, and others near it.
void Check(std::set<std::string> set) {
  const Keys keys(set.begin(), set.end());
  const RowTable table = MakeRowTable(keys);
  Keys probes = {"", std::string(1, '\0'), "\xff\xff\xff\xff\xff\xff\xff\xff\xff", "k"};
  auto random = TestRandom(keys.size());
  const size_t step = keys.size() / 3000 + 1;
  for (size_t i = 0; i < keys.size(); i += step) {
    const std::string& key = keys[i];
    probes.push_back(key);
    probes.push_back(key + '\0');
    if (key.empty()) continue;
    probes.push_back(key.substr(0, key.size() - 1));
    probes.push_back(key.substr(0, random() % key.size()));
    std::string changed = key;
    ++changed[random() % changed.size()];
    probes.push_back(changed);
    changed = key;
    --changed[random() % changed.size()];
    probes.push_back(changed);
  }
  for (int threads : {1, 3}) {
    const auto finder = RequireOk(RowFinder::Build(table, threads));
    for (bool sorted : {false, true}) {
      if (sorted) {
        std::sort(probes.begin(), probes.end());
      } else {
        std::shuffle(probes.begin(), probes.end(), random);
      }
      const std::vector<std::string_view> views(probes.begin(), probes.end());
      std::vector<RowPlace> places(views.size());
      RequireOk(finder->Places(views, absl::MakeSpan(places)));
      size_t wrong = 0;
      for (size_t i = 0; i < places.size(); ++i) {
        const auto at = std::lower_bound(keys.begin(), keys.end(), probes[i]);
        wrong += places[i].rank != static_cast<RowId>(at - keys.begin());
        wrong += places[i].found != (at != keys.end() && *at == probes[i]);
        wrong += places[i].primary_key != probes[i];
      }
      BOOST_TEST(wrong == 0u);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(numbers_of_fixed_width) {
  for (size_t count : {0, 1, 15, 16, 17, 1024, 1025, 100000}) {
    std::set<std::string> keys;
    for (size_t i = 0; i < count; ++i) keys.insert("row/" + std::to_string(10000000 + i * 3));
    Check(keys);
  }
}

BOOST_AUTO_TEST_CASE(random_bytes_and_lengths, *StartsNoThread()) {
  auto random = TestRandom();
  for (int alphabet : {2, 256}) {
    for (size_t longest : {1, 5, 9, 40}) {
      std::set<std::string> keys;
      for (size_t i = 0; i < 20000; ++i) {
        std::string key(random() % (longest + 1), '\0');
        for (char& c : key) c = static_cast<char>(random() % alphabet);
        keys.insert(key);
      }
      Check(keys);
    }
  }
}

BOOST_AUTO_TEST_CASE(many_blocks_begin_alike, *StartsNoThread()) {
  auto random = TestRandom();
  std::set<std::string> keys;
  for (size_t i = 0; i < 60000; ++i) {
    keys.insert("tenant-0" + std::to_string(random() % 3) + "/the same for all of them/" +
                std::to_string(random() % 1000000));
  }
  Check(keys);
  for (size_t i = 0; i < 100; ++i) keys.insert("z" + std::to_string(i));
  Check(keys);
  // Strings of zero bytes of different lengths.
  keys.clear();
  for (size_t i = 0; i < 300; ++i) keys.insert("p" + std::string(i, '\0'));
  Check(keys);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
