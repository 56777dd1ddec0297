#include "index/build/spill_stretches.h"

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "index/build/spill_file.h"
#include "test/index/build/vector_sink.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(spill_stretches_test)
namespace {

template <typename Key>
using Owned = std::conditional_t<std::is_same_v<Key, std::string_view>, std::string, uint64_t>;

// Sorted runs of a spill file, and all their entries in order.
template <typename Key>
struct Spilled {
  TemporaryDirectory directory;
  std::unique_ptr<SpillFile> file;
  std::vector<RunOf> runs;
  VectorSink::Entries<Owned<Key>> entries;

  Spilled() { file = RequireOk(SpillFile::Create(directory.path(), FileSystem::Posix())); }

  // A run of rows base to base + keys.size() - 1.
  void Add(const std::vector<Owned<Key>>& keys, RowId base) {
    VectorSink::Entries<Owned<Key>> sorted;
    for (size_t i = 0; i < keys.size(); ++i) {
      sorted.emplace_back(keys[i], static_cast<RowId>(i));
      entries.emplace_back(keys[i], static_cast<RowId>(i) + base);
    }
    std::sort(sorted.begin(), sorted.end());
    std::sort(entries.begin(), entries.end());
    std::vector<Key> of_run;
    std::vector<RowId> row_ids;
    for (const auto& [key, row_id] : sorted) {
      of_run.push_back(static_cast<Key>(key));
      row_ids.push_back(row_id);
    }
    SpillWriter writer(file.get());
    RequireOk(writer.Append(absl::MakeConstSpan(of_run), absl::MakeConstSpan(row_ids)));
    runs.push_back({writer.Finish(), base});
  }

  absl::Status Yield(const SpillStretches<Key>& stretches, VectorSink* sink,
                     const std::atomic<bool>* cancelled = nullptr) const {
    StopFlag stop(cancelled);
    RequireOk(sink->Begin(entries.size(), 0));
    const std::function<void(uint64_t)> no_progress;
    EntryBatch<Key> batch(sink, no_progress, &stop);
    return stretches.Yield(&batch, &stop);
  }
};

template <typename Key>
const VectorSink::Entries<Owned<Key>>& Taken(const VectorSink& sink) {
  if constexpr (std::is_same_v<Key, std::string_view>) {
    return sink.strings;
  } else {
    return sink.numbers;
  }
}

// Checks that for all memory limits and threads, either all entries come in order or there is no
// cut. Returns the largest number of stretches, which the smallest sufficient memory needs.
template <typename Key>
size_t CheckAll(const Spilled<Key>& spilled) {
  size_t most = 0;
  for (uint64_t memory = 1 << 14; memory <= 1 << 26; memory *= 4) {
    for (const int threads : {1, 2, 5}) {
      const auto stretches = SpillStretches<Key>::Cut(*spilled.file, spilled.runs, memory, threads);
      if (!stretches) continue;
      most = std::max(most, stretches->size());
      VectorSink sink;
      RequireOk(spilled.Yield(*stretches, &sink));
      BOOST_TEST((Taken<Key>(sink) == spilled.entries),
                 "memory " << memory << ", threads " << threads);
    }
  }
  return most;
}

constexpr size_t kRunEntries = FewerUnderTsan(60'000, 2);

template <typename Key>
void CheckNumbers(const std::function<uint64_t(std::mt19937_64&, size_t)>& key_of, bool cut) {
  auto random = TestRandom(7);
  Spilled<Key> spilled;
  RowId base = 0;
  for (const size_t size : {kRunEntries, size_t{1}, kRunEntries / 2, size_t{0}, kRunEntries}) {
    std::vector<uint64_t> keys(size);
    for (size_t i = 0; i < size; ++i) keys[i] = static_cast<Key>(key_of(random, i));
    spilled.Add(keys, base);
    base += static_cast<RowId>(size);
  }
  BOOST_TEST((CheckAll(spilled) > 1) == cut);
}

std::string Digits(uint64_t number) {
  return std::to_string(number);
}

BOOST_AUTO_TEST_CASE(numbers_in_order_whatever_they_are) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  const std::vector<std::function<uint64_t(std::mt19937_64&, size_t)>> sets = {
      [](auto& random, size_t) { return random(); },
      [](auto& random, size_t) { return random() % 3; },
      [](auto&, size_t) { return uint64_t{42}; },
      [](auto&, size_t i) { return i % 2 == 0 ? uint64_t{0} : kMax; },
      [](auto&, size_t i) { return uint64_t{i}; },
  };
  for (const auto& set : sets) {
    if (!kUnderTsan) CheckNumbers<uint32_t>(set, true);  // the same threads
    CheckNumbers<uint64_t>(set, true);
  }
}

BOOST_AUTO_TEST_CASE(keys_of_bytes_in_order_whatever_they_are) {
  auto random = TestRandom(11);
  const std::string prefix(900, 'p');
  const std::vector<std::function<std::string(size_t)>> sets = {
      [&](size_t) { return Digits(random()); },
      [&](size_t) { return std::string(random() % 3, '\0'); },
      [&](size_t) { return prefix + Digits(random() % 1000); },
      // Some keys are longer than their stored part.
      [&](size_t i) { return Digits(random()) + std::string(i % 100 == 0 ? 3000 : 0, 'x'); },
  };
  for (const auto& set : sets) {
    Spilled<std::string_view> spilled;
    for (RowId base = 0; base < 4000; base += 1000) {
      std::vector<std::string> keys;
      for (size_t i = 0; i < 1000; ++i) keys.push_back(set(i));
      spilled.Add(keys, base);
    }
    CheckAll(spilled);
  }
  Spilled<std::string_view> many;
  for (RowId base = 0; base < 4 * kRunEntries; base += kRunEntries) {
    std::vector<std::string> keys;
    for (size_t i = 0; i < kRunEntries; ++i) keys.push_back(Digits(random()));
    many.Add(keys, base);
  }
  BOOST_TEST(CheckAll(many) > 1);
}

BOOST_AUTO_TEST_CASE(keys_that_begin_alike_for_long_are_cut_where_others_are_or_not_at_all) {
  const std::string prefix(SpillFirst::kMaxBytes, 'p');
  Spilled<std::string_view> alike;
  for (RowId base = 0; base < 3000; base += 1000) {
    std::vector<std::string> keys;
    for (size_t i = 0; i < 1000; ++i) keys.push_back(prefix + Digits(i * 7919 % 1000));
    alike.Add(keys, base);
  }
  // All of it in one, or nothing.
  BOOST_TEST(!SpillStretches<std::string_view>::Cut(*alike.file, alike.runs, 1 << 20, 1));
  BOOST_TEST(CheckAll(alike) == 1);

  Spilled<std::string_view> between;
  for (RowId base = 0; base < 3000; base += 1000) {
    std::vector<std::string> keys;
    for (size_t i = 0; i < 1000; ++i) {
      keys.push_back((i % 4 == 0 ? prefix : "") + std::string(1, static_cast<char>('a' + i % 20)) +
                     std::string(i % 300, 'b') + Digits(i));
    }
    between.Add(keys, base);
  }
  CheckAll(between);
}

BOOST_AUTO_TEST_CASE(memory_for_the_blocks_that_stretches_share_is_wanted) {
  Spilled<uint64_t> spilled;
  for (RowId base = 0; base < 20; ++base) {
    std::vector<uint64_t> keys(20'000);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = i * 31;
    spilled.Add(keys, base * 20'000);
  }
  // Twenty blocks of some 4,096 entries of 16 bytes.
  BOOST_TEST(!SpillStretches<uint64_t>::Cut(*spilled.file, spilled.runs, 20 * 65'536, 4));
  BOOST_TEST(
      SpillStretches<uint64_t>::Cut(*spilled.file, spilled.runs, 40 * 65'536, 4).has_value());
}

BOOST_AUTO_TEST_CASE(errors_of_the_sink_and_of_reading_and_cancelling_end_it) {
  Spilled<uint32_t> spilled;
  for (RowId base = 0; base < 3; ++base) {
    std::vector<uint64_t> keys(FewerUnderTsan(200'000, 2));
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = i * 2654435761u % (1u << 31);
    spilled.Add(keys, base * 200'000);
  }
  for (const int threads : {1, 4}) {
    const auto stretches =
        SpillStretches<uint32_t>::Cut(*spilled.file, spilled.runs, 8 << 20, threads);
    BOOST_REQUIRE(stretches.has_value());
    {
      VectorSink sink;
      sink.fail_behind = 100'000;
      BOOST_TEST(absl::IsInternal(spilled.Yield(*stretches, &sink)));
    }
    {
      const std::atomic<bool> cancelled = true;
      VectorSink sink;
      BOOST_TEST(absl::IsCancelled(spilled.Yield(*stretches, &sink, &cancelled)));
      BOOST_TEST(sink.size() == 0u);
    }
    {
      std::vector<RunOf> damaged = spilled.runs;
      damaged[1].run.blocks[5].hash ^= 1;
      const auto of_damaged =
          SpillStretches<uint32_t>::Cut(*spilled.file, damaged, 8 << 20, threads);
      BOOST_REQUIRE(of_damaged.has_value());
      VectorSink sink;
      const absl::Status status = spilled.Yield(*of_damaged, &sink);
      BOOST_TEST(absl::IsDataLoss(status), status.ToString());
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
