#include "index/build/run_builder.h"

#include <fcntl.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "test/index/build/vector_sink.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(run_builder_test)
namespace {

// Rows of one kind of keys, in parts, and the expected run.
struct Rows {
  PhysicalType kind;
  std::vector<std::vector<EncodedKeys>> parts;
  std::vector<RowId> bases;
  VectorSink::Entries<uint64_t> numbers;
  VectorSink::Entries<std::string> strings;
  uint64_t key_bytes = 0;
};

// `keys(random, column)` gives a row its keys, which ascend.
using RowKeys = std::function<void(std::mt19937_64&, EncodedKeys*)>;

Rows MakeRows(PhysicalType kind, const std::vector<size_t>& part_sizes, const RowKeys& keys) {
  auto random = TestRandom(part_sizes.size());
  Rows rows;
  rows.kind = kind;
  RowId next = 0;
  for (size_t size : part_sizes) {
    rows.bases.push_back(next);
    auto& part = rows.parts.emplace_back(size, EncodedKeys(kind));
    for (EncodedKeys& column : part) {
      keys(random, &column);
      for (size_t i = 0; i < column.size(); ++i) {
        if (kind == PhysicalType::kU32) rows.numbers.emplace_back(column.u32(i), next);
        if (kind == PhysicalType::kU64) rows.numbers.emplace_back(column.u64(i), next);
        if (kind == PhysicalType::kBytes) rows.strings.emplace_back(column.bytes(i), next);
      }
      ++next;
    }
  }
  const auto finish = [](auto* entries) {
    std::sort(entries->begin(), entries->end());
    entries->erase(std::unique(entries->begin(), entries->end()), entries->end());
  };
  finish(&rows.numbers);
  finish(&rows.strings);
  for (const auto& [key, row] : rows.strings) rows.key_bytes += key.size();
  return rows;
}

void AppendKeys(const EncodedKeys& from, EncodedKeys* to) {
  for (size_t i = 0; i < from.size(); ++i) {
    if (from.kind() == PhysicalType::kU32) to->AppendU32(from.u32(i));
    if (from.kind() == PhysicalType::kU64) to->AppendU64(from.u64(i));
    if (from.kind() == PhysicalType::kBytes) to->AppendBytes(from.bytes(i));
  }
}

// Adds rows to a part, from none to hundreds at a time. In a thread, which Boost.Test must not see.
bool AddRows(const std::vector<EncodedKeys>& rows, RunBuilder::Part* part) {
  std::mt19937_64 random(TestSeed() + rows.size());
  for (size_t row = 0; row < rows.size();) {
    EncodedKeys keys(rows[0].kind());
    std::vector<RowId> row_ids;
    for (size_t count = random() % 2 == 0 ? 1 : random() % 1000; count > 0 && row < rows.size();
         --count, ++row) {
      AppendKeys(rows[row], &keys);
      row_ids.resize(keys.size(), static_cast<RowId>(row));
    }
    if (!part->Add(keys, row_ids)) return false;
  }
  return true;
}

// Fills all parts on `threads` threads.
void Fill(RunBuilder* builder, const Rows& rows, int threads) {
  std::vector<std::thread> scans;
  std::atomic<size_t> next{0};
  std::atomic<int> failures{0};
  for (int t = 0; t < threads; ++t) {
    scans.emplace_back([&] {
      for (size_t p; (p = next++) < rows.parts.size();) {
        RunBuilder::Part* part = builder->part(static_cast<int>(p));
        failures += !AddRows(rows.parts[p], part) || !part->Finish().ok();
      }
    });
  }
  for (std::thread& scan : scans) scan.join();
  BOOST_TEST(failures == 0);
}

void CheckBuild(const Rows& rows, RunBuilder::Options options) {
  BOOST_TEST_CONTEXT(PhysicalTypeName(rows.kind)
                     << ", " << options.threads << " threads, budget " << options.memory_budget) {
    RunBuilder builder(rows.kind, options, static_cast<int>(rows.parts.size()));
    Fill(&builder, rows, options.threads);
    VectorSink sink;
    uint64_t progress = 0;
    const auto on_progress = [&](uint64_t entries) {
      BOOST_REQUIRE(entries > progress);
      progress = entries;
    };
    RequireOk(builder.Finish(rows.bases, &sink, on_progress));
    BOOST_TEST(sink.begins == 1);
    BOOST_TEST(sink.announced == sink.size());
    BOOST_TEST(sink.announced == builder.entries());
    BOOST_TEST(sink.announced_bytes == rows.key_bytes);
    BOOST_TEST(progress == sink.size());
    BOOST_TEST((sink.numbers == rows.numbers));
    BOOST_TEST((sink.strings == rows.strings));
  }
}

void AddNumber(uint64_t key, EncodedKeys* keys) {
  if (keys->kind() == PhysicalType::kU32) keys->AppendU32(static_cast<uint32_t>(key));
  if (keys->kind() == PhysicalType::kU64) keys->AppendU64(key);
  if (keys->kind() == PhysicalType::kBytes)
    keys->AppendBytes("user:" + std::to_string(key % 1'000'000));
}

const RowKeys kOneRandomKey = [](std::mt19937_64& random, EncodedKeys* keys) {
  AddNumber(random(), keys);
};

// None to five keys of a few.
const RowKeys kSomeKeys = [](std::mt19937_64& random, EncodedKeys* keys) {
  for (uint64_t key = 0; key < 5; ++key) {
    if (random() % 2 == 0) AddNumber(key, keys);
  }
};

constexpr size_t kPart = FewerUnderTsan(150'000, 3);  // of two

// Both kinds of numbers start the same threads.
const std::vector<PhysicalType> kKinds =
    kUnderTsan ? std::vector{PhysicalType::kU64, PhysicalType::kBytes}
               : std::vector{PhysicalType::kU32, PhysicalType::kU64, PhysicalType::kBytes};

BOOST_AUTO_TEST_CASE(yields_what_was_added_sorted_with_global_row_ids) {
  for (PhysicalType kind : kKinds) {
    const Rows rows = MakeRows(
        kind, {FewerUnderTsan(90'000, 3), 0, 1, FewerUnderTsan(70'000, 3), 3000}, kOneRandomKey);
    for (int threads : {1, 2, 3, 4}) {
      RunBuilder::Options options;
      options.threads = threads;
      CheckBuild(rows, options);
    }
  }
}

BOOST_AUTO_TEST_CASE(yields_small_runs_of_every_size) {
  for (PhysicalType kind : kKinds) {
    CheckBuild(MakeRows(kind, {}, kOneRandomKey), {});
    for (size_t size : {0, 1, 2, 3, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097}) {
      CheckBuild(MakeRows(kind, {size}, kOneRandomKey), {});
      CheckBuild(MakeRows(kind, {size, size}, kOneRandomKey), {});
    }
  }
}

BOOST_AUTO_TEST_CASE(a_key_that_a_row_has_twice_is_one_entry) {
  for (PhysicalType kind : kKinds) {
    const Rows rows = MakeRows(kind, {20'000, 30'000}, kSomeKeys);
    CheckBuild(rows, {});
    const TemporaryDirectory directory;
    RunBuilder::Options spilling;
    spilling.memory_budget = 300'000;
    spilling.spill_directory = directory.path();
    CheckBuild(rows, spilling);
  }
}

BOOST_AUTO_TEST_CASE(spills_past_the_budget_and_merges_however_many_runs) {
  const TemporaryDirectory directory;
  for (PhysicalType kind : kKinds) {
    const Rows rows = MakeRows(
        kind, {FewerUnderTsan(60'000), 1, FewerUnderTsan(50'000), 0, FewerUnderTsan(10'000)},
        kOneRandomKey);
    // With the larger ones there is memory to sort stretches of the runs in.
    for (uint64_t budget : {0, 1 << 18, 1 << 20, 1 << 22, 3 << 20}) {
      for (int threads : {1, 2, 4}) {
        RunBuilder::Options options;
        options.threads = threads;
        options.memory_budget = budget;
        options.spill_directory = directory.path();
        CheckBuild(rows, options);
      }
    }
  }
  BOOST_TEST(std::filesystem::is_empty(directory.path()));
}

BOOST_AUTO_TEST_CASE(yields_few_distinct_and_ascending_keys) {
  const TemporaryDirectory directory;
  for (PhysicalType kind : kKinds) {
    for (uint64_t distinct : {1, 2, 1'000'000'000}) {
      uint64_t i = 0;
      const Rows rows =
          MakeRows(kind, {FewerUnderTsan(80'000), FewerUnderTsan(90'000)},
                   [&](auto&, EncodedKeys* keys) { AddNumber(i++ % distinct, keys); });
      RunBuilder::Options options;
      options.threads = 2;
      CheckBuild(rows, options);
      options.memory_budget = 1 << 20;
      options.spill_directory = directory.path();
      CheckBuild(rows, options);
    }
  }
}

BOOST_AUTO_TEST_CASE(takes_strings_of_any_length_and_any_bytes) {
  const TemporaryDirectory directory;
  const Rows rows = MakeRows(PhysicalType::kBytes, {400, 500}, [](auto& random, EncodedKeys* keys) {
    size_t length = random() % 12;
    if (random() % 10 == 0) length = random() % 300'000;
    if (random() % 400 == 0) length = 5'000'000;
    std::string key(length, '\0');
    for (size_t i = 0; i < 10 && i < length; ++i) key[length - 1 - i] = "\0\1\377"[random() % 3];
    keys->AppendBytes(key);
  });
  for (int threads : {1, 2}) {
    RunBuilder::Options options;
    options.threads = threads;
    CheckBuild(rows, options);
    options.memory_budget = 8 << 20;
    options.spill_directory = directory.path();
    CheckBuild(rows, options);
  }
}

BOOST_AUTO_TEST_CASE(returns_the_sinks_errors_and_stops_it) {
  const TemporaryDirectory directory;
  for (PhysicalType kind : kKinds) {
    const Rows rows = MakeRows(kind, {kPart, kPart}, kOneRandomKey);
    for (uint64_t budget : {uint64_t{1} << 20, UINT64_MAX}) {
      for (size_t fail_behind : {size_t{0}, kPart * 2 / 3}) {
        RunBuilder::Options options;
        options.threads = 2;
        options.memory_budget = budget;
        options.spill_directory = directory.path();
        RunBuilder builder(kind, options, 2);
        Fill(&builder, rows, 2);
        VectorSink sink;
        sink.fail_behind = fail_behind;
        const absl::Status status = builder.Finish(rows.bases, &sink);
        BOOST_TEST(status.message() == "the sink is full");
        BOOST_TEST(sink.size() < 2 * kPart);
      }
    }
    RunBuilder builder(kind, {}, 2);
    Fill(&builder, rows, 2);
    VectorSink sink;
    sink.begin_status = absl::DataLossError("no");
    BOOST_TEST(absl::IsDataLoss(builder.Finish(rows.bases, &sink)));
    BOOST_TEST(sink.size() == 0u);
  }
  BOOST_TEST(std::filesystem::is_empty(directory.path()));
}

BOOST_AUTO_TEST_CASE(stops_when_it_is_cancelled) {
  const TemporaryDirectory directory;
  for (PhysicalType kind : kKinds) {
    const Rows rows = MakeRows(kind, {kPart, kPart}, kOneRandomKey);
    for (uint64_t budget : {uint64_t{1} << 20, UINT64_MAX}) {
      for (bool at_once : {true, false}) {
        RunBuilder::Options options;
        options.threads = 2;
        options.memory_budget = budget;
        options.spill_directory = directory.path();
        RunBuilder builder(kind, options, 2);
        Fill(&builder, rows, 2);
        VectorSink sink;
        std::atomic<bool> cancelled{at_once};
        const absl::Status status = builder.Finish(
            rows.bases, &sink, [&](uint64_t) { cancelled = true; }, &cancelled);
        BOOST_TEST(absl::IsCancelled(status));
        BOOST_TEST(sink.size() < 2 * kPart);
        BOOST_TEST((sink.size() == 0) == at_once);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(refuses_more_entries_than_a_run_may_hold) {
  const Rows rows = MakeRows(PhysicalType::kU32, {600, 600}, kOneRandomKey);
  RunBuilder::Options options;
  options.max_entries = 1000;
  RunBuilder builder(PhysicalType::kU32, options, 2);
  for (int p = 0; p < 2; ++p) {
    AddRows(rows.parts[0], builder.part(p));
    const absl::Status status = builder.part(p)->Finish();
    BOOST_TEST(status.ok() == (p == 0));
    if (p == 1) BOOST_TEST(absl::IsResourceExhausted(status));
  }
  VectorSink sink;
  BOOST_TEST(absl::IsResourceExhausted(builder.Finish({0, 600}, &sink)));
  BOOST_TEST(sink.begins == 0);
}

BOOST_AUTO_TEST_CASE(stops_a_scan_that_adds_too_many_entries) {
  RunBuilder::Options options;
  options.max_entries = 1'000'000;
  RunBuilder builder(PhysicalType::kU32, options, 1);
  EncodedKeys key(PhysicalType::kU32);
  key.AppendU32(1);
  RowId row = 0;
  while (row < 2'000'000 && builder.part(0)->Add(key, {row})) ++row;
  BOOST_TEST(row < 1'300'000u);
  BOOST_TEST(absl::IsResourceExhausted(builder.part(0)->Finish()));
}

BOOST_AUTO_TEST_CASE(refuses_misuse_and_says_what_was_wrong) {
  EncodedKeys key(PhysicalType::kU32);
  key.AppendU32(1);
  VectorSink sink;
  {
    RunBuilder builder(PhysicalType::kU32, {}, 1);
    BOOST_TEST(builder.part(0)->Add(key, {5}));
    BOOST_TEST(!builder.part(0)->Add(key, {5}));
    BOOST_TEST(!builder.part(0)->Add(key, {6}));
    const absl::Status status = builder.part(0)->Finish();
    BOOST_TEST(status.message() == "row 5 of a part was added after row 5");
    BOOST_TEST((builder.Finish({0}, &sink) == status));
  }
  {
    RunBuilder builder(PhysicalType::kU64, {}, 1);
    BOOST_TEST(!builder.part(0)->Add(key, {0}));
    BOOST_TEST(builder.part(0)->Finish().message() ==
               "keys of kind u32 were added to a part, expected u64");
  }
  for (const uint32_t second : {0u, 1u}) {
    RunBuilder builder(PhysicalType::kU32, {}, 1);
    EncodedKeys keys = key;
    keys.AppendU32(second);
    BOOST_TEST(!builder.part(0)->Add(keys, {3, 3}));
    BOOST_TEST(builder.part(0)->Finish().message() == "the keys of row 3 of a part do not ascend");
  }
  {
    RunBuilder builder(PhysicalType::kU32, {}, 1);
    EncodedKeys keys = key;
    keys.AppendU32(7);
    BOOST_TEST(!builder.part(0)->Add(keys, {3, 2}));
    BOOST_TEST(builder.part(0)->Finish().message() == "row 2 of a part was added after row 3");
  }
  {
    RunBuilder builder(PhysicalType::kU32, {}, 2);
    BOOST_TEST(builder.part(0)->Add(key, {9}));
    BOOST_TEST(builder.part(0)->Finish().ok());
    BOOST_TEST(absl::IsFailedPrecondition(builder.Finish({0, 10}, &sink)));
    BOOST_TEST(builder.part(1)->Finish().ok());
    BOOST_TEST(absl::IsInvalidArgument(builder.Finish({0}, &sink)));
    BOOST_TEST(absl::IsInvalidArgument(builder.Finish({0, 9}, &sink)));
    BOOST_TEST(absl::IsInvalidArgument(builder.Finish({UINT32_MAX - 5, UINT32_MAX}, &sink)));
    BOOST_TEST(sink.begins == 0);
    BOOST_TEST(builder.Finish({0, 10}, &sink).ok());
    BOOST_TEST(absl::IsFailedPrecondition(builder.Finish({0, 10}, &sink)));
  }
  {
    RunBuilder builder(PhysicalType::kBytes, {}, 1);
    EncodedKeys large(PhysicalType::kBytes);
    large.AppendBytes(std::string((size_t{1} << 24) + 1, 'x'));
    BOOST_TEST(!builder.part(0)->Add(large, {0}));
    BOOST_TEST(absl::IsInvalidArgument(builder.part(0)->Finish()));
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
