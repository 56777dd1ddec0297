#include "engine/log/ingested_files.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "rocksdb/sst_file_writer.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(ingested_files_test)
namespace {

class Ingesting : public TestDatabase {
 public:
  void Ingest(const std::vector<std::string>& keys) {
    const std::string path = Beside("ingested.sst");
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), rocksdb::Options{});
    RequireOk(writer.Open(path));
    for (const std::string& key : keys) RequireOk(writer.Put(key, "ingested"));
    RequireOk(writer.Finish());
    RequireOk(db()->IngestExternalFile({path}, {}));
  }
  uint64_t Newest(SequenceNumber until, uint64_t known = 0) {
    return RequireOk(NewestIngestedFile(db(), db()->DefaultColumnFamily(), until, known));
  }
  SequenceNumber sequence() { return db()->GetLatestSequenceNumber(); }
};

BOOST_AUTO_TEST_CASE(files_that_the_database_wrote_are_none) {
  Ingesting database;
  BOOST_TEST(database.Newest(0) == 0u);
  database.Put("a", "1");  // a file of one row also has one sequence number
  RequireOk(database.db()->Flush({}));
  BOOST_TEST(database.Newest(database.sequence()) == 0u);
  for (int i = 0; i < 10; ++i) database.Put(std::to_string(i), "value");
  RequireOk(database.db()->CompactRange({}, nullptr, nullptr));
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

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
