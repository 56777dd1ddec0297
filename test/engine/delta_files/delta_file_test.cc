#include "engine/delta_files/delta_file.h"

#include <sys/resource.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "index/query/physical_key.h"
#include "test/forged_file.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(delta_file_test, *StartsNoThread())
namespace {

constexpr PhysicalType kKinds[] = {PhysicalType::kU32, PhysicalType::kU64, PhysicalType::kBytes};

// The contents of updates in comparable form, with keys as text, in order.
struct Contents {
  PhysicalType kind;
  std::map<std::string, std::vector<std::string>> rows;
  std::vector<std::pair<std::string, std::string>> deleted_ranges;

  bool operator==(const Contents&) const = default;

  void Add(const RowUpdates& updates) {
    kind = updates.keys.kind();
    uint64_t k = 0;
    for (size_t row = 0; row < updates.rows(); ++row) {
      const auto [added, is_new] = rows.try_emplace(std::string(updates.primary_keys[row]));
      if (!is_new) BOOST_FAIL("row " << row << " comes twice");
      for (; k < updates.row_ends[row]; ++k) {
        added->second.push_back(WithPhysicalKey(kind, [&](auto type) {
          const auto key = KeyAt<typename decltype(type)::type>(updates.keys, k);
          if constexpr (std::is_integral_v<std::remove_const_t<decltype(key)>>) {
            return std::to_string(key);
          } else {
            return std::string(key);
          }
        }));
      }
    }
    for (size_t i = 0; i < updates.deleted_from.size(); ++i) {
      deleted_ranges.emplace_back(updates.deleted_from[i], updates.deleted_to[i]);
    }
  }
};

Contents ContentsOf(const RowUpdates& updates) {
  Contents contents;
  contents.Add(updates);
  return contents;
}

// Reads a file, `rows_at_a_time` rows at a time; primary keys must ascend.
Contents ReadAll(const DeltaFile& file, size_t rows_at_a_time) {
  Contents contents;
  DeltaReader reader(file);
  RowUpdates slice;
  std::string before;
  while (reader.Next(rows_at_a_time, &slice)) {
    if (slice.rows() > rows_at_a_time) BOOST_FAIL("a slice of " << slice.rows() << " rows");
    for (size_t row = 0; row < slice.rows(); ++row) {
      if (before > slice.primary_keys[row]) BOOST_FAIL("a descent at row " << row);
      before = slice.primary_keys[row];
    }
    contents.Add(slice);
  }
  return contents;
}

void AppendKey(uint64_t number, EncodedKeys* keys) {
  switch (keys->kind()) {
    case PhysicalType::kU32:
      return keys->AppendU32(static_cast<uint32_t>(number));
    case PhysicalType::kU64:
      return keys->AppendU64(number);
    case PhysicalType::kBytes:
      return keys->AppendBytes(std::string(number % 4, '\0') + std::to_string(number % 1000));
  }
}

RowUpdates RandomUpdates(PhysicalType kind, size_t rows, std::mt19937_64& random) {
  RowUpdates updates(kind);
  std::map<std::string, int> seen;
  while (updates.rows() < rows) {
    std::string primary_key(random() % 12, '\0');
    for (char& c : primary_key) c = static_cast<char>(random() % 4 * 85);
    if (seen[primary_key]++ > 0) continue;
    for (size_t keys = random() % 4; keys > 0; --keys) AppendKey(random(), &updates.keys);
    updates.EndRow(primary_key);
  }
  for (size_t ranges = random() % 4; ranges > 0; --ranges) {
    updates.DeleteRange(std::string(random() % 3, '\0'), std::to_string(random() % 10));
  }
  return updates;
}

// A few rows with all unusual properties.
RowUpdates OddUpdates(PhysicalType kind) {
  RowUpdates updates(kind);
  updates.EndRow(std::string("z\0", 2));  // without a key
  for (uint64_t key : {3, 0, 7}) AppendKey(key, &updates.keys);
  updates.EndRow("");
  AppendKey(UINT64_MAX, &updates.keys);
  updates.EndRow(std::string(1, '\0'));
  updates.DeleteRange("", "a");
  updates.DeleteRange("z", "b");  // crossed
  return updates;
}

// A directory for a test's delta files.
struct Directory {
  TemporaryDirectory parent;
  std::unique_ptr<IndexDirectory> index = *IndexDirectory::OpenForWrite(parent / "index");

  size_t files() const {
    size_t files = 0;
    for (const auto& file : std::filesystem::directory_iterator(index->path())) {
      files += file.path().filename() != "LOCK";
    }
    return files;
  }
  std::string Write(const RowUpdates& updates) {
    const auto written = RequireOk(WriteDelta(index.get(), updates, 10, 20));
    return index->PathOf(written.name);
  }
};

BOOST_AUTO_TEST_CASE(updates_of_every_kind_round_trip) {
  Directory directory;
  auto random = TestRandom();
  for (PhysicalType kind : kKinds) {
    for (size_t rows : {0, 1, 2, 3, 100, 5000}) {
      const RowUpdates updates = RandomUpdates(kind, rows, random);
      const auto written = RequireOk(WriteDelta(directory.index.get(), updates, 1000, 1000 + rows));
      for (VerifyLevel level : {VerifyLevel::kMetadata, VerifyLevel::kFull}) {
        const auto file = RequireOk(OpenDelta(directory.index->PathOf(written.name), level));
        BOOST_CHECK(CheckIsManifestFile(written, file.file).ok());
        BOOST_TEST(file.properties.rows == updates.rows());
        BOOST_TEST(file.properties.keys == updates.keys.size());
        BOOST_TEST(file.properties.after == 1000u);
        BOOST_TEST(file.properties.sequence == 1000 + rows);
        for (size_t at_a_time : {size_t{1}, size_t{7}, SIZE_MAX}) {
          BOOST_CHECK(ReadAll(file, at_a_time) == ContentsOf(updates));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(odd_keys_round_trip) {
  Directory directory;
  for (PhysicalType kind : kKinds) {
    RowUpdates updates = OddUpdates(kind);
    updates.EndRow(std::string(100'000, 'p'));
    if (kind == PhysicalType::kBytes) {
      updates.keys.AppendBytes("");
      updates.keys.AppendBytes(std::string(70'000, '\0'));
      updates.EndRow("y");
    }
    const auto file = RequireOk(OpenDelta(directory.Write(updates), VerifyLevel::kFull));
    BOOST_CHECK(ReadAll(file, 2) == ContentsOf(updates));
  }
}

BOOST_AUTO_TEST_CASE(the_first_slice_has_the_deleted_ranges_even_without_rows) {
  Directory directory;
  RowUpdates updates(PhysicalType::kU64);
  updates.DeleteRange("a", "b");
  const auto file = RequireOk(OpenDelta(directory.Write(updates), VerifyLevel::kFull));
  DeltaReader reader(file);
  RowUpdates slice;
  BOOST_TEST(reader.Next(10, &slice));
  BOOST_TEST(slice.deleted_from.size() == 1u);
  BOOST_TEST(slice.rows() == 0u);
  BOOST_TEST(!reader.Next(10, &slice));
}

BOOST_AUTO_TEST_CASE(updates_that_contradict_themselves_are_refused_and_leave_no_file) {
  Directory directory;
  const auto refuse = [&](const RowUpdates& updates, const char* says) {
    const absl::Status status = WriteDelta(directory.index.get(), updates, 10, 20).status();
    BOOST_CHECK_MESSAGE(absl::IsInvalidArgument(status), status);
    BOOST_TEST(status.message().find(says) != std::string::npos, status);
    BOOST_TEST(directory.files() == 0u);
  };
  RowUpdates twice(PhysicalType::kU32);
  for (const char* primary_key : {"b", "a", "b"}) twice.EndRow(primary_key);
  refuse(twice, "'b' twice");
  RowUpdates keys_left(PhysicalType::kU32);
  keys_left.EndRow("a");
  keys_left.keys.AppendU32(1);
  refuse(keys_left, "number of keys, 1");
  RowUpdates half_a_range(PhysicalType::kU32);
  half_a_range.deleted_from.Append("");
  refuse(half_a_range, "1 begins, but 0 ends");
  BOOST_CHECK(
      absl::IsInvalidArgument(WriteDelta(directory.index.get(), RowUpdates(), 21, 20).status()));
  BOOST_TEST(directory.files() == 0u);
}

BOOST_AUTO_TEST_CASE(every_flipped_bit_and_every_other_length_is_data_loss) {
  Directory directory;
  for (PhysicalType kind : kKinds) {
    const std::string path = directory.Write(OddUpdates(kind));
    const std::string bytes = ReadFile(path);
    const auto expect_data_loss = [&](const std::string& damaged, size_t at) {
      const auto file = OpenBytes(damaged, kDeltaFileFormat, VerifyLevel::kFull);
      const absl::Status status = file.ok() ? OpenDelta(*file).status() : file.status();
      if (!absl::IsDataLoss(status)) BOOST_ERROR("damage at " << at << " is " << status);
      if (status.message().find("forged") == std::string::npos) BOOST_ERROR(status);
    };
    std::string damaged = bytes;
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      damaged[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      expect_data_loss(damaged, bit / 8);
      damaged[bit / 8] = bytes[bit / 8];
    }
    for (size_t size = 0; size < bytes.size(); ++size) {
      expect_data_loss(bytes.substr(0, size), size);
    }
    expect_data_loss(bytes + std::string(64, '\0'), bytes.size());
  }
}

// Errors that a checksum does not detect, since the hostile file has a correct one.
BOOST_AUTO_TEST_CASE(wrong_contents_under_right_checksums_are_data_loss_and_say_where) {
  Directory directory;
  for (PhysicalType kind : kKinds) {
    const std::string path = directory.Write(OddUpdates(kind));
    const std::string bytes = ReadFile(path);
    const SectionFile sound = *SectionFile::Open(path, kDeltaFileFormat, VerifyLevel::kFull);
    const auto refuse = [&](DeltaSection section, size_t offset, auto value, const char* says) {
      std::string forged = bytes;
      const Section& at = *sound.Find(static_cast<uint32_t>(section));
      BOOST_REQUIRE(offset + sizeof value <= at.size);
      std::memcpy(forged.data() + at.offset + offset, &value, sizeof value);
      RepairChecksums(&forged);
      for (VerifyLevel level : {VerifyLevel::kMetadata, VerifyLevel::kFull}) {
        const auto file = RequireOk(OpenBytes(forged, kDeltaFileFormat, level));
        const absl::Status status = OpenDelta(file).status();
        BOOST_CHECK_MESSAGE(absl::IsDataLoss(status), status);
        const std::string name = sound.SectionName(static_cast<uint32_t>(section));
        BOOST_TEST(status.message().find("section '" + name + "'") != std::string::npos, status);
        BOOST_TEST(status.message().find(says) != std::string::npos, status);
      }
    };
    const auto properties = [&](size_t offset, auto value, const char* says) {
      refuse(DeltaSection::kProperties, offset, value, says);
    };
    properties(offsetof(DeltaProperties, key_kind), uint32_t{0}, "unknown kind of keys 0");
    properties(offsetof(DeltaProperties, key_kind), uint32_t{4}, "unknown kind of keys 4");
    properties(offsetof(DeltaProperties, rows), ~uint64_t{0}, "rows");
    properties(offsetof(DeltaProperties, keys), ~uint64_t{0}, "keys");
    properties(offsetof(DeltaProperties, deleted_ranges), ~uint64_t{0}, "deleted ranges");
    properties(offsetof(DeltaProperties, after), uint64_t{21},
               "from sequence number 21 back to 20");
    refuse(DeltaSection::kPrimaryKeyLengths, 4, uint32_t{2}, "a sum of 4, expected 3");
    refuse(DeltaSection::kPrimaryKeyLengths, 4, ~uint32_t{0}, "expected 3");
    refuse(DeltaSection::kPrimaryKeys, 0, '\xff', "of rows 1 and 2 do not ascend");
    refuse(DeltaSection::kKeyCounts, 0, uint32_t{4}, "a sum of 5, expected 4");
    refuse(DeltaSection::kRangeEndLengths, 4, uint32_t{0}, "a sum of 2, expected 3");
    if (kind == PhysicalType::kBytes) {
      refuse(DeltaSection::kKeyLengths, 8, uint32_t{0x10000}, "expected");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_missing_file_is_not_found_and_another_type_of_file_data_loss) {
  Directory directory;
  const std::string path = directory.Write(OddUpdates(PhysicalType::kU32));
  BOOST_CHECK(absl::IsNotFound(OpenDelta(path + "x", VerifyLevel::kFull).status()));
  std::string bytes = ReadFile(path);
  bytes[7] = 'X';
  RepairChecksums(&bytes);
  WriteFile(path, bytes);
  BOOST_CHECK(absl::IsDataLoss(OpenDelta(path, VerifyLevel::kFull).status()));
}

BOOST_AUTO_TEST_CASE(a_file_size_limit_is_a_status_and_leaves_no_file) {
  Directory directory;
  auto random = TestRandom();
  const RowUpdates updates = RandomUpdates(PhysicalType::kBytes, 20'000, random);
  rlimit before;
  BOOST_REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  for (rlim_t bytes : {100, 2000, 200'000}) {
    rlimit limit = before;
    limit.rlim_cur = bytes;
    BOOST_REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    const absl::Status status = WriteDelta(directory.index.get(), updates, 1, 2).status();
    BOOST_REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
    BOOST_CHECK_MESSAGE(absl::IsResourceExhausted(status), status);
    BOOST_TEST(directory.files() == 0u);
  }
  std::signal(SIGXFSZ, handler);
  BOOST_CHECK(WriteDelta(directory.index.get(), updates, 1, 2).ok());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
