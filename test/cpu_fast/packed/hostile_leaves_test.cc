// Sections of leaves with correct checksums and wrong bytes.
#include <algorithm>
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "cpu_fast/packed/leaves_check.h"
#include "test/cpu_fast/packed/leaf_file.h"
#include "test/cpu_fast/packed/packed_sets.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(hostile_leaves_test)
namespace {

using DataTypes = boost::mpl::list<uint32_t, uint64_t>;

constexpr RunSection kLeafSections[] = {RunSection::kLeafProperties, RunSection::kLeaves,
                                        RunSection::kCells,          RunSection::kCellGroups,
                                        RunSection::kGroupBounds,    RunSection::kLeafSeparators,
                                        RunSection::kLeafTree};

// Files small enough to change each byte of, with directories of every kind.
template <typename Key>
std::vector<std::string> SmallFiles() {
  std::vector<Key> few = {0, 1, 1, 5, static_cast<Key>(~Key{0})}, even, ends;
  for (Key i = 0; i < 300; ++i) even.push_back(static_cast<Key>(i * 7));
  for (Key i = 0; i < 90; ++i) {
    ends.push_back(i);
    ends.push_back(static_cast<Key>(~i));
  }
  std::vector<std::string> files;
  files.push_back(LeafFile(oracle::FinishIntegers("none", std::vector<Key>{})));
  files.push_back(LeafFile(oracle::FinishIntegers("few", few)));
  const auto data = oracle::FinishIntegers("even", even);
  files.push_back(LeafFile(data, {LeafDirectory::kTree, 0, {}}));
  files.push_back(LeafFile(data, {LeafDirectory::kCells, 0, {}}));
  files.push_back(LeafFile(oracle::FinishIntegers("ends", ends)));
  return files;
}

// Files with groups of cells, few and many, and trees of several levels.
template <typename Key>
std::vector<std::string> LargeFiles() {
  std::vector<std::string> files;
  std::vector<OracleData<Key>> sets = UnevenSets<Key>();
  for (OracleData<Key>& data : EvenSets<Key>()) {
    if (data.keys.size() == 5000) sets.push_back(std::move(data));
  }
  for (const OracleData<Key>& data : sets) {
    if (data.keys.size() > 70000) continue;
    files.push_back(LeafFile(data));
    files.push_back(LeafFile(data, {LeafDirectory::kTree, 0, {}}));
  }
  const Key apart = ~Key{0} / 70;
  std::vector<Key> clusters(40000);
  for (size_t i = 0; i < clusters.size(); ++i) {
    clusters[i] = static_cast<Key>(apart * (i % 70) + i / 70 * 3);
  }
  files.push_back(LeafFile(oracle::FinishIntegers("70 clusters", clusters)));
  return files;
}

// Queries leaves of any origin, at every SIMD level: positions and rows must be some of the run's.
template <typename Key>
void Ask(const OpenLeafFile& opened, std::mt19937_64& random) {
  const SortedRun& run = opened.file.run;
  std::vector<Key> queries = {0, 1, std::numeric_limits<Key>::max(),
                              std::numeric_limits<Key>::max() - 1};
  for (int i = 0; i < 200; ++i) {
    queries.push_back(static_cast<Key>(random() >> random() % 64));
    if (!run.empty()) queries.push_back(run.keys<Key>()[random() % run.size()]);
  }
  std::vector<Position> lower(queries.size()), upper(queries.size());
  std::vector<RowId> rows(queries.size());
  FindResult matches;
  for (SimdLevel level : SupportedSimdLevels()) {
    for (LeafMemory memory : {LeafMemory::kMapped, LeafMemory::kCopied}) {
      const auto index =
          OpenPackedIndex(run, {LeafDirectory::kAuto, 0, level}, *opened.leaves, memory);
      if (!index.ok()) {
        BOOST_REQUIRE(absl::IsDataLoss(index.status()));
        return;
      }
      const KeyBatch batch(queries);
      RequireOk((*index)->Execute(Batch::FindFirst(batch, absl::MakeSpan(rows))));
      RequireOk((*index)->Execute(
          Batch::EqualRange(batch, absl::MakeSpan(lower), absl::MakeSpan(upper))));
      RequireOk((*index)->Execute(Batch::Find(batch, &matches)));
      for (size_t i = 0; i < queries.size(); ++i) {
        BOOST_REQUIRE(lower[i] <= upper[i]);
        BOOST_REQUIRE(upper[i] <= run.size());
        BOOST_REQUIRE((rows[i] == kNoRow || rows[i] < opened.file.properties.rows_bound));
      }
    }
  }
}

template <typename Key>
void OpenAndAsk(std::string bytes, std::mt19937_64& random) {
  RepairChecksums(&bytes);
  const auto opened = OpenLeaves(bytes);
  if (!opened.ok()) {
    // A forged header may name another major version.
    BOOST_REQUIRE(absl::IsDataLoss(opened.status()) || absl::IsFailedPrecondition(opened.status()));
  } else if (opened->leaves.has_value()) {
    Ask<Key>(*opened, random);
  }
}

BOOST_TEST_DECORATOR(*StartsNoThread())
BOOST_AUTO_TEST_CASE_TEMPLATE(a_full_check_finds_every_changed_byte, Key, DataTypes) {
  for (const std::string& good : SmallFiles<Key>()) {
    const auto opened = RequireOk(OpenLeaves(good, VerifyLevel::kFull));
    RequireOk(CheckStoredLeaves(opened.file.run, *opened.leaves, 1));
    for (RunSection section : kLeafSections) {
      const auto [offset, size] = PlaceOfSection(good, section);
      for (size_t i = 0; i < size; ++i) {
        std::string bytes = good;
        bytes[offset + i] = static_cast<char>(bytes[offset + i] ^ (1 << i % 8));
        BOOST_REQUIRE(absl::IsDataLoss(OpenLeaves(bytes, VerifyLevel::kFull).status()));
        RepairChecksums(&bytes);
        const auto forged = OpenLeaves(bytes, VerifyLevel::kFull);
        absl::Status s = forged.status();
        // Leaves of another version are none.
        if (s.ok() && !forged->leaves.has_value()) {
          BOOST_REQUIRE(section == RunSection::kLeafProperties);
          BOOST_REQUIRE(i < sizeof(uint32_t));
          continue;
        }
        if (s.ok()) s = CheckStoredLeaves(forged->file.run, *forged->leaves, 1);
        BOOST_REQUIRE_MESSAGE(absl::IsDataLoss(s),
                              "byte " << i << " of " << static_cast<int>(section) << ": " << s);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(every_truncation_is_found, Key, DataTypes) {
  for (const std::string& good : SmallFiles<Key>()) {
    for (size_t size = 0; size<good.size(); size += good.size()> 5000 ? 17 : 1) {
      BOOST_REQUIRE(absl::IsDataLoss(OpenLeaves(good.substr(0, size)).status()));
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(forged_properties_are_refused, Key, DataTypes) {
  const std::vector<std::function<void(LeafProperties*)>> forgeries = {
      [](LeafProperties* p) { p->bits = 0; },
      [](LeafProperties* p) { p->bits = 48; },
      [](LeafProperties* p) { p->bits = 128; },
      [](LeafProperties* p) { p->bits = sizeof(Key) == 4 ? 64 : 8; },
      [](LeafProperties* p) { p->directory = 0; },
      [](LeafProperties* p) { p->directory = 3; },
      [](LeafProperties* p) { p->directory = 3 - p->directory; },
      [](LeafProperties* p) { p->exact = 2; },
      [](LeafProperties* p) { p->leaves = 0; },
      [](LeafProperties* p) { p->leaves += 1; },
      [](LeafProperties* p) { p->leaves = UINT64_MAX; },
      [](LeafProperties* p) { p->leaves = uint64_t{1} << 58; },
      [](LeafProperties* p) { p->cells += 1; },
      [](LeafProperties* p) { p->cells = UINT64_MAX; },
      [](LeafProperties* p) { p->cells = uint64_t{1} << 58; },
      [](LeafProperties* p) { p->groups += 1; },
      [](LeafProperties* p) { p->groups = UINT64_MAX; },
  };
  for (const std::string& good : SmallFiles<Key>()) {
    for (size_t i = 0; i < forgeries.size(); ++i) {
      std::string bytes = good;
      forgeries[i](reinterpret_cast<LeafProperties*>(
          bytes.data() + PlaceOfSection(good, RunSection::kLeafProperties).first));
      RepairChecksums(&bytes);
      const auto opened = OpenLeaves(bytes);
      absl::Status s = opened.status();
      if (s.ok()) {
        s = OpenPackedIndex(opened->file.run, {}, *opened->leaves, LeafMemory::kMapped).status();
      }
      BOOST_TEST(absl::IsDataLoss(s), "forgery " << i << ": " << s);
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(random_sections_are_searched_within_their_bounds, Key, DataTypes) {
  auto random = TestRandom(32);
  const size_t rounds = FewerSanitized(12, 3, 12);
  for (const std::string& good : LargeFiles<Key>()) {
    for (RunSection section : kLeafSections) {
      const auto [offset, size] = PlaceOfSection(good, section);
      for (size_t round = 0; round < rounds && size != 0; ++round) {
        std::string bytes = good;
        // All of it, or some bytes, of one value or of many.
        const size_t changes = round % 3 == 0 ? size : 1 + random() % 64;
        const bool ones = round % 4 == 3;
        for (size_t i = 0; i < changes; ++i) {
          const size_t at = changes == size ? i : random() % size;
          bytes[offset + at] = static_cast<char>(ones ? 0xff : random());
        }
        OpenAndAsk<Key>(std::move(bytes), random);
      }
    }
  }
}

BOOST_TEST_DECORATOR(*StartsNoThread())
BOOST_AUTO_TEST_CASE_TEMPLATE(random_damage_anywhere_is_refused_or_searched, Key, DataTypes) {
  auto random = TestRandom(33);
  const std::vector<std::string> files = SmallFiles<Key>();
  const size_t rounds = FewerSanitized(3000, 8, 1);
  for (size_t round = 0; round < rounds; ++round) {
    const std::string& good = files[random() % files.size()];
    std::string bytes = good;
    const auto [offset, size] =
        PlaceOfSection(good, kLeafSections[random() % std::size(kLeafSections)]);
    for (uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      const size_t at = size == 0 || random() % 8 == 0 ? random() % 1024 : offset + random() % size;
      bytes[at] = static_cast<char>(random());
    }
    OpenAndAsk<Key>(std::move(bytes), random);
  }
}

BOOST_AUTO_TEST_CASE(leaves_of_another_version_are_passed_over) {
  std::string bytes = SmallFiles<uint32_t>()[2];
  const size_t at = PlaceOfSection(bytes, RunSection::kLeafProperties).first;
  const uint32_t version = kLeavesVersion + 1;
  std::memcpy(bytes.data() + at, &version, sizeof(version));
  RepairChecksums(&bytes);
  const auto opened = RequireOk(OpenLeaves(bytes, VerifyLevel::kFull));
  BOOST_TEST(!opened.leaves.has_value());
}

BOOST_AUTO_TEST_CASE(a_missing_section_is_refused) {
  for (RunSection missing : kLeafSections) {
    if (missing == RunSection::kLeafProperties) continue;
    for (const std::string& good : SmallFiles<uint32_t>()) {
      if (PlaceOfSection(good, missing).first == 0) continue;
      std::string bytes = good;
      // Under an unknown id.
      const auto file = RequireOk(OpenBytes(good, kRunFileFormat, VerifyLevel::kMetadata));
      for (size_t i = 0; i < file.sections().size(); ++i) {
        if (file.sections()[i].id != static_cast<uint32_t>(missing)) continue;
        bytes[sizeof(FileHeader) + i * sizeof(Section)] = 99;
      }
      RepairChecksums(&bytes);
      const auto opened = RequireOk(OpenLeaves(bytes));
      const auto index = OpenPackedIndex(opened.file.run, {}, *opened.leaves, LeafMemory::kMapped);
      BOOST_TEST(absl::IsDataLoss(index.status()));
      BOOST_TEST(absl::IsDataLoss(CheckStoredLeaves(opened.file.run, *opened.leaves, 1)));
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
