#include "index/files/run_file.h"

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <set>
#include <vector>

#include "index/machine/status_macros.h"
#include "test/forged_file.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
namespace {

// Sorted entries of one kind, what a run should hold.
template <typename Key>
struct Entries {
  std::vector<Key> keys;
  std::vector<RowId> row_ids;
};

template <typename Key>
Key RandomKey(std::mt19937_64& random);
template <>
uint32_t RandomKey(std::mt19937_64& random) {
  return static_cast<uint32_t>(random());
}
template <>
uint64_t RandomKey(std::mt19937_64& random) {
  return random();
}
template <>
std::string RandomKey(std::mt19937_64& random) {
  std::string key(random() % 20, '\0');
  for (char& c : key) c = static_cast<char>(random() % 3 == 0 ? 0 : random());
  return key;
}

// `size` entries over about `distinct` keys.
template <typename Key>
Entries<Key> RandomEntries(std::mt19937_64& random, size_t size, size_t distinct) {
  std::vector<Key> keys(distinct);
  for (Key& key : keys) key = RandomKey<Key>(random);
  std::set<std::pair<Key, RowId>> sorted;
  while (sorted.size() < size) {
    sorted.emplace(keys[random() % distinct], static_cast<RowId>(random() % kMaxEntries));
  }
  Entries<Key> entries;
  for (const auto& [key, row_id] : sorted) {
    entries.keys.push_back(key);
    entries.row_ids.push_back(row_id);
  }
  return entries;
}

template <typename Key>
KeyKind KindOf() {
  return std::is_same_v<Key, uint32_t>   ? KeyKind::kU32
         : std::is_same_v<Key, uint64_t> ? KeyKind::kU64
                                         : KeyKind::kBytes;
}

template <typename Key>
uint64_t KeyBytes(const std::vector<Key>& keys) {
  uint64_t bytes = 0;
  for (const Key& key : keys) {
    if constexpr (std::is_same_v<Key, std::string>) {
      bytes += key.size();
    } else {
      bytes += sizeof(key);
    }
  }
  return bytes;
}

template <typename Key>
absl::Status AppendRange(RunFileWriter* writer, const Entries<Key>& entries, size_t first,
                         size_t count) {
  const auto row_ids = absl::MakeConstSpan(entries.row_ids).subspan(first, count);
  if constexpr (std::is_same_v<Key, std::string>) {
    const std::vector<std::string_view> views(entries.keys.begin() + first,
                                              entries.keys.begin() + first + count);
    return writer->Append(absl::MakeConstSpan(views), row_ids);
  } else {
    return writer->Append(absl::MakeConstSpan(entries.keys).subspan(first, count), row_ids);
  }
}

// Writes in batches of random sizes, some of them empty.
template <typename Key>
void WriteRun(const std::string& path, const Entries<Key>& entries, RunFileOptions options = {},
              size_t largest_batch = 100) {
  std::mt19937_64 random = TestRandom(entries.keys.size());
  auto writer = RequireOk(RunFileWriter::Create(path, KindOf<Key>(), options));
  RequireOk(writer->Begin(entries.keys.size(), KeyBytes(entries.keys)));
  for (size_t first = 0; first < entries.keys.size();) {
    const size_t count = std::min(entries.keys.size() - first, random() % (largest_batch + 1));
    RequireOk(AppendRange(writer.get(), entries, first, count));
    first += count;
  }
  RequireOk(writer->Finish());
}

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

template <typename Key>
std::string BytesOfRun(const Entries<Key>& entries, RunFileOptions options = {}) {
  TemporaryDirectory directory;
  WriteRun(directory / "run", entries, options);
  return ReadFile(directory / "run");
}

absl::Status OpenRunBytes(std::string_view bytes, VerifyLevel level) {
  ASSIGN_OR_RETURN(auto file, OpenBytes(bytes, kRunFileFormat, level));
  return OpenRun(std::move(file)).status();
}

const Entries<std::string> kFewStrings = {{"", "a", std::string("a\0b", 3), "b", "b"},
                                          {4, 3, 2, 1, 7}};

// One small file of every shape.
std::vector<std::string> SmallRuns() {
  return {BytesOfRun(Entries<uint32_t>{}),
          BytesOfRun(Entries<uint32_t>{{1, 1, 5}, {0, 2, 1}}),
          BytesOfRun(Entries<uint64_t>{{1, 1, UINT64_MAX}, {0, 2, 1}}),
          BytesOfRun(Entries<std::string>{}),
          BytesOfRun(kFewStrings),
          BytesOfRun(kFewStrings, {.wide_offsets = true})};
}

BOOST_AUTO_TEST_SUITE(run_file_test)

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

BOOST_AUTO_TEST_CASE(every_flipped_bit_is_found) {
  for (const std::string& good : SmallRuns()) {
    RequireOk(OpenRunBytes(good, VerifyLevel::kFull));
    for (size_t bit = 0; bit < good.size() * 8; ++bit) {
      std::string bytes = good;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      const absl::Status s = OpenRunBytes(bytes, VerifyLevel::kFull);
      BOOST_REQUIRE_MESSAGE(absl::IsDataLoss(s), "bit " << bit << ": " << s);
    }
  }
}

BOOST_AUTO_TEST_CASE(every_truncation_and_every_addition_is_found) {
  for (const std::string& good : SmallRuns()) {
    for (size_t size = 0; size < good.size(); ++size) {
      BOOST_REQUIRE(absl::IsDataLoss(OpenRunBytes(good.substr(0, size), VerifyLevel::kMetadata)));
    }
    for (size_t more : {1, 64, 4096}) {
      BOOST_REQUIRE(
          absl::IsDataLoss(OpenRunBytes(good + std::string(more, '\0'), VerifyLevel::kMetadata)));
    }
  }
}

// The first byte of a section of a file in memory.
char* SectionOf(std::string* bytes, RunSection id) {
  const auto file = RequireOk(OpenBytes(*bytes, kRunFileFormat, VerifyLevel::kMetadata));
  return bytes->data() + file.Find(static_cast<uint32_t>(id))->offset;
}

BOOST_AUTO_TEST_CASE(forged_properties_with_right_checksums_are_refused) {
  const std::vector<std::function<void(RunProperties*)>> forgeries = {
      [](RunProperties* p) { p->key_kind = 0; },
      [](RunProperties* p) { p->key_kind = 4; },
      [](RunProperties* p) { p->key_kind = 257; },
      [](RunProperties* p) { p->key_kind = p->key_kind == 3 ? 1 : 3; },
      [](RunProperties* p) { p->offset_bytes = 2; },
      [](RunProperties* p) { p->offset_bytes = p->offset_bytes == 4 ? 8 : 4; },
      [](RunProperties* p) { p->entries += 1; },
      [](RunProperties* p) { p->entries = UINT32_MAX; },
      [](RunProperties* p) { p->entries = UINT64_MAX; },
      [](RunProperties* p) { p->entries = uint64_t{1} << 62; },
      [](RunProperties* p) { p->distinct_keys = p->entries + 1; },
      [](RunProperties* p) { p->distinct_keys = UINT64_MAX; },
      [](RunProperties* p) { p->distinct_keys = p->entries == 0 ? 1 : 0; },
      [](RunProperties* p) { p->rows_bound += 1; },
      [](RunProperties* p) { p->rows_bound -= 1; },
      [](RunProperties* p) { p->rows_bound = UINT64_MAX; },
      [](RunProperties* p) { p->key_bytes += 1; },
      [](RunProperties* p) { p->key_bytes = UINT64_MAX; },
  };
  for (const std::string& good : SmallRuns()) {
    for (size_t i = 0; i < forgeries.size(); ++i) {
      std::string bytes = good;
      forgeries[i](reinterpret_cast<RunProperties*>(SectionOf(&bytes, RunSection::kProperties)));
      RepairChecksums(&bytes);
      const absl::Status s = OpenRunBytes(bytes, VerifyLevel::kFull);
      BOOST_TEST(absl::IsDataLoss(s), "forgery " << i << ": " << s);
    }
  }
}

template <typename Offset>
void RefuseForgedOffsets(RunFileOptions options) {
  const std::string good = BytesOfRun(kFewStrings, options);
  const auto heap_size = static_cast<Offset>(KeyBytes(kFewStrings.keys));
  for (const auto& [at, offset] : {std::pair<size_t, Offset>{0, 1},
                                   {5, heap_size - 1},
                                   {5, heap_size + 1},
                                   {5, std::numeric_limits<Offset>::max()},
                                   {3, std::numeric_limits<Offset>::max()},
                                   {3, heap_size},
                                   {4, 0},
                                   {2, heap_size + 1}}) {
    std::string bytes = good;
    reinterpret_cast<Offset*>(SectionOf(&bytes, RunSection::kKeyOffsets))[at] = offset;
    RepairChecksums(&bytes);
    const absl::Status s = OpenRunBytes(bytes, VerifyLevel::kFull);
    BOOST_TEST(absl::IsDataLoss(s), "offset " << at << " = " << offset << ": " << s);
    BOOST_TEST(s.message().find("key offsets") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(offsets_that_descend_or_leave_the_heap_are_refused) {
  RefuseForgedOffsets<uint32_t>({});
  RefuseForgedOffsets<uint64_t>({.wide_offsets = true});
}

// What is said of a file, its checksums made right, which must be refused at either level.
std::string RefusalOf(std::string bytes) {
  RepairChecksums(&bytes);
  const absl::Status full = OpenRunBytes(bytes, VerifyLevel::kFull);
  BOOST_TEST(absl::IsDataLoss(full), full);
  BOOST_TEST(OpenRunBytes(bytes, VerifyLevel::kMetadata) == full);
  return std::string(full.message());
}

BOOST_AUTO_TEST_CASE(row_ids_beyond_their_bound_are_refused) {
  for (const std::string& good : SmallRuns()) {
    std::string bytes = good;
    const auto file = OpenBytes(bytes, kRunFileFormat, VerifyLevel::kMetadata);
    if (file->Find(static_cast<uint32_t>(RunSection::kRowIds))->size == 0) continue;
    reinterpret_cast<RowId*>(SectionOf(&bytes, RunSection::kRowIds))[1] = kNoRow;
    RefusalOf(bytes);
  }
}

BOOST_AUTO_TEST_CASE(entries_out_of_order_are_refused) {
  std::mt19937_64 random = TestRandom();
  // Long enough for several tasks of the check.
  const auto entries = RandomEntries<uint64_t>(random, 600'000, 300'000);
  const std::string good = BytesOfRun(entries);
  for (const size_t at : {size_t{1}, size_t{262'143}, size_t{262'144}, size_t{599'999}}) {
    std::string bytes = good;
    auto* const keys = reinterpret_cast<uint64_t*>(SectionOf(&bytes, RunSection::kKeys));
    keys[at] = keys[0] - 1;
    const std::string refusal = RefusalOf(bytes);
    const std::string neighbours = std::to_string(at - 1) + " and " + std::to_string(at) + " ";
    BOOST_TEST(refusal.find("entries " + neighbours) != std::string::npos, refusal);
  }
  for (const std::string& run : SmallRuns()) {
    std::string bytes = run;
    const auto file = OpenBytes(bytes, kRunFileFormat, VerifyLevel::kMetadata);
    if (file->Find(static_cast<uint32_t>(RunSection::kRowIds))->size == 0) continue;
    auto* const rows = reinterpret_cast<RowId*>(SectionOf(&bytes, RunSection::kRowIds));
    if (file->Find(static_cast<uint32_t>(RunSection::kKeyHeap)) != nullptr) {
      std::swap(rows[3], rows[4]);  // of one key
      RefusalOf(bytes);
      std::swap(rows[3], rows[4]);
      SectionOf(&bytes, RunSection::kKeyHeap)[0] = 'c';
    } else {
      std::swap(rows[0], rows[1]);
    }
    const std::string refusal = RefusalOf(bytes);
    const bool named = refusal.find("entries 0 and 1 ") != std::string::npos ||
                       refusal.find("entries 1 and 2 ") != std::string::npos;
    BOOST_TEST(named, refusal);
  }
}

BOOST_AUTO_TEST_CASE(a_wrong_number_of_distinct_keys_is_refused) {
  for (const std::string& good : SmallRuns()) {
    std::string bytes = good;
    auto* const p = reinterpret_cast<RunProperties*>(SectionOf(&bytes, RunSection::kProperties));
    if (p->entries == 0) continue;
    ++p->distinct_keys;
    BOOST_REQUIRE(p->distinct_keys <= p->entries);
    RefusalOf(bytes);
  }
}

BOOST_AUTO_TEST_CASE(random_damage_under_right_checksums_is_refused_or_leaves_a_run) {
  std::mt19937_64 random = TestRandom();
  const std::vector<std::string> runs = SmallRuns();
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = runs[random() % runs.size()];
    for (uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      const size_t at = random() % 2 == 0 ? random() % 200 : random() % bytes.size();
      bytes[at] = static_cast<char>(random());
    }
    RepairChecksums(&bytes);
    for (VerifyLevel level : {VerifyLevel::kMetadata, VerifyLevel::kFull}) {
      auto file = OpenBytes(bytes, kRunFileFormat, level);
      if (!file.ok()) continue;
      const auto run = OpenRun(*std::move(file));
      if (run.ok()) RequireOk(run->run.CheckOrder());
    }
  }
}

BOOST_AUTO_TEST_CASE(metadata_alone_still_checks_the_properties) {
  std::string bytes = BytesOfRun(kFewStrings);
  SectionOf(&bytes, RunSection::kProperties)[16] ^= 1;  // distinct_keys, without a right checksum
  BOOST_CHECK(absl::IsDataLoss(OpenRunBytes(bytes, VerifyLevel::kMetadata)));
}

// What `fill` makes of a writer whose Begin promised three u32 entries.
absl::Status Misuse(const std::function<absl::Status(RunFileWriter*)>& fill) {
  TemporaryDirectory directory;
  absl::Status result;
  {
    auto writer = RequireOk(RunFileWriter::Create(directory / "run", KeyKind::kU32));
    RequireOk(writer->Begin(3, 12));
    result = fill(writer.get());
    BOOST_CHECK(writer->Finish() == result);  // the error stays
  }
  BOOST_TEST(!std::filesystem::exists(directory / "run"));
  return result;
}

absl::Status Append(RunFileWriter* writer, std::vector<uint32_t> keys, std::vector<RowId> rows) {
  return writer->Append(absl::MakeConstSpan(keys), rows);
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
          RunFileWriter::Create(directory / std::to_string(number++), KeyKind::kBytes).value();
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
        RunFileWriter::Create(directory / std::to_string(promised), KeyKind::kBytes).value();
    RequireOk(writer->Begin(1, promised));
    const std::vector<std::string_view> keys = {"abc"};
    absl::Status s = writer->Append(absl::MakeConstSpan(keys), std::vector<RowId>{0});
    BOOST_CHECK(absl::IsInternal(finish(writer.get(), s)));
  }
  auto writer = RunFileWriter::Create(directory / "many", KeyKind::kBytes).value();
  BOOST_CHECK(absl::IsResourceExhausted(writer->Begin(kMaxEntries + 1, 0)));
  writer = RunFileWriter::Create(directory / "long", KeyKind::kBytes).value();
  BOOST_CHECK(absl::IsResourceExhausted(writer->Begin(1, UINT64_MAX)));
}

BOOST_AUTO_TEST_CASE(offsets_have_four_bytes_as_long_as_the_heap_allows_it) {
  TemporaryDirectory directory;
  for (const auto& [key_bytes, offset_bytes] :
       {std::pair<uint64_t, uint32_t>{0, 4}, {UINT32_MAX, 4}, {uint64_t{1} << 32, 8}}) {
    auto writer = RunFileWriter::Create(directory / "run", KeyKind::kBytes).value();
    RequireOk(writer->Begin(1000, key_bytes));
    BOOST_TEST(writer->properties().offset_bytes == offset_bytes);
  }
}

BOOST_AUTO_TEST_CASE(other_sections_travel_with_the_run) {
  TemporaryDirectory directory;
  const auto id = static_cast<uint32_t>(RunSection::kFirstExtra);
  auto writer = RunFileWriter::Create(directory / "run", KeyKind::kU32).value();
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

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
