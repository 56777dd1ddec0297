#include "engine/delta/change_log.h"

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "index/query/physical_key.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(change_log_test)
namespace {

using Place = std::shared_ptr<const ChangeLog::Place>;
using States = std::map<RowId, std::vector<std::string>>;  // row -> keys

KeysOfRows Changes(const std::vector<std::pair<RowId, std::vector<std::string>>>& states) {
  KeysOfRows changes(PhysicalType::kBytes);
  for (const auto& [row, keys] : states) {
    for (const std::string& key : keys) changes.keys.AppendBytes(key);
    changes.EndRow(row);
  }
  return changes;
}

States Between(const Place& since, const Place& until) {
  const KeysOfRows changes = ChangeLog::Between(*since, *until, PhysicalType::kBytes);
  BOOST_TEST(std::is_sorted(changes.rows.begin(), changes.rows.end()));
  States states;
  for (size_t i = 0; i < changes.rows.size(); ++i) {
    auto& keys = states[changes.rows[i]];
    for (uint64_t k = changes.KeysBegin(i); k < changes.key_ends[i]; ++k) {
      keys.emplace_back(changes.keys.bytes(k));
    }
  }
  BOOST_TEST(states.size() == changes.rows.size());
  BOOST_TEST(ChangeLog::MostRowsBetween(*since, *until) >= states.size());
  return states;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_row_has_its_last_state_in_between) {
  const Place begin = ChangeLog::Begin();
  const Place first = ChangeLog::Append(*begin, Changes({{9, {"x"}}, {3, {"a", "b"}}}));
  const Place second = ChangeLog::Append(*first, Changes({{3, {}}, {4, {"c"}}}));
  BOOST_TEST((Between(begin, first) == States{{3, {"a", "b"}}, {9, {"x"}}}));
  BOOST_TEST((Between(begin, second) == States{{3, {}}, {4, {"c"}}, {9, {"x"}}}));
  BOOST_TEST((Between(first, second) == States{{3, {}}, {4, {"c"}}}));
  BOOST_TEST(Between(second, second).empty());
  BOOST_TEST(begin->IsUpTo(*second));
  BOOST_TEST(second->IsUpTo(*second));
  BOOST_TEST(!second->IsUpTo(*begin));
  BOOST_TEST(!begin->IsUpTo(*ChangeLog::Begin()));
}

BOOST_AUTO_TEST_CASE(what_nobody_can_ask_for_is_dropped) {
  Place since = ChangeLog::Begin();
  Place last = since;
  const std::string key(1000, 'k');
  for (RowId row = 0; row < 100; ++row) last = ChangeLog::Append(*last, Changes({{row, {key}}}));
  BOOST_TEST(last->memory_bytes() > 100'000u);
  BOOST_TEST(Between(since, last).size() == 100u);
  since = last;
  BOOST_TEST(last->memory_bytes() == 0u);
  last = ChangeLog::Append(*last, Changes({{7, {key}}}));
  BOOST_TEST(Between(since, last).size() == 1u);
  BOOST_TEST(last->memory_bytes() < 2000u);
}

BOOST_AUTO_TEST_CASE(hot_rows_take_room_once) {
  const Place since = ChangeLog::Begin();
  Place last = since;
  uint64_t most = 0;
  for (int i = 0; i < 20'000; ++i) {
    last = ChangeLog::Append(*last, Changes({{static_cast<RowId>(i % 10), {std::to_string(i)}}}));
    most = std::max(most, last->memory_bytes());
  }
  BOOST_TEST(most < 2000u);
  const States states = Between(since, last);
  BOOST_TEST(states.size() == 10u);
  BOOST_TEST(states.at(3).front() == "19993");
}

BOOST_AUTO_TEST_CASE(what_is_truncated_never_was) {
  const Place begin = ChangeLog::Begin();
  const Place kept = ChangeLog::Append(*begin, Changes({{1, {"a"}}}));
  Place gone = ChangeLog::Append(*kept, Changes({{2, {"b"}}}));
  ChangeLog::Truncate(*kept);
  const Place next = ChangeLog::Append(*kept, Changes({{3, {"c"}}}));
  gone = nullptr;  // a version with a slightly longer lifetime
  BOOST_TEST((Between(begin, next) == States{{1, {"a"}}, {3, {"c"}}}));
  BOOST_TEST((Between(kept, next) == States{{3, {"c"}}}));
}

// Compared with a list of all appended steps.
BOOST_AUTO_TEST_CASE(random_places_agree_with_a_list) {
  auto random = TestRandom();
  std::vector<States> all;  // of the step to each place
  std::vector<std::pair<size_t, Place>> places = {{0, ChangeLog::Begin()}};  // steps before it
  for (int i = 0; i < 5000; ++i) {
    const auto at = [&] {
      return places.begin() + static_cast<ptrdiff_t>(random() % places.size());
    };
    switch (random() % 10) {
      case 0: {  // a version, but not the last one, is released
        const auto gone = at();
        if (gone + 1 != places.end()) places.erase(gone);
        break;
      }
      case 1: {  // back to a version
        places.erase(at() + 1, places.end());
        ChangeLog::Truncate(*places.back().second);
        all.resize(places.back().first);
        break;
      }
      case 2: {
        auto from = at(), to = at();
        if (to < from) std::swap(from, to);
        States expected;
        for (size_t step = from->first; step < to->first; ++step) {
          for (const auto& [row, keys] : all[step]) expected[row] = keys;
        }
        BOOST_REQUIRE((Between(from->second, to->second) == expected));
        break;
      }
      default: {
        std::vector<std::pair<RowId, std::vector<std::string>>> states;
        RowId row = static_cast<RowId>(random() % 50);
        for (uint64_t rows = 1 + random() % 20; rows > 0; --rows, row += 1 + random() % 9) {
          states.push_back({row, {}});
          for (uint64_t k = random() % 3; k > 0; --k) {
            states.back().second.push_back(std::to_string(random() % 100));
          }
        }
        std::shuffle(states.begin(), states.end(), random);
        all.emplace_back(states.begin(), states.end());
        Place next = ChangeLog::Append(*places.back().second, Changes(states));
        if (random() % 4 != 0 && places.size() > 1) places.pop_back();  // the last reference
        places.emplace_back(all.size(), std::move(next));
      }
    }
  }
}

// Creates and releases versions while others are appended and read; also for ThreadSanitizer.
BOOST_AUTO_TEST_CASE(places_come_and_go_on_other_threads) {
  std::mutex mutex;
  const Place begin = ChangeLog::Begin();
  Place last = begin;  // guarded by mutex
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&, reader] {
      Place mine = begin;
      while (!done) {
        Place now;
        {
          const std::lock_guard<std::mutex> lock(mutex);
          now = last;
        }
        const KeysOfRows changes = ChangeLog::Between(*mine, *now, PhysicalType::kU64);
        for (size_t i = 0; i < changes.rows.size(); ++i) {
          if (changes.keys.u64(i) % 100 != changes.rows[i]) ++wrong;
        }
        if (reader > 0) mine = std::move(now);
      }
    });
  }
  Place at = begin;
  for (uint64_t i = 0; i < 30'000; ++i) {
    KeysOfRows changes(PhysicalType::kU64);
    changes.keys.AppendU64(i);
    changes.EndRow(static_cast<RowId>(i % 100));
    at = ChangeLog::Append(*at, std::move(changes));
    const std::lock_guard<std::mutex> lock(mutex);
    last = at;
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
