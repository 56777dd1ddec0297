#include "index/files/run_file.h"

#include <boost/test/unit_test.hpp>
#include <functional>
#include <vector>

#include "index/machine/status_macros.h"
#include "test/forged_file.h"
#include "test/index/files/run_entries.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(run_file_damage_test)
namespace {

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

BOOST_AUTO_TEST_CASE(every_flipped_bit_is_found, *StartsNoThread()) {
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

// The error for a file, whose checksums are repaired. Both levels must reject it.
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

BOOST_AUTO_TEST_CASE(random_damage_under_right_checksums_is_refused_or_leaves_a_run,
                     *StartsNoThread()) {
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

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
