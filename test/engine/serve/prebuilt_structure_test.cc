// BuildOptions::prebuild_search_structure: which indexes have leaves, that they have the same
// results as others, and that opening them does not read everything.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/sharding.h"
#include "engine/rows/row_table_file.h"
#include "index/files/run_file.h"
#include "test/engine/serve/built_index.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(prebuilt_structure_test)
namespace {

constexpr char kU32[] = "value.field('|',0):u32";
constexpr char kU64[] = "value.field('|',0):u64";
constexpr int kRows = 20000;  // enough for cpu:auto to use packed leaves

// Values of up to nine digits; some are frequent, or they are spread evenly.
void Fill(TestDatabase* db, int rows = kRows, bool even = false) {
  std::mt19937_64 random = TestRandom();
  for (int i = 0; i < rows; ++i) {
    const uint64_t value = even ? random() % 1000000000 : random() % 5000 * 7919;
    db->Put("row" + std::to_string(i), std::to_string(value));
  }
}

BuildOptions WithLeaves() {
  BuildOptions options;
  options.prebuild_search_structure = true;
  options.threads = 2;
  return options;
}

OpenOptions Quick(bool copy = false) {
  OpenOptions options;
  options.verify = VerifyLevel::kMetadata;
  options.calibration = Calibration::kNone;
  options.load_into_memory = copy;
  options.threads = 2;
  return options;
}

// The only file in an index whose name begins with `prefix`.
std::string FileOf(const std::string& directory, const std::string& prefix) {
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().filename().string().rfind(prefix, 0) == 0) found = entry.path().string();
  }
  BOOST_REQUIRE(!found.empty());
  return found;
}

bool HasLeaves(const std::string& directory) {
  return RequireOk(OpenRun(FileOf(directory, "base"), VerifyLevel::kFull)).has_leaves();
}

IndexStats::OrderedIndex Searched(const SecondaryIndex& index) {
  return RequireOk(index.Stats()).ordered_indexes.at(0);
}

BOOST_AUTO_TEST_CASE(stored_leaves_answer_as_built_ones_do) {
  TestDatabase db;
  Fill(&db);
  for (const char* spec : {kU32, kU64}) {
    const auto built = Build(db, spec);
    BOOST_TEST(!HasLeaves(db.Beside("index")));
    const Strings expected = All(*built);
    const IndexStats::OrderedIndex in_memory = Searched(*built);
    BOOST_TEST(in_memory.mapped_bytes == 0u);
    for (VerifyLevel verify : {VerifyLevel::kMetadata, VerifyLevel::kFull}) {
      RequireOk(SecondaryIndex::Build(*db.Source(), Spec(spec), db.Beside("stored"), WithLeaves())
                    .status());
      BOOST_TEST(HasLeaves(db.Beside("stored")));
      for (bool copy : {false, true}) {
        OpenOptions options = Quick(copy);
        options.verify = verify;
        const auto index = RequireOk(SecondaryIndex::Open(db.Beside("stored"), options));
        BOOST_TEST((All(*index) == expected));
        const IndexStats::OrderedIndex stored = Searched(*index);
        BOOST_TEST(stored.description == in_memory.description);
        BOOST_TEST((stored.mapped_bytes == 0) == copy);
        BOOST_TEST((stored.bytes < 10000) == !copy);
        RequireOk(index->Verify());
        std::vector<std::string> differences;
        RequireOk(index->VerifyAgainst(*db.Source(), 10, &differences));
        BOOST_TEST(differences.empty());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(without_the_option_files_are_what_they_were) {
  TestDatabase db;
  Fill(&db, 1000);
  for (const char* spec : {kU32, "value:text"}) {
    Build(db, spec);
    BuildOptions none;
    none.prebuild_search_structure = std::string(spec) == "value:text";  // text never has one
    RequireOk(SecondaryIndex::Build(*db.Source(), Spec(spec), db.Beside("other"), none).status());
    const auto read = [&](const char* name) {
      std::ifstream file(FileOf(db.Beside(name), "base"), std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(file), {});
    };
    BOOST_TEST((read("index") == read("other")));
  }
}

BOOST_AUTO_TEST_CASE(leaves_cost_no_budget) {
  TestDatabase db;
  Fill(&db);
  Build(db, kU32, WithLeaves());
  OpenOptions options = Quick();
  options.host_memory_budget = 1;
  const auto index = RequireOk(SecondaryIndex::Open(db.Beside("index"), options));
  BOOST_TEST(Searched(*index).description.rfind("cpu:packed", 0) == 0u);
}

BOOST_AUTO_TEST_CASE(merges_and_catching_up_keep_the_choice) {
  TestDatabase db;
  Fill(&db);
  for (bool leaves : {true, false}) {
    BuildOptions options = WithLeaves();
    options.prebuild_search_structure = leaves;
    RequireOk(
        SecondaryIndex::Build(*db.Source(), Spec(kU64), db.Beside("other"), options).status());
    auto index = RequireOk(SecondaryIndex::Open(db.Beside("other"), Quick()));
    for (int i = 0; i < 300; ++i) db.Put("new" + std::to_string(i), std::to_string(i * 31));
    for (int i = 0; i < 300; ++i) db.Delete("row" + std::to_string(i));
    const Strings expected = All(*Build(db, kU64));
    db.Put("last", "123456789");
    RequireOk(index->CatchUp(*db.Source()).status());
    BOOST_TEST(All(*index).size() == expected.size() + 1);
    // Opening also verifies stored leaves if there is a delta.
    BOOST_TEST(All(*RequireOk(SecondaryIndex::Open(db.Beside("other"), Quick()))).size() ==
               expected.size() + 1);
    RequireOk(index->Compact());
    BOOST_TEST(HasLeaves(db.Beside("other")) == leaves);
    BOOST_TEST(All(*index).size() == expected.size() + 1);
    index = RequireOk(SecondaryIndex::Open(db.Beside("other"), Quick()));
    BOOST_TEST((Searched(*index).mapped_bytes != 0) == leaves);
    BOOST_TEST(All(*index).size() == expected.size() + 1);
    RequireOk(index->Verify());
    db.Delete("last");
    for (int i = 0; i < 300; ++i) {
      db.Delete("new" + std::to_string(i));
      db.Put("row" + std::to_string(i), "7");
    }
  }
}

BOOST_AUTO_TEST_CASE(shards_have_leaves_and_segments_have_none) {
  TestDatabase db;
  Fill(&db, 3 * kRows);
  ShardedBuildOptions options;
  options.shards = 2;
  options.build = WithLeaves();
  RequireOk(BuildSharded(*db.Source(), Spec(kU32), db.Beside("shards"), options).status());
  size_t shards = 0;
  for (const auto& entry : std::filesystem::directory_iterator(db.Beside("shards"))) {
    if (entry.is_directory()) shards += HasLeaves(entry.path().string());
  }
  BOOST_TEST(shards == 2u);
  const auto index = RequireOk(SecondaryIndex::Open(db.Beside("shards"), Quick()));
  BOOST_TEST(Searched(*index).mapped_bytes != 0u);
  Build(db, kU32);
  FindResult all, expected;
  RequireOk(index->Scan(RangeBatch::Everything(index->kind()), &all));
  const auto one = RequireOk(SecondaryIndex::Open(db.Beside("index"), Quick()));
  RequireOk(one->Scan(RangeBatch::Everything(one->kind()), &expected));
  BOOST_TEST(all.row_ids.size() == expected.row_ids.size());

  const auto source = db.Source();
  const auto ranges = RequireOk(source->Split(1));
  RequireOk(
      ExtractSegment(*source, ranges[0], Spec(kU32), db.Beside("segment"), WithLeaves()).status());
  BOOST_TEST(!HasLeaves(db.Beside("segment")));
}

// Changes bytes of a section of a file without its checksums. Returns false if there is no such
// section.
bool Damage(const std::string& path, const FileFormat& format, RunSection id,
            std::mt19937_64& random) {
  const auto file = RequireOk(SectionFile::Open(path, format, VerifyLevel::kMetadata));
  const Section* const section = file.Find(static_cast<uint32_t>(id));
  if (section == nullptr || section->size == 0) return false;
  std::fstream bytes(path, std::ios::binary | std::ios::in | std::ios::out);
  for (uint64_t i = 0, changes = 20 + random() % 3000; i < changes; ++i) {
    bytes.seekp(static_cast<std::streamoff>(section->offset + random() % section->size));
    bytes.put(static_cast<char>(random() % 2 == 0 ? 0xff : random()));
  }
  return true;
}

// Runs every kind of query; errors must be DataLoss or name rows that do not exist.
void AskAll(TestDatabase& db, const SecondaryIndex& index, std::mt19937_64& random) {
  const auto expect = [](const absl::Status& s) {
    BOOST_REQUIRE_MESSAGE(s.ok() || absl::IsDataLoss(s) || absl::IsOutOfRange(s), s);
  };
  EncodedKeys keys(index.kind()), upper(index.kind());
  for (int i = 0; i < 600; ++i) {
    const uint64_t key = random() % 2 == 0 ? random() % 1000000000 : random() % 5000 * 7919;
    for (auto [column, value] : {std::pair{&keys, key}, {&upper, key + random() % 1000000}}) {
      if (index.kind() == PhysicalType::kU32) {
        column->AppendU32(static_cast<uint32_t>(value));
      } else {
        column->AppendU64(value);
      }
    }
  }
  FindResult matches;
  std::vector<GlobalRowId> rows(keys.size());
  std::vector<uint64_t> counts(keys.size());
  expect(index.FindFirst(keys.Batch(), absl::MakeSpan(rows)));
  expect(index.Find(keys.Batch(), &matches));
  RangeBatch ranges = RangeBatch::HalfOpen(keys.Batch(), upper.Batch());
  expect(index.Count(ranges, absl::MakeSpan(counts)));
  StringList primary_keys;
  for (Order order : {Order::kAscending, Order::kDescending}) {
    for (uint64_t limit : {uint64_t{3}, QueryOptions().limit}) {
      QueryOptions options;
      options.order = order;
      options.limit = limit;
      options.with_keys = true;
      const absl::Status s = index.Scan(ranges, &matches, options);
      expect(s);
      if (!s.ok()) continue;
      expect(index.PrimaryKeys(matches, &primary_keys));
      if (limit != 3) continue;
      RangeBatch next = ranges;
      const std::vector<std::string> cursors = matches.cursors;
      next.after = cursors;
      expect(index.Scan(next, &matches, options));
      FetchResult fetched;
      expect(index.Fetch(*db.Source(), ranges, options, &fetched));
    }
  }
}

void CheckDamaged(bool even, const char* spec, std::mt19937_64& random) {
  TestDatabase db;
  Fill(&db, kRows, even);
  const size_t rounds = FewerSanitized(6, 3, 6);
  for (const RunSection section :
       {RunSection::kKeys, RunSection::kRowIds, RunSection::kLeaves, RunSection::kCells,
        RunSection::kCellGroups, RunSection::kLeafSeparators, RunSection::kLeafTree,
        RunSection::kProperties}) {
    // Damages the row table instead of the properties.
    const bool rows = section == RunSection::kProperties;
    for (size_t round = 0; round < rounds; ++round) {
      Build(db, spec, WithLeaves());
      const std::string file = FileOf(db.Beside("index"), rows ? "rows" : "base");
      const bool damaged = rows ? Damage(file, kRowTableFileFormat, RunSection::kProperties, random)
                                : Damage(file, kRunFileFormat, section, random);
      if (!damaged) break;
      const auto index = SecondaryIndex::Open(db.Beside("index"), Quick());
      if (!index.ok()) {
        BOOST_TEST(absl::IsDataLoss(index.status()));
        continue;
      }
      AskAll(db, **index, random);
      BOOST_TEST(absl::IsDataLoss((*index)->Verify()));
      // Everything is read before a delta relies on it.
      db.Put("more", std::to_string(round));
      std::vector<std::string> differences;
      const absl::Status s = (*index)->CatchUp(*db.Source()).status();
      BOOST_TEST(absl::IsDataLoss(s), s);
      BOOST_TEST(absl::IsDataLoss((*index)->VerifyAgainst(*db.Source(), 10, &differences)));
      AskAll(db, **index, random);
      db.Delete("more");
    }
  }
}

BOOST_AUTO_TEST_CASE(whatever_is_left_unread_is_survived_and_found_before_it_is_relied_on) {
  std::mt19937_64 random = TestRandom();
  for (bool even : {false, true}) {
    for (const char* spec : {kU32, kU64}) {
      if (kUnderTsan && (even || spec == kU32)) continue;
      CheckDamaged(even, spec, random);
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
