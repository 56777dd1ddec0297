#include "cpu_fast/packed/stored_leaves.h"

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cpu_fast/packed/leaves_check.h"
#include "test/cpu_fast/packed/leaf_file.h"
#include "test/cpu_fast/packed/packed_sets.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(stored_leaves_test)
namespace {

using DataTypes = boost::mpl::list<uint32_t, uint64_t>;

// Compares the leaves in a file with the oracle, at each SIMD level, and as a copy.
template <typename Key>
void CheckOpened(const OpenLeafFile& opened, const OracleData<Key>& data,
                 const PackedIndexOptions& options) {
  RequireOk(CheckStoredLeaves(opened.file.run, *opened.leaves, 2));
  for (SimdLevel level : SupportedSimdLevels()) {
    PackedIndexOptions with_level = options;
    with_level.simd = level;
    const auto built = RequireOk(MakePackedIndex(opened.file.run, with_level));
    const auto mapped = RequireOk(
        OpenPackedIndex(opened.file.run, with_level, *opened.leaves, LeafMemory::kMapped));
    BOOST_TEST(mapped->description() == built->description());
    CheckPointsAgainstOracle(*mapped, data);
    CheckPointsAgainstOracle(*mapped, data, 129);
    if (level != SupportedSimdLevels().back()) continue;
    const auto copied = RequireOk(
        OpenPackedIndex(opened.file.run, with_level, *opened.leaves, LeafMemory::kCopied));
    CheckPointsAgainstOracle(*copied, data);
    BOOST_TEST(mapped->mapped_bytes() >= sizeof(Leaf));
    BOOST_TEST(mapped->memory_bytes() <= 4096 * sizeof(CellScale<Key>) + 4096 * sizeof(Key) * 2);
    BOOST_TEST(copied->mapped_bytes() == 0);
    BOOST_TEST(copied->memory_bytes() >= mapped->mapped_bytes());
  }
}

template <typename Key>
void CheckRoundTrips(const std::vector<OracleData<Key>>& sets) {
  for (const OracleData<Key>& data : sets) {
    for (LeafDirectory directory :
         {LeafDirectory::kAuto, LeafDirectory::kCells, LeafDirectory::kTree}) {
      for (int bits : {0, 16, 32, 64}) {
        if (bits > static_cast<int>(sizeof(Key)) * 8) continue;
        if (bits != 0 && (data.keys.size() > 5000 || directory == LeafDirectory::kAuto)) continue;
        const PackedIndexOptions options{directory, bits, {}};
        if (!MakePackedIndex(OracleRun(data), options).ok()) {
          BOOST_REQUIRE(directory == LeafDirectory::kCells);
          continue;
        }
        BOOST_TEST_CONTEXT(data.name << ", directory " << static_cast<int>(directory) << ", bits "
                                     << bits) {
          const auto opened = RequireOk(OpenLeaves(LeafFile(data, options), VerifyLevel::kFull));
          BOOST_REQUIRE(opened.leaves.has_value());
          BOOST_TEST(AreLeavesOf(*opened.leaves, options));
          CheckOpened(opened, data, options);
        }
      }
    }
  }
}

BOOST_TEST_DECORATOR(*StartsNoThread())
BOOST_AUTO_TEST_CASE_TEMPLATE(leaves_of_every_set_are_read_as_they_were_written, Key, DataTypes) {
  CheckRoundTrips(OracleCatalogue<Key>(kUnderAsan ? 2000 : 20000));
}

BOOST_TEST_DECORATOR(*StartsNoThread())
BOOST_AUTO_TEST_CASE_TEMPLATE(leaves_of_even_and_uneven_sets_are_too, Key, DataTypes) {
  std::vector<OracleData<Key>> sets = UnevenSets<Key>();
  for (OracleData<Key>& data : EvenSets<Key>()) sets.push_back(std::move(data));
  if (kUnderAsan) {
    std::erase_if(sets, [](const auto& data) { return data.keys.size() > 30000; });
  }
  CheckRoundTrips(sets);
}

BOOST_TEST_DECORATOR(*StartsNoThread())
BOOST_AUTO_TEST_CASE_TEMPLATE(sizes_around_powers_of_two, Key, DataTypes) {
  auto random = TestRandom(21);
  for (size_t power = 0; power <= 15; power += 3) {
    for (size_t size : {(size_t{1} << power) - 1, size_t{1} << power, (size_t{1} << power) + 1}) {
      std::vector<Key> keys(size);
      for (Key& key : keys) key = static_cast<Key>(random() >> random() % 16);
      const auto data = oracle::FinishIntegers("size " + std::to_string(size), std::move(keys));
      const auto opened = RequireOk(OpenLeaves(LeafFile(data), VerifyLevel::kFull));
      CheckOpened(opened, data, {});
      const auto index =
          RequireOk(OpenPackedIndex(opened.file.run, {}, *opened.leaves, LeafMemory::kMapped));
      CheckAgainstOracle(*index, data);
    }
  }
}

BOOST_AUTO_TEST_CASE(threads_do_not_change_the_file) {
  auto random = TestRandom(22);
  std::vector<uint32_t> keys(300000);
  for (uint32_t& key : keys) key = static_cast<uint32_t>(random());
  const auto data = oracle::FinishIntegers("even", std::move(keys));
  const std::string file = LeafFile(data, {}, 1);
  BOOST_TEST((LeafFile(data, {}, 4) == file));
}

BOOST_AUTO_TEST_CASE(other_leaves_than_those_asked_for_are_not_taken) {
  const auto data = oracle::FinishIntegers("few", std::vector<uint64_t>{1, 2, 3});
  const auto opened = RequireOk(OpenLeaves(LeafFile(data, {LeafDirectory::kTree, 32, {}})));
  BOOST_TEST(AreLeavesOf(*opened.leaves, {}));
  BOOST_TEST(AreLeavesOf(*opened.leaves, {LeafDirectory::kTree, 0, {}}));
  BOOST_TEST(AreLeavesOf(*opened.leaves, {LeafDirectory::kAuto, 32, {}}));
  BOOST_TEST(!AreLeavesOf(*opened.leaves, {LeafDirectory::kCells, 0, {}}));
  BOOST_TEST(!AreLeavesOf(*opened.leaves, {LeafDirectory::kAuto, 64, {}}));
  const auto refused = OpenPackedIndex(SortedRun(), {}, *opened.leaves, LeafMemory::kMapped);
  BOOST_TEST(absl::IsInternal(refused.status()));
}

BOOST_AUTO_TEST_CASE(keys_of_bytes_have_no_leaves) {
  const TemporaryDirectory directory;
  const std::string_view keys[] = {"a", "b"};
  const RowId rows[] = {0, 1};
  for (bool leaves : {false, true}) {
    auto writer =
        RequireOk(RunFileWriter::Create(directory / (leaves ? "b" : "a"), PhysicalType::kBytes));
    RequireOk(writer->Begin(2, 2));
    RequireOk(writer->Append(absl::MakeConstSpan(keys), rows));
    if (leaves) RequireOk(WriteLeaves(writer.get(), 1));
    RequireOk(writer->Finish());
  }
  BOOST_TEST((ReadFile(directory / "a") == ReadFile(directory / "b")));
  const auto opened = RequireOk(OpenLeaves(ReadFile(directory / "b")));
  BOOST_TEST(!opened.leaves.has_value());
}

BOOST_AUTO_TEST_CASE(leaves_need_all_entries) {
  const TemporaryDirectory directory;
  auto writer = RequireOk(RunFileWriter::Create(directory / "run", PhysicalType::kU32));
  BOOST_TEST(absl::IsInternal(WriteLeaves(writer.get(), 1)));
  writer = RequireOk(RunFileWriter::Create(directory / "other", PhysicalType::kU32));
  RequireOk(writer->Begin(2, 8));
  const uint32_t keys[] = {1};
  const RowId rows[] = {0};
  RequireOk(writer->Append(absl::MakeConstSpan(keys), rows));
  BOOST_TEST(absl::IsInternal(WriteLeaves(writer.get(), 1)));
  BOOST_TEST(absl::IsInternal(writer->Finish()));
}

BOOST_AUTO_TEST_CASE(entries_are_read_back_of_every_kind) {
  const TemporaryDirectory directory;
  const std::string_view keys[] = {"", "a", "bc"};
  const RowId rows[] = {3, 1, 2};
  for (bool wide : {false, true}) {
    auto writer = RequireOk(RunFileWriter::Create(directory / (wide ? "b" : "a"),
                                                  PhysicalType::kBytes, {.wide_offsets = wide}));
    RequireOk(writer->Begin(3, 3));
    RequireOk(writer->Append(absl::MakeConstSpan(keys), rows));
    const SortedRun run = RequireOk(writer->ReadBack());
    RequireOk(writer->Finish());
    BOOST_REQUIRE(run.size() == 3);
    for (size_t i = 0; i < 3; ++i) {
      BOOST_TEST(run.bytes()[i] == keys[i]);
      BOOST_TEST(run.row_ids()[i] == rows[i]);
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
