#include "engine/rows/row_table.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/rows/row_table_writer.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/cold_reads.h"
#include "test/engine/rows/row_tables.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(row_table_test)
namespace {

// Keys near `keys`: equal, just before, just after, and far away.
Keys Probes(const Keys& keys, std::mt19937_64& random) {
  Keys probes = {"", std::string(1, '\0'), "\xff\xff\xff\xff\xff\xff\xff\xff\xff", "k"};
  const size_t step = keys.size() / 500 + 1;
  for (size_t i = 0; i < keys.size(); i += step) {
    const std::string& key = keys[i];
    probes.push_back(key);
    probes.push_back(key + '\0');
    if (key.empty()) continue;
    probes.push_back(key.substr(0, key.size() - 1));
    probes.push_back(key.substr(0, random() % key.size()));
    std::string changed = key;
    ++changed[random() % changed.size()];
    probes.push_back(changed);
    changed = key;
    --changed.back();
    probes.push_back(changed + '\xff');
  }
  return probes;
}

// Checks every operation of a table over `parts` against the sorted keys themselves.
void Check(const Parts& parts) {
  MemorySink sink;
  Write(parts, &sink);
  auto table = RequireOk(sink.Open());
  Keys keys;
  for (const Keys& part : parts) keys.insert(keys.end(), part.begin(), part.end());
  BOOST_TEST(table.rows() == keys.size());

  auto random = TestRandom();
  std::vector<RowId> rows(keys.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<RowId>(i);
  std::shuffle(rows.begin(), rows.end(), random);
  StringList column;
  size_t wrong = 0;
  for (const bool requests : {true, false}) {
    ColdReads::always_for_tests = requests;
    column = StringList();
    RequireOk(table.PrimaryKeys(rows, &column));
    BOOST_REQUIRE(column.size() == rows.size());
    for (size_t i = 0; i < rows.size(); ++i) wrong += column[i] != keys[rows[i]];
    BOOST_TEST(wrong == 0u);
  }
  BOOST_CHECK(absl::IsOutOfRange(table.PrimaryKeys({static_cast<RowId>(keys.size())}, &column)));
  BOOST_CHECK(absl::IsOutOfRange(table.PrimaryKeys({kNoRow}, &column)));

  const Keys probes = Probes(keys, random);
  std::vector<RowId> lower(probes.size());
  std::vector<RowId> found(probes.size());
  RequireOk(table.LowerBound(Views(probes), absl::MakeSpan(lower)));
  RequireOk(table.Find(Views(probes), absl::MakeSpan(found)));
  for (size_t i = 0; i < probes.size(); ++i) {
    const auto at = std::lower_bound(keys.begin(), keys.end(), probes[i]);
    const auto expected = static_cast<RowId>(at - keys.begin());
    const RowId row = at != keys.end() && *at == probes[i] ? expected : kNoRow;
    if (lower[i] != expected || found[i] != row) ++wrong;
    if (i % 7 == 0 && *table.LowerBound(probes[i]) != expected) ++wrong;
    if (i % 7 == 1 && *table.Find(probes[i]) != row) ++wrong;
  }
  BOOST_TEST(wrong == 0u);
}

Keys BigEndian(size_t count, uint64_t stride) {
  Keys keys;
  for (size_t i = 0; i < count; ++i) {
    std::string key(8, '\0');
    const uint64_t number = __builtin_bswap64(i * stride);
    std::memcpy(key.data(), &number, sizeof number);
    keys.push_back(key);
  }
  return keys;
}

BOOST_AUTO_TEST_CASE(tables_of_every_small_size_and_around_powers_of_two_round_trip) {
  for (size_t count : {0,   1,   2,    3,    15,   16,   17,   31,   32,    33,    255,
                       256, 257, 1023, 1024, 1025, 2047, 2048, 2049, 65535, 65536, 65537}) {
    BOOST_TEST_CONTEXT("rows " << count) {
      Check({BigEndian(count, 3)});
    }
  }
}

BOOST_AUTO_TEST_CASE(a_table_without_parts_is_empty) {
  Check({});
  Check({{}, {}, {}});
  RowTable none;
  BOOST_TEST(none.rows() == 0u);
  StringList column;
  BOOST_CHECK(absl::IsOutOfRange(none.PrimaryKeys({0}, &column)));
  BOOST_TEST(*none.Find("a") == kNoRow);
  BOOST_TEST(*none.LowerBound("a") == 0u);
  BOOST_TEST(none.CheckKeys(1).ok());
}

BOOST_AUTO_TEST_CASE(keys_of_any_length_and_content_round_trip) {
  auto random = TestRandom();
  Check({RandomKeys(20000, 12, 256, random)});
  Check({RandomKeys(20000, 40, 2, random)});  // zeros and ones: prefixes of one another
  Check({RandomKeys(3000, 700, 3, random)});
  Check({{""}});
  Check({{"", std::string(1, '\0'), std::string(2, '\0'), std::string("\0a", 2), "a"}});
}

BOOST_AUTO_TEST_CASE(long_shared_prefixes_are_stored_once_a_block) {
  Keys keys;
  const std::string prefix(300, 'p');
  for (int i = 0; i < 5000; ++i) keys.push_back(prefix + absl::StrFormat("%06d", i));
  Check({keys});
  MemorySink sink;
  Write({keys}, &sink);
  BOOST_TEST(sink.section(RowTableSection::kBlocks).size() < keys.size() * 24);
}

BOOST_AUTO_TEST_CASE(keys_of_64_kb_and_more_round_trip) {
  auto random = TestRandom();
  std::set<std::string> keys;
  const std::string base(70000, 'x');
  for (int i = 0; i < 80; ++i) {
    std::string key = base.substr(0, random() % base.size());
    if (!key.empty() && i % 2 == 0) key[random() % key.size()] = static_cast<char>(random());
    keys.insert(key);
    keys.insert(base + std::string(random() % 3, '\0'));
    keys.insert(std::string(65535 + i % 3, static_cast<char>(i)));
  }
  keys.insert("");
  Check({Sorted(keys)});
  Check(Cut(Sorted(keys), 5, random));
}

BOOST_AUTO_TEST_CASE(parts_of_uneven_sizes_and_empty_ones_make_one_table) {
  auto random = TestRandom();
  for (int round = 0; round < 12; ++round) {
    const Keys keys =
        round % 2 == 0 ? RandomKeys(6000, 16, 256, random) : BigEndian(random() % 5000, 1);
    BOOST_TEST_CONTEXT("round " << round) {
      Check(Cut(keys, 1 + random() % 40, random));
    }
  }
}

BOOST_AUTO_TEST_CASE(first_rows_number_the_rows_of_each_part) {
  MemorySink sink;
  RowTableWriter writer(3, &sink);
  BOOST_CHECK(writer.part(0).Add("a").ok());
  BOOST_CHECK(writer.part(2).Add("b").ok());
  BOOST_CHECK(writer.part(2).Add("c").ok());
  BOOST_CHECK((writer.FirstRows() == std::vector<uint64_t>{0, 1, 1, 3}));
  BOOST_CHECK(writer.Finish().ok());
  BOOST_TEST(*(*sink.Open()).Find("c") == 2u);
}

BOOST_AUTO_TEST_CASE(keys_out_of_order_are_refused_by_name) {
  MemorySink sink;
  RowTableWriter writer(2, &sink);
  BOOST_CHECK(writer.part(0).Add("banana").ok());
  for (const char* key : {"banana", "apple", "b", ""}) {
    const absl::Status status = writer.part(0).Add(key);
    BOOST_CHECK(absl::IsInvalidArgument(status));
    BOOST_CHECK(status.message().find("banana") != std::string::npos);
  }
  BOOST_CHECK(absl::IsInvalidArgument(writer.Finish()));

  // Also directly after a block, where only its last key is kept.
  MemorySink second_sink;
  RowTableWriter second(1, &second_sink);
  for (char c = 'a'; c < 'a' + 17; ++c) BOOST_CHECK(second.part(0).Add(std::string(1, c)).ok());
  BOOST_CHECK(absl::IsInvalidArgument(second.part(0).Add("q")));

  MemorySink third_sink;
  RowTableWriter third(3, &third_sink);
  BOOST_CHECK(third.part(0).Add("m").ok());
  BOOST_CHECK(third.part(2).Add("m").ok());
  const absl::Status overlap = third.Finish();
  BOOST_CHECK(absl::IsInvalidArgument(overlap));
  BOOST_CHECK(overlap.message().find("part 2") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_sink_that_fails_fails_the_table) {
  auto random = TestRandom();
  for (size_t limit : {0, 100, 1 << 20, 3 << 20}) {
    MemorySink sink;
    sink.limit = limit;
    RowTableWriter writer(2, &sink);
    absl::Status added;
    for (int i = 0; i < 400000 && added.ok(); ++i) {
      std::string key = absl::StrFormat("%08d", i);
      for (int j = 0; j < 8; ++j) key += static_cast<char>(random());
      added = writer.part(0).Add(key);
    }
    BOOST_CHECK(absl::IsResourceExhausted(writer.Finish()));
    BOOST_CHECK(absl::IsResourceExhausted(writer.part(1).Add("z").ok() ? writer.Finish() : added));
  }
}

BOOST_AUTO_TEST_CASE(threads_fill_their_parts_at_the_same_time) {
  constexpr size_t kParts = 6;
  constexpr size_t kRows = 150000;
  MemorySink sink;
  RowTableWriter writer(kParts, &sink);
  const auto key = [](size_t part, size_t row) {
    return absl::StrFormat("%c%016x-%07d", static_cast<char>('a' + part),
                           uint64_t{row} * 0x9E3779B97Full, row);
  };
  std::vector<std::thread> threads;
  for (size_t part = 0; part < kParts; ++part) {
    threads.emplace_back([&, part] {
      for (size_t row = 0; row < kRows / (part + 1); ++row) {
        if (!writer.part(part).Add(key(part, row)).ok()) return;
      }
      writer.part(part).Close().IgnoreError();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<uint64_t> first_rows = writer.FirstRows();
  RequireOk(writer.Finish());
  auto table = RequireOk(sink.Open());
  for (size_t part = 0; part < kParts; ++part) {
    const size_t rows = kRows / (part + 1);
    BOOST_TEST(first_rows[part + 1] - first_rows[part] == rows);
    for (size_t row = 0; row < rows; row += 997) {
      BOOST_REQUIRE(*table.Find(key(part, row)) == first_rows[part] + row);
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
