// Comparators whose order is known, and scans in the order of bytes.
#include "engine/util/key_order.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/util/range_iterator.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/convenience.h"
#include "test/engine/key_orders.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(key_order_test)
namespace {

BOOST_AUTO_TEST_CASE(known_comparators) {
  BOOST_TEST((KeyOrderOfName("leveldb.BytewiseComparator") == KeyOrder::kBytewise));
  BOOST_TEST((KeyOrderOfName("rocksdb.ReverseBytewiseComparator") == KeyOrder::kReverseBytewise));
  BOOST_TEST((KeyOrderOfName("RocksDB_SE_v3.10") == KeyOrder::kBytewise));
  BOOST_TEST((KeyOrderOfName("rev:RocksDB_SE_v3.10") == KeyOrder::kReverseBytewise));
  for (const char* name : {"", "test.Unknown", "rocksdb.java.BytewiseComparator",
                           "leveldb.BytewiseComparator.u64ts", "RocksDB_SE_v3.1"}) {
    BOOST_TEST(!KeyOrderOfName(name).has_value(), name);
  }
  for (const test::Order& known : test::Orders()) {
    BOOST_TEST((RequireOk(KeyOrderOf(known.comparator, "f", "d")) == known.order));
  }
  static const test::ByLength by_length;
  const absl::Status unknown = KeyOrderOf(&by_length, "family", "database 'x'").status();
  BOOST_TEST(absl::IsUnimplemented(unknown));
  for (const char* part : {"'family'", "database 'x'", "test.ByLength", "DeclareComparator"}) {
    BOOST_TEST((unknown.ToString().find(part) != std::string::npos), unknown << part);
  }
}

BOOST_AUTO_TEST_CASE(timestamps_are_refused_although_the_name_is_declared) {
  const rocksdb::Comparator* timed = nullptr;
  RequireOk(rocksdb::Comparator::CreateFromString(rocksdb::ConfigOptions(),
                                                  "leveldb.BytewiseComparator.u64ts", &timed));
  RequireOk(DeclareComparator(timed->Name(), KeyOrder::kBytewise));
  const absl::Status refused = KeyOrderOf(timed, "f", "d").status();
  BOOST_TEST(absl::IsUnimplemented(refused));
  BOOST_TEST((refused.ToString().find("timestamps") != std::string::npos));
}

BOOST_AUTO_TEST_CASE(declarations_do_not_change) {
  BOOST_TEST(absl::IsInvalidArgument(DeclareComparator("", KeyOrder::kBytewise)));
  RequireOk(DeclareComparator("test.Once", KeyOrder::kReverseBytewise));
  RequireOk(DeclareComparator("test.Once", KeyOrder::kReverseBytewise));
  BOOST_TEST(absl::IsAlreadyExists(DeclareComparator("test.Once", KeyOrder::kBytewise)));
  BOOST_TEST((KeyOrderOfName("test.Once") == KeyOrder::kReverseBytewise));
  RequireOk(DeclareComparator("RocksDB_SE_v3.10", KeyOrder::kBytewise));
  BOOST_TEST(
      absl::IsAlreadyExists(DeclareComparator("RocksDB_SE_v3.10", KeyOrder::kReverseBytewise)));
}

BOOST_AUTO_TEST_CASE(comparators_are_made_by_name) {
  BOOST_TEST(ComparatorOfName("leveldb.BytewiseComparator", KeyOrder::kBytewise) ==
             rocksdb::BytewiseComparator());
  const rocksdb::Comparator* const made = ComparatorOfName("x", KeyOrder::kReverseBytewise);
  BOOST_TEST(made == ComparatorOfName("x", KeyOrder::kReverseBytewise));
  BOOST_TEST(made->Name() == std::string("x"));
  std::mt19937_64 random = TestRandom();
  for (int i = 0; i < 1000; ++i) {
    const std::string a = test::HardKey(&random), b = test::HardKey(&random);
    BOOST_REQUIRE((made->Compare(a, b) < 0) == (a > b));
    BOOST_REQUIRE(made->Equal(a, b) == (a == b));
    BOOST_REQUIRE(IsBefore(KeyOrder::kReverseBytewise, a, b) == (a > b));
    BOOST_REQUIRE(IsBefore(KeyOrder::kBytewise, a, b) == (a < b));
    BOOST_REQUIRE(KeyAfter(a) > a);
  }
}

// Scans of any range see the rows in the order of bytes.
BOOST_AUTO_TEST_CASE(ranges_of_column_families_of_every_order) {
  std::mt19937_64 random = TestRandom();
  std::vector<const rocksdb::Comparator*> comparators = {rocksdb::BytewiseComparator()};
  for (const test::Order& known : test::Orders()) comparators.push_back(known.comparator);
  for (const rocksdb::Comparator* comparator : comparators) {
    BOOST_TEST_CONTEXT(comparator->Name()) {
      const TemporaryDirectory directory;
      rocksdb::Options options;
      options.create_if_missing = true;
      options.comparator = comparator;
      std::unique_ptr<rocksdb::DB> db;
      RequireOk(rocksdb::DB::Open(options, directory / "db", Into(&db)));
      std::map<std::string, std::string> rows;
      for (int i = 0; i < 600; ++i) {
        const std::string key = test::HardKey(&random);
        if (random() % 4 == 0) {
          RequireOk(db->Delete({}, key));
          rows.erase(key);
        } else {
          RequireOk(db->Put({}, key, std::to_string(i)));
          rows[key] = std::to_string(i);
        }
        if (i % 150 == 149) RequireOk(db->Flush({}));
      }
      const KeyOrder order = KnownKeyOrderOf(db->DefaultColumnFamily());
      for (int i = 0; i < 400; ++i) {
        const std::string lower = random() % 5 == 0 ? "" : test::HardKey(&random);
        const std::string upper = test::HardKey(&random);
        const bool open = random() % 4 == 0;
        RangeIterator row(db.get(), db->DefaultColumnFamily(), order, {}, lower, upper, open);
        auto expected = rows.lower_bound(lower);
        const auto end = open ? rows.end() : rows.lower_bound(std::max(lower, upper));
        while (row.Next()) {
          BOOST_REQUIRE(expected != end);
          BOOST_REQUIRE(row.iterator().key().ToString() == expected->first);
          BOOST_REQUIRE(row.iterator().value().ToString() == expected->second);
          ++expected;
        }
        BOOST_REQUIRE(expected == end);
        BOOST_REQUIRE(!row.Next());
        RequireOk(row.iterator().status());
      }
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
