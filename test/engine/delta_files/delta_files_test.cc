#include "engine/delta_files/delta_files.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/delta_files/update_merge.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(delta_files_test, *StartsNoThread())
namespace {

std::string Name(uint64_t row) {
  const std::string digits = std::to_string(row);
  return "row" + std::string(10 - digits.size(), '0') + digits;
}

// An index's delta files, and the rows that they must contain.
struct Deltas {
  // Stores some rows, each with the next number as its key. Returns the number of bytes written.
  uint64_t Add(const std::vector<uint64_t>& numbers) {
    RowUpdates updates(PhysicalType::kU64);
    const std::set<uint64_t> ascending(numbers.begin(), numbers.end());
    for (uint64_t number : ascending) {
      rows[Name(number)] = ++last_key;
      updates.keys.AppendU64(last_key);
      updates.EndRow(Name(number));
    }
    Manifest next = manifest;
    next.sequence += numbers.size();
    RequireOk(
        AddDelta(std::move(updates), manifest.sequence, next.sequence, directory.get(), &next));
    const uint64_t bytes = next.files.back().size;
    Publish(std::move(next));
    return bytes;
  }
  // Returns false if there is nothing to merge.
  bool Merge(uint64_t* bytes = nullptr) {
    const auto merged = RequireOk(MergeDeltas(manifest, PhysicalType::kU64, directory.get()));
    if (!merged.has_value()) return false;
    Manifest next = manifest;
    BOOST_REQUIRE(merged->Replace(&next));
    if (bytes != nullptr) *bytes += merged->file.size;
    Publish(std::move(next));
    return true;
  }
  void Publish(Manifest next) {
    RequireOk(directory->Publish(std::move(next)));
    manifest = *directory->manifest();
  }
  size_t files() const { return DeltaFilesOf(manifest).size(); }
  void Check() const {
    const auto opened =
        RequireOk(OpenDeltas(directory->path(), DeltaFilesOf(manifest), PhysicalType::kU64,
                             manifest.sequence, VerifyLevel::kFull, 1, FileSystem::Posix()));
    UpdateMerge merge(PhysicalType::kU64);
    for (const DeltaFile& file : opened) merge.Add(file);
    RowUpdates updates;
    merge.Next(SIZE_MAX, &updates);
    std::map<std::string, uint64_t> found;
    for (size_t i = 0; i < updates.rows(); ++i) {
      found[std::string(updates.primary_keys[i])] = updates.keys.u64(i);
    }
    BOOST_REQUIRE((found == rows));
    // No other files remain.
    size_t on_disk = 0;
    for (const auto& file : std::filesystem::directory_iterator(directory->path())) {
      on_disk += file.path().extension() == ".upd";
    }
    BOOST_TEST(on_disk == files());
  }

  TemporaryDirectory parent;
  std::unique_ptr<IndexDirectory> directory = *IndexDirectory::OpenForWrite(parent / "index");
  Manifest manifest;
  std::map<std::string, uint64_t> rows;
  uint64_t last_key = 0;
};

std::vector<uint64_t> From(uint64_t first, uint64_t count) {
  std::vector<uint64_t> numbers;
  for (uint64_t i = 0; i < count; ++i) numbers.push_back(first + i);
  return numbers;
}

std::vector<uint64_t> Some(uint64_t count, std::mt19937_64& random) {
  std::vector<uint64_t> numbers = From(0, count);
  for (uint64_t& number : numbers) number = random() % 1'000'000;
  return numbers;
}

}  // namespace

BOOST_AUTO_TEST_CASE(one_row_costs_little_whatever_there_is) {
  Deltas deltas;
  const uint64_t large = deltas.Add(From(0, 100'000));
  BOOST_TEST(large > 2'000'000u);
  const std::string first = deltas.manifest.files[0].name;
  uint64_t most = 0, all = 0;
  const size_t stores = FewerSanitized(3000, 4, 1);
  for (uint64_t i = 0; i < stores; ++i) {
    const uint64_t bytes = deltas.Add({i % 2 == 0 ? 200'000 + i : 7 * i});
    most = std::max(most, bytes);
    all += bytes;
  }
  BOOST_TEST(most < 40'000u);
  BOOST_TEST(all < stores * 12'000);
  BOOST_TEST(deltas.manifest.files[0].name == first);
  BOOST_TEST(deltas.files() < 16u);
  deltas.Check();
}

BOOST_AUTO_TEST_CASE(what_is_large_is_not_written_again_with_what_is_large) {
  Deltas deltas;
  for (uint64_t i = 0; i < 5; ++i) {
    const uint64_t bytes = deltas.Add(From(i * 10'000, 10'000));
    BOOST_TEST(bytes < 350'000u);
  }
  BOOST_TEST(deltas.files() == 5u);
  deltas.Check();
  BOOST_TEST(deltas.Merge());
  BOOST_TEST(deltas.files() == 1u);
  deltas.Check();
  BOOST_TEST(!deltas.Merge());
}

// Like IndexedDB: from time to time, not after every store.
BOOST_AUTO_TEST_CASE(files_stay_few_and_rows_are_written_a_few_times) {
  auto random = TestRandom();
  Deltas deltas;
  uint64_t written = 0, rows = 0;
  size_t most = 0;
  for (size_t i = 0; i < FewerSanitized(1500, 4, 1); ++i) {
    const uint64_t count = 1 + random() % 100;
    rows += count;
    written += deltas.Add(Some(count, random));
    if (i % 20 == 0) {
      while (deltas.Merge(&written)) {
      }
    }
    most = std::max(most, deltas.files());
  }
  deltas.Check();
  BOOST_TEST(most < 40u);
  // 29 bytes per row; the geometric bound, and small files that are merged in addition.
  const double bytes_a_row = static_cast<double>(written) / static_cast<double>(rows);
  BOOST_TEST(bytes_a_row < 29 * 3 * std::log2(1500.0));
}

BOOST_AUTO_TEST_CASE(hot_rows_take_room_once) {
  Deltas deltas;
  for (size_t i = 0; i < FewerSanitized(400, 4, 1); ++i) {
    deltas.Add(From(0, 2000));
    if (deltas.files() >= 16) deltas.Merge();
  }
  while (deltas.Merge()) {
  }
  uint64_t bytes = 0;
  for (const ManifestFile& file : DeltaFilesOf(deltas.manifest)) bytes += file.size;
  BOOST_TEST(bytes < 3u * 2000 * 40);
  deltas.Check();
}

BOOST_AUTO_TEST_CASE(files_that_others_took_meanwhile_are_not_replaced) {
  Deltas deltas;
  for (uint64_t i = 0; i < 4; ++i) deltas.Add(From(i * 10'000, 3000));
  const auto merged = *MergeDeltas(deltas.manifest, PhysicalType::kU64, deltas.directory.get());
  BOOST_REQUIRE(merged.has_value());
  BOOST_TEST(merged->merged.size() == 4u);
  for (size_t gone = 0; gone < 4; ++gone) {
    Manifest next = deltas.manifest;
    next.files.erase(next.files.begin() + static_cast<ptrdiff_t>(gone));
    BOOST_TEST(!merged->Replace(&next));
  }
  // Later files are kept after the merged one.
  deltas.Add(From(5, 10));
  Manifest next = deltas.manifest;
  BOOST_TEST(merged->Replace(&next));
  BOOST_TEST(next.files.size() == 2u);
  BOOST_TEST(next.files[0].name == merged->file.name);
  deltas.Publish(std::move(next));
  deltas.Check();
}

BOOST_AUTO_TEST_CASE(a_damaged_file_is_not_written_again) {
  Deltas deltas;
  for (uint64_t i = 0; i < 2; ++i) deltas.Add(From(i * 10'000, 3000));
  for (const uint64_t row : {90'000, 90'001}) deltas.Add({row});
  const auto damage = [&](const ManifestFile& file) {
    const std::string path = deltas.directory->PathOf(file.name);
    std::string bytes = ReadFile(path);
    bytes[bytes.size() / 2 - 100] ^= 1;
    WriteFile(path, bytes);
  };
  for (const ManifestFile& file : DeltaFilesOf(deltas.manifest)) damage(file);
  Manifest next = deltas.manifest;
  RowUpdates updates(PhysicalType::kU64);
  updates.EndRow("row");
  const absl::Status added =
      AddDelta(updates, next.sequence, next.sequence + 1, deltas.directory.get(), &next);
  BOOST_TEST(absl::IsDataLoss(added), added);
  BOOST_TEST((next == deltas.manifest));
  const absl::Status merged =
      MergeDeltas(next, PhysicalType::kU64, deltas.directory.get()).status();
  BOOST_TEST(absl::IsDataLoss(merged), merged);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
