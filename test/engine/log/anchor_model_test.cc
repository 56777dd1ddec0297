// The histories that a model of the protocol found (test/model/log_following.pml).
#include "cairn/options.h"
#include "engine/log/anchor.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "cairn/indexed_db.h"
#include "cairn/secondary_index.h"
#include "rocksdb/sst_file_writer.h"
#include "test/engine/indexed_database.h"
#include "test/engine/log/database_history.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(anchor_model_test)
namespace {

// Writes past the log.
rocksdb::WriteOptions PastTheLog() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return options;
}

BOOST_AUTO_TEST_CASE(rows_written_past_the_log_before_its_first_record_are_not_lost) {
  for (const bool reopened : {false, true}) {
    for (const bool keeps_logs : {false, true}) {
      DatabaseHistory h(keeps_logs);
      if (reopened) {
        h.Put("0", 0, 5, "older");
        h.Reopen();
      }
      h.Put("a", 0, 1, "past", PastTheLog());
      h.Put("b", 0, 1, "logged");
      h.Build();
      h.CopyTo("killed");
      h.Restore("killed");
      if (keeps_logs) {
        h.CheckCurrent();
      } else {
        h.CheckCurrentOrRefused();
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_written_past_the_log_that_a_copy_lacks_are_not_in_the_index) {
  for (const bool more : {false, true}) {
    DatabaseHistory h;
    h.Put("a", 0, 5, "past", PastTheLog());
    h.Put("b", 0, 5, "logged");
    h.CopyTo("copy");  // without data in memory
    h.Build();         // flushes it
    if (more) {
      h.Put("c", 0, 5, "caught up");
      h.CheckCurrent();
    }
    h.Restore("copy");
    h.CheckCurrentOrRefused();
    h.Put("d", 0, 20, "new");
    h.CheckCurrentOrRefused();
  }
}

BOOST_AUTO_TEST_CASE(rows_of_an_ingestion_that_a_copy_lacks_are_not_in_the_index) {
  for (const bool first : {false, true}) {  // whether there are no other rows
    DatabaseHistory h;
    if (!first) h.Put("a", 0, 5, "old");
    h.CopyTo("copy");
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), h.options());
    RequireOk(writer.Open(h.Beside("ingested.sst")));
    RequireOk(writer.Put("z", "ingested"));
    RequireOk(writer.Finish());
    RequireOk(h.db()->IngestExternalFile({h.Beside("ingested.sst")}, {}));
    h.Build();
    h.CheckCurrent();
    h.Reopen();
    h.CheckCurrent();
    h.Restore("copy");
    h.CheckCurrentOrRefused();
    h.Put("b", 0, 5, "new");
    h.CheckCurrentOrRefused();
  }
}

BOOST_AUTO_TEST_CASE(files_prove_a_state_only_if_they_reach_it) {
  DatabaseHistory h(/*keeps_logs=*/false);
  h.Put("a", 0, 5, "old");
  RequireOk(h.db()->Flush({}));
  h.CopyTo("copy");
  RequireOk(h.db()->Put({}, h.users(), "x", "another column family's"));
  RequireOk(h.db()->Flush({}, h.users()));
  h.Reopen();
  h.Build();
  h.Reopen();
  h.CheckCurrentOrRefused();  // the files may have been compacted since
  h.Restore("copy");
  h.Put("b", 0, 1, "new");  // with the number of the other write
  h.CheckRefused("its log has older changes");
}

BOOST_AUTO_TEST_CASE(what_another_process_has_in_memory_alone_is_not_taken_for_told) {
  DatabaseHistory h;
  h.Put("a", 0, 1, "past", PastTheLog());
  h.Put("b", 0, 1, "logged");
  {
    const auto source = SnapshotSource::FromDirectory(h.path());
    RequireOk(source.status());
    const IndexSpec spec = SpecOf("value:text");
    RequireOk(SecondaryIndex::Build(**source, spec, h.Beside("index")).status());
  }
  h.CheckCurrentOrRefused();
  h.Put("c", 0, 5, "more");
  h.CheckCurrentOrRefused();
}

BOOST_AUTO_TEST_CASE(logs_that_are_kept_prove_what_is_in_files_alone_whatever_becomes_of_these) {
  DatabaseHistory h;
  h.Put("a", 0, 50, "old");
  RequireOk(h.db()->Flush({}));
  h.Reopen();
  h.Build();
  RequireOk(h.db()->CompactRange({}, nullptr, nullptr));
  h.Reopen();
  h.CheckCurrent();
  h.Put("b", 0, 5, "new");
  h.Reopen();
  h.CheckCurrent();
}

// Concurrently with its writes, one process after the other builds and catches up.
BOOST_AUTO_TEST_CASE(an_index_is_built_and_kept_from_outside) {
  for (const bool flushed : {false, true}) {
    DatabaseHistory h;
    h.Put("a", 0, 50, "old");
    if (flushed) RequireOk(h.db()->Flush({}));
    h.Put("b", 0, 50, "new");
    if (flushed) RequireOk(h.db()->CompactRange({}, nullptr, nullptr));
    if (flushed) h.Put("c", 0, 5, "newer");
    const auto outside = [&] {
      auto source = SnapshotSource::FromDirectory(h.path());
      RequireOk(source.status());
      return *std::move(source);
    };
    const IndexSpec spec = SpecOf("value:text");
    RequireOk(SecondaryIndex::Build(*outside(), spec, h.Beside("index")).status());
    for (int round = 0; round < 3; ++round) {
      h.Put("d", round, round + 10, "more");
      if (round == 1) RequireOk(h.db()->Flush({}));
      auto index = SecondaryIndex::Open(h.Beside("index"));
      RequireOk(index.status());
      RequireOk((*index)->CatchUp(*outside()).status());
      std::vector<std::string> differences;
      RequireOk((*index)->VerifyAgainst(*h.Source(), 5, &differences));
      BOOST_TEST(differences.empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(where_nothing_proves_it_the_caller_may_vouch_for_it) {
  DatabaseHistory h(/*keeps_logs=*/false);
  h.Put("a", 0, 50, "old");
  h.Build();
  h.Reopen();  // the log is gone; its rows are in a file
  RequireOk(h.db()->CompactRange({}, nullptr, nullptr));
  h.Put("b", 0, 10, "new");
  h.CheckRefused("nothing proves");
  CatchUpOptions assume;
  assume.skip_identity_check = true;
  RequireOk(h.CatchUp(assume));
  h.CheckCurrent();
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
