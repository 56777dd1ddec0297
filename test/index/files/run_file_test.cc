#include "index/files/run_file.h"

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <set>
#include <vector>

#include "index/machine/status_macros.h"
#include "test/index/files/run_entries.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(run_file_test)
namespace {

template <typename Key>
void CheckHolds(const RunFile& file, const Entries<Key>& entries) {
  const size_t size = entries.keys.size();
  BOOST_REQUIRE(file.run.size() == size);
  BOOST_CHECK(file.run.kind() == KindOf<Key>());
  BOOST_CHECK(file.run.row_ids() == absl::MakeConstSpan(entries.row_ids));
  BOOST_TEST(reinterpret_cast<uintptr_t>(file.run.row_ids().data()) % 64 == 0u);
  if constexpr (std::is_same_v<Key, std::string>) {
    BOOST_REQUIRE(file.run.bytes().size() == size);
    for (size_t i = 0; i < size; ++i) BOOST_REQUIRE(file.run.bytes()[i] == entries.keys[i]);
  } else {
    const Key* keys;
    if constexpr (sizeof(Key) == 4) {
      keys = file.run.u32().data();
    } else {
      keys = file.run.u64().data();
    }
    BOOST_CHECK(std::equal(entries.keys.begin(), entries.keys.end(), keys));
    BOOST_TEST(reinterpret_cast<uintptr_t>(keys) % 64 == 0u);
  }
  BOOST_CHECK(file.run.CheckOrder().ok());
  BOOST_TEST(file.properties.entries == size);
  BOOST_TEST(file.properties.distinct_keys ==
             std::set<Key>(entries.keys.begin(), entries.keys.end()).size());
  BOOST_TEST(file.properties.key_bytes == KeyBytes(entries.keys));
  const uint64_t rows_bound =
      size == 0 ? 0
                : uint64_t{*std::max_element(entries.row_ids.begin(), entries.row_ids.end())} + 1;
  BOOST_TEST(file.properties.rows_bound == rows_bound);
}

template <typename Key>
void RoundTrip(const Entries<Key>& entries, RunFileOptions options = {}) {
  TemporaryDirectory directory;
  WriteRun(directory / "run", entries, options);
  for (VerifyLevel level : {VerifyLevel::kMetadata, VerifyLevel::kFull}) {
    const auto file = RequireOk(OpenRun(directory / "run", level));
    CheckHolds(file, entries);
  }
}

BOOST_AUTO_TEST_CASE(gives_back_runs_of_every_kind_and_size) {
  std::mt19937_64 random = TestRandom();
  int round = 0;
  for (size_t size : {0, 1, 2, 3, 4, 5, 63, 64, 65, 1023, 1024, 1025, 4095, 4096, 4097}) {
    const size_t distinct = std::array<size_t, 3>{1, size / 3 + 1, 10 * size + 1}[round++ % 3];
    RoundTrip(RandomEntries<uint32_t>(random, size, distinct));
    RoundTrip(RandomEntries<uint64_t>(random, size, distinct));
    const auto strings = RandomEntries<std::string>(random, size, distinct);
    RoundTrip(strings);
    RoundTrip(strings, {.wide_offsets = true});
  }
}

BOOST_AUTO_TEST_CASE(gives_back_the_ends_of_the_key_space) {
  const auto last_row = static_cast<RowId>(kMaxEntries);
  RoundTrip(Entries<uint32_t>{{0, 0, UINT32_MAX, UINT32_MAX}, {0, last_row, 0, last_row}});
  RoundTrip(Entries<uint64_t>{{0, 0, UINT64_MAX, UINT64_MAX}, {0, last_row, 0, last_row}});
  RoundTrip(Entries<std::string>{{"", "", std::string(3'000'000, '\xff')}, {0, last_row, 0}});
}

BOOST_AUTO_TEST_CASE(batches_longer_than_a_block_are_written) {
  std::mt19937_64 random = TestRandom();
  TemporaryDirectory directory;
  const auto entries = RandomEntries<uint64_t>(random, 400'000, 100'000);
  WriteRun(directory / "run", entries, {}, 300'000);
  const auto file = RequireOk(OpenRun(directory / "run", VerifyLevel::kFull));
  CheckHolds(file, entries);
}

BOOST_AUTO_TEST_CASE(a_run_outlives_its_file) {
  const Entries<uint32_t> entries = {{3, 4, 5}, {1, 1, 1}};
  SortedRun run;
  {
    TemporaryDirectory directory;
    WriteRun(directory / "run", entries);
    run = OpenRun(directory / "run", VerifyLevel::kFull)->run;
  }
  BOOST_CHECK(run.u32() == absl::MakeConstSpan(entries.keys));
}

// The error of `fill` with a writer whose Begin promised three u32 entries.
absl::Status Misuse(const std::function<absl::Status(RunFileWriter*)>& fill) {
  TemporaryDirectory directory;
  absl::Status result;
  {
    auto writer = RequireOk(RunFileWriter::Create(directory / "run", PhysicalType::kU32));
    RequireOk(writer->Begin(3, 12));
    result = fill(writer.get());
    BOOST_CHECK(writer->Finish() == result);  // the error stays
  }
  BOOST_TEST(!std::filesystem::exists(directory / "run"));
  return result;
}

BOOST_AUTO_TEST_CASE(entries_that_do_not_ascend_are_refused) {
  const auto refused = [](std::vector<uint32_t> keys, std::vector<RowId> rows) {
    // In one batch and in two.
    const absl::Status together = Misuse([&](RunFileWriter* w) { return Append(w, keys, rows); });
    const absl::Status apart = Misuse([&](RunFileWriter* w) {
      absl::Status s = Append(w, {keys[0]}, {rows[0]});
      if (s.ok()) s = Append(w, {keys[1]}, {rows[1]});
      return s;
    });
    return absl::IsInternal(together) && absl::IsInternal(apart);
  };
  BOOST_TEST(refused({2, 1}, {0, 1}));
  BOOST_TEST(refused({2, 2}, {1, 1}));
  BOOST_TEST(refused({2, 2}, {1, 0}));
  BOOST_TEST(refused({1, 2}, {0, kNoRow}));
}

BOOST_AUTO_TEST_CASE(strings_that_do_not_ascend_are_refused) {
  TemporaryDirectory directory;
  int number = 0;
  for (const std::vector<std::string_view>& keys :
       {std::vector<std::string_view>{"b", "a"}, {"ab", "a"}, {"a", "a"}, {"a", ""}}) {
    for (size_t batch : {1, 2}) {
      auto writer =
          RunFileWriter::Create(directory / std::to_string(number++), PhysicalType::kBytes).value();
      RequireOk(writer->Begin(2, keys[0].size() + keys[1].size()));
      absl::Status s;
      for (size_t i = 0; i < 2 && s.ok(); i += batch) {
        s = writer->Append(absl::MakeConstSpan(keys).subspan(i, batch),
                           std::vector<RowId>(batch, 5));
      }
      BOOST_CHECK(absl::IsInternal(s));
    }
  }
}

BOOST_AUTO_TEST_CASE(entries_that_were_not_promised_are_refused) {
  const auto finish = [](RunFileWriter* writer, absl::Status s) {
    return s.ok() ? writer->Finish() : s;
  };
  BOOST_CHECK(absl::IsInternal(Misuse([&](RunFileWriter* w) {
    return finish(w, Append(w, {1, 2}, {0, 0}));
  })));  // too few
  BOOST_CHECK(absl::IsInternal(Misuse([&](RunFileWriter* w) {
    return Append(w, {1, 2, 3, 4}, {0, 0, 0, 0});
  })));
  BOOST_CHECK(absl::IsInternal(Misuse([&](RunFileWriter* w) { return Append(w, {1, 2}, {0}); })));
  BOOST_CHECK(absl::IsInternal(Misuse([&](RunFileWriter* w) {
    const std::vector<uint64_t> keys = {1};
    return w->Append(absl::MakeConstSpan(keys), std::vector<RowId>{0});
  })));
  BOOST_CHECK(absl::IsInternal(Misuse([&](RunFileWriter* w) { return w->Begin(3, 12); })));

  TemporaryDirectory directory;
  for (uint64_t promised : {0, 2, 4, 100}) {  // "abc" has three bytes
    auto writer =
        RunFileWriter::Create(directory / std::to_string(promised), PhysicalType::kBytes).value();
    RequireOk(writer->Begin(1, promised));
    const std::vector<std::string_view> keys = {"abc"};
    absl::Status s = writer->Append(absl::MakeConstSpan(keys), std::vector<RowId>{0});
    BOOST_CHECK(absl::IsInternal(finish(writer.get(), s)));
  }
  auto writer = RunFileWriter::Create(directory / "many", PhysicalType::kBytes).value();
  BOOST_CHECK(absl::IsResourceExhausted(writer->Begin(kMaxEntries + 1, 0)));
  writer = RunFileWriter::Create(directory / "long", PhysicalType::kBytes).value();
  BOOST_CHECK(absl::IsResourceExhausted(writer->Begin(1, UINT64_MAX)));
}

BOOST_AUTO_TEST_CASE(offsets_have_four_bytes_as_long_as_the_heap_allows_it) {
  TemporaryDirectory directory;
  for (const auto& [key_bytes, offset_bytes] :
       {std::pair<uint64_t, uint32_t>{0, 4}, {UINT32_MAX, 4}, {uint64_t{1} << 32, 8}}) {
    auto writer = RunFileWriter::Create(directory / "run", PhysicalType::kBytes).value();
    RequireOk(writer->Begin(1000, key_bytes));
    BOOST_TEST(writer->properties().offset_bytes == offset_bytes);
  }
}

BOOST_AUTO_TEST_CASE(other_sections_travel_with_the_run) {
  TemporaryDirectory directory;
  const auto id = static_cast<uint32_t>(RunSection::kFirstExtra);
  auto writer = RunFileWriter::Create(directory / "run", PhysicalType::kU32).value();
  RequireOk(writer->Begin(1, 4));
  RequireOk(Append(writer.get(), {7}, {9}));
  SectionWriter* extra = writer->file().AddSectionOfUnknownSize(id).value();
  RequireOk(extra->Append("leaves", 6));
  RequireOk(extra->Close());
  RequireOk(writer->Finish());
  const auto file = RequireOk(OpenRun(directory / "run", VerifyLevel::kFull));
  CheckHolds(file, Entries<uint32_t>{{7}, {9}});
  const absl::Span<const char> bytes = file.file.BytesOf(*file.file.Find(id));
  BOOST_TEST(std::string(bytes.begin(), bytes.end()) == "leaves");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
