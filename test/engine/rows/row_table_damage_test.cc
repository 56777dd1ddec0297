#include "engine/rows/row_table.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/rows/row_table_writer.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/cold_reads.h"
#include "test/engine/rows/row_tables.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(row_table_damage_test)
namespace {

// Calls all methods of a table that could be opened: none may fail, and every key is found.
void Exercise(const RowTable& table, const Keys& keys, std::mt19937_64& random) {
  StringList column;
  std::vector<RowId> rows;
  for (int i = 0; i < 200 && table.rows() != 0; ++i) {
    rows.push_back(static_cast<RowId>(random() % table.rows()));
  }
  RequireOk(table.PrimaryKeys(rows, &column));
  std::vector<std::string_view> read;
  for (size_t i = 0; i < column.size(); ++i) read.push_back(column[i]);
  std::vector<RowId> found(rows.size());
  RequireOk(table.Find(read, absl::MakeSpan(found)));
  BOOST_REQUIRE(found == rows);
  found.resize(keys.size());
  RequireOk(table.LowerBound(Views(keys), absl::MakeSpan(found)));
}

// Reads rows of a table whose keys have not been checked: the damage may be found or not.
void ReadUnchecked(const RowTable& table, std::mt19937_64& random) {
  std::vector<RowId> rows;
  for (int i = 0; i < 20 && table.rows() != 0; ++i) {
    rows.push_back(static_cast<RowId>(random() % table.rows()));
  }
  for (const bool requests : {true, false}) {
    ColdReads::always_for_tests = requests;
    StringList column;
    const absl::Status status = table.PrimaryKeys(rows, &column);
    if (status.ok()) BOOST_REQUIRE(column.size() == rows.size());
    if (!status.ok()) BOOST_REQUIRE(absl::IsDataLoss(status));
  }
}

BOOST_AUTO_TEST_CASE(damaged_bytes_are_refused_or_leave_a_table) {
  auto random = TestRandom();
  const Keys keys = RandomKeys(2500, 20, 5, random);
  const Parts parts = Cut(keys, 4, random);
  const Keys probes = Keys(keys.begin(), keys.begin() + 200);
  MemorySink good;
  Write(parts, &good);
  size_t refused = 0;
  for (int round = 0; round < 3000; ++round) {
    MemorySink bad = good;
    std::string& bytes = bad.section(static_cast<RowTableSection>(1 + round % 5));
    switch (random() % 4) {
      case 0:
        bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
        break;
      case 1:
        for (int i = 0; i < 8; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
        break;
      case 2:
        bytes.resize(random() % bytes.size());
        break;
      case 3: {
        // A number of 8 bytes, huge or slightly off.
        const size_t at = random() % bytes.size() / 8 * 8;
        uint64_t number = 0;
        std::memcpy(&number, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
        number = random() % 2 == 0 ? UINT64_MAX - random() % 64 : number + random() % 64 - 32;
        std::memcpy(bytes.data() + at, &number, std::min<size_t>(8, bytes.size() - at));
        break;
      }
    }
    const auto unchecked = bad.Open(1, ContentCheck::kLater);
    if (unchecked.ok()) ReadUnchecked(*unchecked, random);
    const auto table = bad.Open();
    if (table.ok()) {
      ColdReads::always_for_tests = round % 2 == 0;
      Exercise(*table, probes, random);
      ColdReads::always_for_tests = false;
    } else {
      BOOST_REQUIRE(absl::IsDataLoss(table.status()));
      BOOST_REQUIRE(table.status().message().find("test.tbl") != std::string::npos);
      ++refused;
    }
  }
  BOOST_TEST(refused > 1000u);
}

BOOST_AUTO_TEST_CASE(keys_that_were_swapped_are_refused) {
  MemorySink sink;
  Write({{"aa1", "aa2", "aa3"}}, &sink);
  std::string& blocks = sink.section(RowTableSection::kBlocks);
  std::swap(blocks[blocks.size() - 1], blocks[blocks.size() - 2]);
  const absl::Status status = sink.Open().status();
  BOOST_CHECK(absl::IsDataLoss(status));
  BOOST_CHECK(status.message().find("rows 1 and 2") != std::string::npos);
}

// Blocks of several tasks of the check, and the first and the last block of a task.
BOOST_AUTO_TEST_CASE(blocks_that_were_swapped_are_refused) {
  Keys keys;
  for (int i = 0; i < 200'000; ++i) keys.push_back(absl::StrFormat("%08d", i));
  MemorySink good;
  Write({keys}, &good);
  RequireOk(good.Open(3));
  for (const size_t block : {size_t{0}, size_t{4094}, size_t{4095}, size_t{4096}, size_t{12'498}}) {
    MemorySink bad = good;
    auto* const offsets =
        reinterpret_cast<uint64_t*>(bad.section(RowTableSection::kBlockOffsets).data());
    std::swap(offsets[block], offsets[block + 1]);
    BOOST_TEST(absl::IsDataLoss(bad.Open(3).status()), "block " << block);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
