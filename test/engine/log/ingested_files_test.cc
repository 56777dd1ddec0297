#include "engine/log/ingested_files.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "rocksdb/sst_file_writer.h"
#include "test/engine/test_database.h"

namespace cairn {
namespace {

class Ingesting : public TestDatabase {
 public:
  void Ingest(const std::vector<std::string>& keys) {
    const std::string path = Beside("ingested.sst");
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), rocksdb::Options{});
    BOOST_REQUIRE(writer.Open(path).ok());
    for (const std::string& key : keys) BOOST_REQUIRE(writer.Put(key, "ingested").ok());
    BOOST_REQUIRE(writer.Finish().ok());
    BOOST_REQUIRE(db()->IngestExternalFile({path}, {}).ok());
  }
  uint64_t Newest(SequenceNumber until, uint64_t known = 0) {
    const auto newest = NewestIngestedFile(db(), db()->DefaultColumnFamily(), until, known);
    BOOST_REQUIRE_MESSAGE(newest.ok(), newest.status().ToString());
    return *newest;
  }
  SequenceNumber sequence() { return db()->GetLatestSequenceNumber(); }
};

BOOST_AUTO_TEST_SUITE(ingested_files_test)

BOOST_AUTO_TEST_CASE(files_that_the_database_wrote_are_none) {
  Ingesting database;
  BOOST_TEST(database.Newest(0) == 0u);
  database.Put("a", "1");  // a file of one row has one sequence number, too
  BOOST_REQUIRE(database.db()->Flush({}).ok());
  BOOST_TEST(database.Newest(database.sequence()) == 0u);
  for (int i = 0; i < 10; ++i) database.Put(std::to_string(i), "value");
  BOOST_REQUIRE(database.db()->CompactRange({}, nullptr, nullptr).ok());
  BOOST_TEST(database.Newest(database.sequence()) == 0u);
}

BOOST_AUTO_TEST_CASE(finds_a_file_that_took_no_sequence_number) {
  Ingesting database;
  database.Put("a", "1");
  const SequenceNumber before = database.sequence();
  database.Ingest({"x", "y"});
  BOOST_REQUIRE_EQUAL(database.sequence(), before);  // which the log cannot show
  const uint64_t first = database.Newest(before);
  BOOST_TEST(first > 0u);
  BOOST_TEST(database.Newest(before, first) == 0u);
  database.Ingest({"z"});
  const uint64_t second = database.Newest(before, first);
  BOOST_TEST(second > first);
  BOOST_TEST(database.Newest(before) == second);
}

BOOST_AUTO_TEST_CASE(a_file_that_came_after_the_snapshot_does_not_count_yet) {
  Ingesting database;
  database.Put("a", "1");
  const auto source = database.Source();  // holds a snapshot
  database.Ingest({"x"});
  BOOST_TEST(database.Newest(source->sequence()) == 0u);
  BOOST_TEST(database.Newest(database.sequence()) > 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
