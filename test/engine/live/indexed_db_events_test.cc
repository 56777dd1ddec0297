// Information for operators of an IndexedDB: calls of listeners, and metrics.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cairn/prometheus.h"
#include "index/machine/mutex.h"
#include "test/engine/faulty_file_system.h"
#include "test/engine/indexed_database.h"
#include "test/prometheus_samples.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_events_test)
namespace {

// Records events as lines, and queries the database for an index that has become ready.
class Recorder final : public IndexListener {
 public:
  void OnStateChanged(const IndexStateChange& change) override {
    Add(absl::StrCat(change.index, "/", change.column_family, ": ",
                     std::string(IndexStateName(change.before)), " -> ",
                     std::string(IndexStateName(change.after)), change.status.ok() ? "" : ": ",
                     change.status.message()));
    const IndexedDB* const open = db;
    if (change.after != IndexState::kReady || open == nullptr) return;
    if (open->Lookup(change.index, "red").ok() && !open->ListIndexes().empty()) ++answered;
  }
  void OnFlushCompleted(const IndexWork& flush) override { AddWork("flush", flush); }
  void OnCompactionCompleted(const IndexWork& work) override { AddWork("compaction", work); }

  std::vector<std::string> Lines() {
    const MutexLock lock(&mutex_);
    return lines_;
  }
  // Waits for a line that contains this. Returns false on a timeout.
  bool Await(const std::string& part) {
    for (const absl::Time end = absl::Now() + absl::Seconds(60); absl::Now() < end;) {
      for (const std::string& line : Lines()) {
        if (absl::StrContains(line, part)) return true;
      }
      absl::SleepFor(absl::Milliseconds(1));
    }
    return false;
  }

  std::atomic<IndexedDB*> db{nullptr};
  std::atomic<int> answered{0};

 private:
  void Add(std::string line) {
    const MutexLock lock(&mutex_);
    lines_.push_back(std::move(line));
  }
  void AddWork(const char* what, const IndexWork& work) {
    const bool timed = work.duration >= absl::ZeroDuration();
    Add(absl::StrCat(what, " ", work.index, "/", work.column_family, ": ",
                     !timed             ? "no duration"
                     : work.status.ok() ? "OK"
                                        : "failed"));
  }

  Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

BOOST_AUTO_TEST_CASE(listeners_are_told_states_with_reasons_and_ends_of_work) {
  const auto recorder = std::make_shared<Recorder>();
  IndexedDBOptions options;
  options.flush_interval = absl::ZeroDuration();
  options.compact_interval = absl::ZeroDuration();
  options.listeners = {std::make_shared<IndexListener>(), recorder};
  IndexedDatabase db(options);
  recorder->db = db.get();
  db.Put("r", "red");
  db.Create("x = value:text");
  RequireOk(db->FlushIndexes());
  RequireOk(db->CompactIndex("x"));
  BOOST_TEST(recorder->Await("compaction x"));
  const std::vector<std::string> expected = {"x/default: building -> catching up",
                                             "x/default: catching up -> ready",
                                             "flush x/default: OK", "compaction x/default: OK"};
  BOOST_TEST(recorder->Lines() == expected, boost::test_tools::per_element());
  BOOST_TEST(recorder->answered == 1);

  RequireOk(db->RebuildIndex("x"));
  RequireOk(db->WaitUntilReady("x"));
  BOOST_TEST(recorder->Await("x/default: ready -> building: RebuildIndex was called"));
  db.Create("y = value.field(',', 0):text", 1);
  rocksdb::WriteOptions no_log;
  no_log.disableWAL = true;
  RequireOk(db->GetBaseDB()->Put(no_log, "s", "blue"));
  RequireOk(db->WaitUntilReady("y"));
  RequireOk(db->WaitUntilReady("x"));
  BOOST_TEST(recorder->Await("y/a: ready -> stale: sequence number"));

  // An index whose rows cannot be read.
  RequireOk(db->CreateIndex("n = value:u32le"));
  BOOST_TEST(!db->WaitUntilReady("n").ok());
  BOOST_TEST(recorder->Await("n/default: building -> failed: " +
                             std::string(db.Info("n").status.message())));
  BOOST_TEST(db.Info("n").build_failures == 1u);

  // An index whose column family was dropped has failed; dropped or closed indexes have no state.
  RequireOk(db->DropColumnFamily(db.family(1)));
  BOOST_TEST(recorder->Await("-> failed: its column family 'a' was dropped"));
  RequireOk(db->DropIndex("n"));
  recorder->db = nullptr;
  RequireOk(db->Close());
  const std::vector<std::string> all = recorder->Lines();
  BOOST_TEST(all.back() == "flush x/default: OK");
  for (const std::string& line : all) BOOST_TEST(!absl::StrContains(line, "closed"), line);
  db.Close();
  BOOST_TEST(recorder->Lines().size() == all.size());
}

BOOST_AUTO_TEST_CASE(a_slow_listener_delays_nothing_else_and_close_tells_it_all) {
  class Slow final : public IndexListener {
   public:
    void OnStateChanged(const IndexStateChange&) override {
      absl::SleepFor(absl::Milliseconds(100));
      ++calls;
      throw std::runtime_error("of the listener");
    }
    std::atomic<int> calls{0};
  };
  const auto slow = std::make_shared<Slow>();
  IndexedDBOptions options;
  options.listeners = {slow};
  IndexedDatabase db(options);
  db.Create("x = value:text");
  for (int i = 0; i < 3; ++i) {
    RequireOk(db->RebuildIndex("x"));
    RequireOk(db->WaitUntilReady("x"));
  }
  const int before = slow->calls;
  RequireOk(db->Close());
  BOOST_TEST(before < slow->calls);
  BOOST_TEST(slow->calls == 2 + 3 * 3);
}

// The samples of a page; requested ones must exist.
class Metrics {
 public:
  explicit Metrics(const std::string& page) : samples_(PrometheusSamples(page)) {}
  double operator()(const std::string& metric, const std::string& labels) const {
    const auto found = samples_.find(metric + "{" + labels + "}");
    BOOST_REQUIRE_MESSAGE(found != samples_.end(), metric << "{" << labels << "}");
    return found->second;
  }
  size_t size() const { return samples_.size(); }

 private:
  const std::map<std::string, double> samples_;
};

std::string DatabaseLabel(const IndexedDatabase& db) {
  return "database=\"" + db.path() + "\"";
}

BOOST_AUTO_TEST_CASE(metrics_of_all_indexes_are_on_one_page) {
  IndexedDBOptions options;
  options.flush_interval = absl::ZeroDuration();
  options.compact_interval = absl::ZeroDuration();
  IndexedDatabase db(options);
  for (int i = 0; i < 100; ++i) db.Put(absl::StrCat("r", i), absl::StrCat("red", i % 7));
  db.Create("x = value:text");
  db.Create("n = value:u32le", 1);
  db.Put("bad", "red", 1);
  BOOST_TEST(!db->Lookup("n", uint32_t{1}).ok());
  db.Put("new", "red");
  RequireOk(db->Lookup("x", "red").status());
  RequireOk(db->FlushIndexes());

  const Metrics of(PrometheusText(*db.get()));
  const std::string database = DatabaseLabel(db);
  const std::string x = "index=\"x\",column_family=\"default\"," + database;
  const std::string n = "index=\"n\",column_family=\"a\"," + database;
  for (const char* state : {"building", "catching up", "ready", "stale", "failed"}) {
    const std::string label = absl::StrCat(",state=\"", state, "\"");
    BOOST_TEST(of("cairn_index_state", x + label) == (state == std::string("ready") ? 1 : 0));
    BOOST_TEST(of("cairn_index_state", n + label) == (state == std::string("failed") ? 1 : 0));
  }
  BOOST_TEST(of("cairn_index_lag_sequences", x) == 0);
  BOOST_TEST(of("cairn_index_lag_sequences", n) > 0);
  BOOST_TEST(of("cairn_index_lag_seconds", x) == 0);
  BOOST_TEST(of("cairn_index_build_progress_ratio", x) == 0);
  BOOST_TEST(of("cairn_index_builds_total", x) == 1);
  BOOST_TEST(of("cairn_index_build_failures_total", n) == 0);
  BOOST_TEST(of("cairn_index_flushes_total", x) == 1);
  BOOST_TEST(of("cairn_index_flush_failures_total", x) == 0);
  BOOST_TEST(of("cairn_index_flush_failing", x) == 0);
  BOOST_TEST(of("cairn_index_compactions_total", x) == 0);
  BOOST_TEST(of("cairn_index_compaction_failures_total", x) == 0);
  BOOST_TEST(of("cairn_index_compaction_failing", x) == 0);
  BOOST_TEST(of("cairn_backlog_waits_total", database) == 0);
  BOOST_TEST(of("cairn_backlog_wait_seconds_total", database) == 0);
  const std::string stats = "index=\"x\"," + database;
  BOOST_TEST(of("cairn_rows", stats) == 101);
  BOOST_TEST(of("cairn_delta_entries", stats) == 1);
  BOOST_TEST(of("cairn_delta_bytes", stats) > 0);
  BOOST_TEST(of("cairn_memory_bytes", stats) > of("cairn_delta_bytes", stats));
  BOOST_TEST(of("cairn_file_bytes", stats) > 0);

  // Two databases on one page, in which each metric is described once.
  IndexedDatabase other;
  other.Create("x = value:text");
  const IndexedDB* const both[] = {db.get(), other.get()};
  const Metrics of_both(PrometheusText(both));
  BOOST_TEST(of_both.size() > of.size());
  BOOST_TEST(of_both("cairn_entries", "index=\"x\"," + DatabaseLabel(other)) == 0);
  BOOST_TEST(of_both("cairn_entries", stats) == 101);
}

BOOST_AUTO_TEST_CASE(failures_of_flushes_and_writes_that_waited_are_counted) {
  const auto files = std::make_shared<FaultyFileSystem>();
  const auto recorder = std::make_shared<Recorder>();
  IndexedDBOptions options;
  options.open.file_system = files;
  options.flush_interval = absl::ZeroDuration();
  options.compact_interval = absl::ZeroDuration();
  options.follow_interval = absl::ZeroDuration();
  options.max_backlog = absl::Nanoseconds(1);
  options.listeners = {recorder};
  IndexedDatabase db(options);
  db.Create("x = value:text");
  db.Put("r", "red");
  RequireOk(db->Lookup("x", "red").status());
  files->Break(FaultyFileSystem::Fault::kNoSpace, 1, FaultyFileSystem::Lasting::kUntilRepaired);
  BOOST_TEST(!db->FlushIndexes().ok());
  BOOST_TEST(!db->FlushIndexes().ok());
  BOOST_TEST(!db->CompactIndex("x").ok());
  files->Repair();
  BOOST_TEST(recorder->Await("flush x/default: failed"));
  BOOST_TEST(recorder->Await("compaction x/default: failed"));
  const std::string x = "index=\"x\",column_family=\"default\"," + DatabaseLabel(db);
  {
    const Metrics of(PrometheusText(*db.get()));
    BOOST_TEST(of("cairn_index_flush_failures_total", x) == 2);
    BOOST_TEST(of("cairn_index_flush_failing", x) == 1);
    BOOST_TEST(of("cairn_index_compaction_failures_total", x) == 1);
    BOOST_TEST(of("cairn_index_compaction_failing", x) == 1);
  }
  RequireOk(db->FlushIndexes());
  RequireOk(db->CompactIndex("x"));

  // More than the amount that is always allowed.
  rocksdb::WriteBatch batch;
  for (int i = 0; i < 15000; ++i) RequireOk(batch.Put(absl::StrCat("w", i), "blue"));
  RequireOk(db->Write({}, &batch));
  rocksdb::WriteOptions no_slowdown;
  no_slowdown.no_slowdown = true;
  BOOST_TEST(db->Put(no_slowdown, "a", "red").IsIncomplete());
  db.Put("a", "red");
  const BacklogStats backlog = db->Backlog();
  BOOST_TEST(backlog.refusals == 1u);
  BOOST_TEST(backlog.waits == 1u);
  BOOST_TEST((backlog.wait_time > absl::ZeroDuration()));
  const Metrics of(PrometheusText(*db.get()));
  BOOST_TEST(of("cairn_index_flush_failing", x) == 0);
  BOOST_TEST(of("cairn_index_compaction_failing", x) == 0);
  BOOST_TEST(of("cairn_index_flush_failures_total", x) == 2);
  BOOST_TEST(of("cairn_backlog_waits_total", DatabaseLabel(db)) == 1);
  BOOST_TEST(of("cairn_backlog_refusals_total", DatabaseLabel(db)) == 1);
  BOOST_TEST(of("cairn_backlog_wait_seconds_total", DatabaseLabel(db)) > 0);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
