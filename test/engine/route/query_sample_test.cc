#include "engine/route/query_sample.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>
#include <string>
#include <vector>

#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(query_sample_test, *StartsNoThread())
namespace {

int64_t NoTime() {
  return 0;
}

std::vector<RowId> Rows(size_t n) {
  std::vector<RowId> rows(n);
  for (size_t i = 0; i < n; ++i) rows[i] = static_cast<RowId>(i);
  return rows;
}

// Entry i has the key 3 i + 1.
SortedRun RunOfU32(size_t n) {
  std::vector<uint32_t> keys(n);
  for (size_t i = 0; i < n; ++i) keys[i] = static_cast<uint32_t>(3 * i + 1);
  return *SortedRun::FromSorted(absl::MakeConstSpan(keys), Rows(n));
}

bool IsKey(uint32_t key, size_t n) {
  return key % 3 == 1 && key / 3 < n;
}

BOOST_AUTO_TEST_CASE(keys_are_the_runs_and_come_from_all_of_it) {
  constexpr size_t kEntries = 1 << 20;
  const SortedRun run = RunOfU32(kEntries);
  QuerySample sample(run, NoTime);
  BOOST_TEST(sample.size() == QuerySample::kMaxKeys);
  const KeyBatch keys = sample.Next(QuerySample::kMaxKeys);
  std::vector<size_t> sixteenths(16);
  for (const uint32_t key : keys.u32()) {
    if (!IsKey(key, kEntries)) BOOST_ERROR("no key: " << key);
    ++sixteenths[key / 3 / (kEntries / 16)];
  }
  for (const size_t share : sixteenths) BOOST_TEST(share > QuerySample::kMaxKeys / 20);
  BOOST_TEST(!std::is_sorted(keys.u32().begin(), keys.u32().end()));
}

BOOST_AUTO_TEST_CASE(batches_take_turns_through_all_keys) {
  const SortedRun run = RunOfU32(size_t{1} << 24);
  QuerySample sample(run, NoTime);
  std::set<uint32_t> seen;
  for (size_t i = 0; i < QuerySample::kMaxKeys / 64; ++i) {
    for (const uint32_t key : sample.Next(64).u32()) seen.insert(key);
  }
  BOOST_TEST(seen.size() > QuerySample::kMaxKeys * 99 / 100);
}

BOOST_AUTO_TEST_CASE(a_batch_of_more_keys_than_were_drawn_has_them_again) {
  const SortedRun run = RunOfU32(1 << 20);
  QuerySample sample(run, NoTime);
  const size_t count = 3 * QuerySample::kMaxKeys + 5;
  const KeyBatch keys = sample.Next(count);
  BOOST_TEST(keys.size() == count);
  for (size_t i = QuerySample::kMaxKeys; i < count; ++i) {
    if (keys.u32()[i] != keys.u32()[i - QuerySample::kMaxKeys]) BOOST_ERROR("at " << i);
  }
  const RangeBatch ranges = sample.NextRanges(count + 1);
  for (size_t i = 0; i < ranges.size(); ++i) {
    const size_t lower = ranges.lower.u32()[i] / 3, upper = ranges.upper.u32()[i] / 3;
    if (upper != std::min(lower + QuerySample::kRangeEntries, run.size() - 1)) {
      BOOST_ERROR("range " << i << ": " << lower << " to " << upper);
    }
  }
}

BOOST_AUTO_TEST_CASE(ascending_keys_are_as_dense_as_in_the_batch_that_they_stand_for) {
  constexpr size_t kEntries = 1 << 20;
  const SortedRun run = RunOfU32(kEntries);
  QuerySample sample(run, NoTime);
  for (const size_t of : {size_t{1024}, size_t{1} << 14, size_t{1} << 20, size_t{1} << 24}) {
    std::set<uint32_t> starts;
    for (int round = 0; round < 4; ++round) {
      const KeyBatch keys = sample.NextAscending(1024, of);
      BOOST_TEST(keys.size() == 1024);
      BOOST_TEST(std::is_sorted(keys.u32().begin(), keys.u32().end()));
      for (const uint32_t key : keys.u32()) {
        if (!IsKey(key, kEntries)) BOOST_ERROR("no key: " << key);
      }
      const size_t window = kEntries * 1024 / of;
      const size_t span = (keys.u32().back() - keys.u32().front()) / 3;
      BOOST_TEST(span < window);
      BOOST_TEST(span + 2 * window / 1024 + 1 >= window);
      starts.insert(keys.u32().front());
    }
    BOOST_TEST(starts.size() > 1);  // another part of the run each time
  }
}

BOOST_AUTO_TEST_CASE(keys_of_bytes_are_copies) {
  std::vector<std::string> texts;
  for (int i = 0; i < 10'000; ++i)
    texts.push_back(std::string("key ") + std::to_string(100'000 + i));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const SortedRun run = *SortedRun::FromSorted(absl::MakeConstSpan(views), Rows(views.size()));
  QuerySample sample(run, NoTime);
  for (const KeyBatch& keys : {sample.Next(100'000), sample.NextAscending(500, 5000)}) {
    for (const std::string_view key : keys.bytes()) {
      if (!std::binary_search(texts.begin(), texts.end(), key)) BOOST_ERROR("no key: " << key);
      const char* const heap = run.bytes().heap();
      if (key.data() >= heap && key.data() < heap + run.bytes().offset(run.size())) {
        BOOST_ERROR("the run's own bytes");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(long_keys_are_drawn_fewer_times) {
  std::vector<std::string> texts;
  for (int i = 0; i < 16; ++i) texts.push_back(std::string(100'000, static_cast<char>('a' + i)));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const SortedRun run = *SortedRun::FromSorted(absl::MakeConstSpan(views), Rows(views.size()));
  QuerySample sample(run, NoTime);
  BOOST_TEST(sample.size() > 0);
  BOOST_TEST(sample.size() <= 128);
  BOOST_TEST(sample.Next(1000).size() == 1000);
}

// Bytes of memory of the keys; duplicates count once.
uint64_t MemoryOf(absl::Span<const std::string_view> keys) {
  std::set<const char*> seen;
  uint64_t bytes = 0;
  for (const std::string_view key : keys) {
    if (seen.insert(key.data()).second) bytes += key.size();
  }
  return bytes;
}

BOOST_AUTO_TEST_CASE(copies_of_long_keys_stay_small_however_large_the_batch) {
  std::vector<std::string> texts;
  for (int i = 0; i < 4; ++i) texts.push_back(std::string(size_t{10} << 20, static_cast<char>(i)));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const SortedRun run = *SortedRun::FromSorted(absl::MakeConstSpan(views), Rows(views.size()));
  QuerySample sample(run, NoTime);
  constexpr uint64_t kMax = size_t{64} << 20;
  for (const size_t count : {1, 5000, 100'000, 7}) {
    const KeyBatch keys = sample.Next(count);
    BOOST_TEST(keys.size() == count);
    BOOST_TEST(keys.bytes()[0].size() == size_t{10} << 20);
    BOOST_TEST(MemoryOf(keys.bytes()) <= kMax);
    const RangeBatch ranges = sample.NextRanges(count);
    BOOST_TEST(ranges.size() == count);
    BOOST_TEST(MemoryOf(ranges.lower.bytes()) + MemoryOf(ranges.upper.bytes()) <= kMax);
    const KeyBatch ascending = sample.NextAscending(count, 100'000);
    BOOST_TEST(ascending.size() == count);
    const std::string_view first = ascending.bytes().front(), last = ascending.bytes().back();
    BOOST_TEST(first.front() <= last.front());
    BOOST_TEST(MemoryOf(ascending.bytes()) <= kMax);
  }
}

BOOST_AUTO_TEST_CASE(drawing_ends_soon_where_reading_a_key_takes_long) {
  int64_t time = 0;
  const SortedRun run = RunOfU32(1 << 20);
  QuerySample sample(run, [&] { return time += 1'000'000; });
  BOOST_TEST(sample.size() > 0);
  BOOST_TEST(sample.size() <= 128);
  BOOST_TEST(sample.Next(4096).size() == 4096);
}

BOOST_AUTO_TEST_CASE(empty_and_tiny_runs_have_queries_too) {
  for (const size_t entries : {0, 1, 2, 3}) {
    const SortedRun run = RunOfU32(entries);
    QuerySample sample(run, NoTime);
    for (const size_t count : {size_t{1}, size_t{4096}, size_t{1} << 17}) {
      const KeyBatch keys = sample.Next(count);
      BOOST_TEST(keys.size() == count);
      for (const uint32_t key : keys.u32()) {
        if (entries == 0 ? key != 0 : !IsKey(key, entries)) BOOST_ERROR("no key: " << key);
      }
      BOOST_TEST(sample.NextRanges(count).size() == count);
    }
    BOOST_TEST(sample.NextAscending(4096, size_t{1} << 24).size() == 4096);
    BOOST_TEST(sample.NextAscending(1, 1).size() == 1);
  }
  const SortedRun no_bytes =
      *SortedRun::FromSorted(absl::Span<const std::string_view>(), std::vector<RowId>());
  QuerySample sample(no_bytes, NoTime);
  BOOST_TEST(sample.Next(3).bytes()[2].empty());
  BOOST_TEST(sample.NextAscending(3, 3).bytes()[2].empty());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
