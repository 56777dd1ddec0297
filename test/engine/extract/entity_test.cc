#include "engine/extract/entity.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/wide_columns.h"
#include "rocksdb/write_batch.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(entity_test)
namespace {

// The bytes that RocksDB writes for an entity.
std::string Serialize(const rocksdb::WideColumns& columns) {
  struct Taker : WriteBatchHandler {
    rocksdb::Status PutEntityCF(uint32_t, const rocksdb::Slice&,
                                const rocksdb::Slice& entity) override {
      taken = entity.ToString();
      return rocksdb::Status::OK();
    }
    std::string taken;
  } taker;
  static TestDatabase database;  // RocksDB accepts only its own column families
  rocksdb::WriteBatch batch;
  RequireOk(batch.PutEntity(database.db()->DefaultColumnFamily(), "key", columns));
  RequireOk(batch.Iterate(&taker));
  return taker.taken;
}

BOOST_AUTO_TEST_CASE(reads_the_columns_that_rocksdb_wrote) {
  const std::string long_value(300, 'x');
  const std::string entity =
      Serialize({{"", "plain"}, {"city", "Ulm"}, {"empty", ""}, {"long", long_value}});
  std::vector<ColumnView> columns = {{"left", "over"}};
  RequireOk(DecodeEntity(entity, &columns));
  BOOST_REQUIRE_EQUAL(columns.size(), 4u);
  BOOST_TEST(columns[0].name.empty());
  BOOST_TEST((columns[0].value == "plain"));
  BOOST_TEST((columns[1].name == "city"));
  BOOST_TEST((columns[1].value == "Ulm"));
  BOOST_TEST(columns[2].value.empty());
  BOOST_TEST((columns[3].value == long_value));
}

BOOST_AUTO_TEST_CASE(reads_an_entity_without_columns) {
  std::vector<ColumnView> columns = {{"left", "over"}};
  RequireOk(DecodeEntity(Serialize({}), &columns));
  BOOST_TEST(columns.empty());
}

BOOST_AUTO_TEST_CASE(refuses_every_part_of_an_entity) {
  const std::string entity = Serialize({{"a", "first"}, {"b", std::string(200, 'x')}});
  std::vector<ColumnView> columns;
  for (size_t size = 0; size < entity.size(); ++size) {
    const absl::Status s = DecodeEntity(std::string_view(entity).substr(0, size), &columns);
    BOOST_TEST(absl::IsDataLoss(s), s.ToString());
  }
}

BOOST_AUTO_TEST_CASE(does_not_believe_sizes_and_counts) {
  std::vector<ColumnView> columns;
  const std::string_view huge = "\xFF\xFF\xFF\xFF\x0F";
  for (const std::string& bytes :
       {std::string("\x01").append(huge), std::string("\x01\x01").append(huge),
        std::string("\x01\x01\x01"
                    "a")
            .append(huge),
        std::string("\x01\xFF\xFF\xFF\xFF\xFF\x01"),
        std::string("\x01\x02\x01"
                    "b"
                    "\x00\x01"
                    "a"
                    "\x00",
                    8)}) {
    const absl::Status s = DecodeEntity(bytes, &columns);
    BOOST_TEST(absl::IsDataLoss(s), s.ToString());
  }
}

BOOST_AUTO_TEST_CASE(names_a_version_that_it_does_not_know) {
  std::vector<ColumnView> columns;
  const absl::Status s = DecodeEntity("\x02\x01", &columns);
  BOOST_TEST(absl::IsUnimplemented(s));
  BOOST_TEST(s.ToString().find("version 2") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(survives_any_bytes) {
  auto random = TestRandom();
  const std::string entity = Serialize({{"a", "first"}, {"b", "second"}, {"c", ""}});
  std::vector<ColumnView> columns;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = entity;
    for (size_t flips = 1 + random() % 3; flips > 0; --flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (!DecodeEntity(bytes, &columns).ok()) continue;
    for (const ColumnView& column : columns) {
      const bool inside = column.value.data() + column.value.size() <= bytes.data() + bytes.size();
      if (!inside) BOOST_ERROR("a value leaves the entity");
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
