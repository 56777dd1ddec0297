#include <boost/test/unit_test.hpp>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "index/columns/column_file.h"
#include "index/machine/status_macros.h"
#include "test/forged_file.h"
#include "test/index/columns/column_files.h"
#include "test/index/columns/values.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(column_file_damage_test, *StartsNoThread())
namespace {

// Few rows of columns of every encoding.
Columns FewColumns(std::mt19937_64& random) {
  constexpr size_t kRows = 1050;
  Columns columns;
  columns.Add("n", DataType::kI32, RandomValues(DataType::kI32, kRows, 10, random));
  std::vector<OwnedValue> decimals, codes, strings;
  for (size_t i = 0; i < kRows; ++i) {
    decimals.push_back({static_cast<double>(random() % 100) / 10, false, {}});
    codes.push_back({std::monostate(), true, random() % 2 == 0 ? "yes, indeed" : "no"});
    strings.push_back({std::monostate(), true, std::string(random() % 3, static_cast<char>(i))});
  }
  columns.Add("decimals", DataType::kF64, decimals);
  columns.Add("codes", DataType::kText, codes);
  columns.Add("strings", DataType::kBytes, strings);
  return columns;
}

std::string BytesOfColumns(const Columns& columns, std::mt19937_64& random) {
  const TemporaryDirectory directory;
  WriteColumns(directory / "columns", columns, 5000, random);
  return ReadFile(directory / "columns");
}

absl::StatusOr<ColumnTable> OpenForged(std::string_view bytes, VerifyLevel level) {
  ASSIGN_OR_RETURN(auto file, OpenBytes(bytes, kColumnFileFormat, level));
  ASSIGN_OR_RETURN(auto opened, OpenColumnFile(std::move(file), level, 1));
  return opened.table;
}

// Calls everything of a table that could be opened: right answers, or DataLoss.
void Exercise(const ColumnTable& table, VerifyLevel level, std::mt19937_64& random) {
  for (size_t i = 0; i < table.columns().size(); ++i) {
    ColumnValues values(table.columns()[i].type);
    std::vector<RowId> rows;
    for (int r = 0; r < 50 && table.rows() != 0; ++r) {
      rows.push_back(static_cast<RowId>(random() % table.rows()));
    }
    const uint64_t end = std::min<uint64_t>(table.rows(), 3000);
    for (const absl::Status& status :
         {table.Gather(i, rows, &values), table.Read(i, 0, end, &values)}) {
      BOOST_REQUIRE((status.ok() || absl::IsDataLoss(status)));
      BOOST_REQUIRE((status.ok() || level == VerifyLevel::kMetadata));
      if (!status.ok()) BOOST_REQUIRE(Mentions(status, "'forged' is damaged: section 'blocks'"));
    }
    BOOST_REQUIRE(table.column_bytes(i) <= table.memory_bytes());
  }
}

// The first byte of a section of a file in memory.
char* SectionOf(std::string* bytes, ColumnSection id) {
  const auto file = RequireOk(OpenBytes(*bytes, kColumnFileFormat, VerifyLevel::kMetadata));
  return bytes->data() + file.Find(static_cast<uint32_t>(id))->offset;
}

BOOST_AUTO_TEST_CASE(every_flipped_bit_is_found) {
  auto random = TestRandom();
  const std::string good = BytesOfColumns(FewColumns(random), random);
  RequireOk(OpenForged(good, VerifyLevel::kFull));
  const size_t step = kUnderAsan || kUnderTsan ? 31 : 3;
  for (size_t bit = 0; bit < good.size() * 8; bit += step) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const absl::Status s = OpenForged(bytes, VerifyLevel::kFull).status();
    BOOST_REQUIRE_MESSAGE(absl::IsDataLoss(s), "bit " << bit << ": " << s);
  }
}

BOOST_AUTO_TEST_CASE(every_truncation_is_found) {
  auto random = TestRandom();
  const std::string good = BytesOfColumns(FewColumns(random), random);
  for (size_t size = 0; size < good.size(); size += 7) {
    BOOST_REQUIRE(absl::IsDataLoss(
        OpenForged(std::string_view(good).substr(0, size), VerifyLevel::kMetadata).status()));
  }
}

// Each byte but those of the blocks, which are many, flipped under right checksums.
BOOST_AUTO_TEST_CASE(flipped_bytes_with_right_checksums_are_refused_or_leave_a_table) {
  auto random = TestRandom();
  const std::string good = BytesOfColumns(FewColumns(random), random);
  size_t refused = 0, opened = 0;
  for (size_t at = sizeof(FileHeader); at < good.size(); at += 1 + random() % 4) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ (random() % 2 == 0 ? 0xFF : 1 << random() % 8));
    RepairChecksums(&bytes);
    for (VerifyLevel level : {VerifyLevel::kMetadata, VerifyLevel::kFull}) {
      const auto table = OpenForged(bytes, level);
      if (table.ok()) {
        Exercise(*table, level, random);
        ++opened;
      } else {
        BOOST_REQUIRE(absl::IsDataLoss(table.status()));
        ++refused;
      }
    }
  }
  BOOST_TEST(refused > 100u);
  BOOST_TEST(opened > 100u);
}

BOOST_AUTO_TEST_CASE(random_damage_under_right_checksums_is_refused_or_leaves_a_table) {
  auto random = TestRandom();
  const std::string good = BytesOfColumns(FewColumns(random), random);
  const ColumnSection sections[] = {ColumnSection::kProperties, ColumnSection::kColumns,
                                    ColumnSection::kBlocks, ColumnSection::kDirectory,
                                    ColumnSection::kDictionaryEnds};
  for (size_t round = 0; round < FewerSanitized(4000, 5, 20); ++round) {
    std::string bytes = good;
    char* const section = SectionOf(&bytes, sections[round % std::size(sections)]);
    const size_t most = static_cast<size_t>(bytes.data() + bytes.size() - section);
    for (uint64_t times = 1 + random() % 3; times > 0; --times) {
      const size_t at = random() % std::min<size_t>(most, 300);
      section[at] = static_cast<char>(random() % 3 == 0 ? 0xFF : random());
    }
    RepairChecksums(&bytes);
    for (VerifyLevel level : {VerifyLevel::kMetadata, VerifyLevel::kFull}) {
      const auto table = OpenForged(bytes, level);
      if (table.ok()) Exercise(*table, level, random);
    }
  }
}

BOOST_AUTO_TEST_CASE(forged_directories_are_refused) {
  auto random = TestRandom();
  const Columns columns = FewColumns(random);
  const std::string good = BytesOfColumns(columns, random);
  const std::vector<std::function<void(ColumnBlock*)>> forgeries = {
      [](ColumnBlock* b) { b->width = 58; },
      [](ColumnBlock* b) { b->width = 255; },
      [](ColumnBlock* b) { b->offset_high = 0xFFFF; },
      [](ColumnBlock* b) { b->offset_low = UINT32_MAX; },
      [](ColumnBlock* b) { b->offset_low = UINT32_MAX, b->offset_high = 0xFFFF; },
      [](ColumnBlock* b) { b->form = 0xFF; },
      [](ColumnBlock* b) { b->form ^= 2; },                       // strings of numbers, and reverse
      [](ColumnBlock* b) { b->form = (b->form & 7) | 31 << 3; },  // 10^31
  };
  for (size_t block = 0; block < 2 * columns.schemas.size(); ++block) {
    for (size_t i = 0; i < forgeries.size(); ++i) {
      std::string bytes = good;
      forgeries[i](reinterpret_cast<ColumnBlock*>(SectionOf(&bytes, ColumnSection::kDirectory)) +
                   block);
      RepairChecksums(&bytes);
      const absl::Status status = OpenForged(bytes, VerifyLevel::kMetadata).status();
      BOOST_TEST(absl::IsDataLoss(status), "block " << block << ", forgery " << i << status);
      BOOST_TEST(Mentions(status, "section 'directory', column '"));
    }
  }
}

// Damage that only a read of the block can detect.
BOOST_AUTO_TEST_CASE(strings_outside_of_their_block_are_found_when_they_are_read) {
  auto random = TestRandom();
  const std::string good = BytesOfColumns(FewColumns(random), random);
  for (const size_t column : {2, 3}) {
    for (const uint64_t base : {uint64_t{1} << 30, UINT64_MAX / 1024}) {
      std::string bytes = good;
      reinterpret_cast<ColumnBlock*>(SectionOf(&bytes, ColumnSection::kDirectory))[2 * column]
          .base = base;
      RepairChecksums(&bytes);
      const absl::Status full = OpenForged(bytes, VerifyLevel::kFull).status();
      BOOST_TEST(absl::IsDataLoss(full), full);
      const ColumnTable table = RequireOk(OpenForged(bytes, VerifyLevel::kMetadata));
      ColumnValues values(table.columns()[column].type);
      BOOST_TEST(absl::IsDataLoss(table.Read(column, 0, 1050, &values)));
      const std::vector<RowId> rows = {1040, 5, 1023};
      const absl::Status status = table.Gather(column, rows, &values);
      BOOST_TEST(absl::IsDataLoss(status), status);
      BOOST_TEST(Mentions(status, "section 'blocks', column '"));
      BOOST_TEST(Mentions(status, "block 0: row 5 has a string outside of it"));
      BOOST_TEST(values.empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_wrong_number_of_nulls_is_refused) {
  auto random = TestRandom();
  std::string bytes = BytesOfColumns(FewColumns(random), random);
  ++reinterpret_cast<ColumnRecord*>(SectionOf(&bytes, ColumnSection::kColumns))->nulls;
  RepairChecksums(&bytes);
  BOOST_TEST(Mentions(OpenForged(bytes, VerifyLevel::kFull).status(), "column 'n': "));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
