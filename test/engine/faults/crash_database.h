#pragma once

#include <boost/test/unit_test.hpp>
#include <cstdarg>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "cairn/indexed_db.h"
#include "index/machine/status_macros.h"
#include "rocksdb/env.h"
#include "test/engine/faults/crash_indexes.h"
#include "test/engine/faults/crash_model.h"
#include "test/engine/indexed_database.h"
#include "test/require_ok.h"

namespace cairn {

// Why a built index cannot follow its database and is rebuilt; "stale" if there is no valid reason.
// `of_recovered_log`: the index's state is older than the last opening of the database.
inline std::string WhyStale(const absl::Status& status, bool of_recovered_log,
                            bool may_have_gone_back) {
  // Table files prove changes that the log lacks, until they are replaced: until the next store.
  if (absl::StrContains(status.message(), "nothing proves") &&
      !absl::StrContains(status.message(), "set DBOptions::WAL_ttl")) {
    return "stale, as it was not in the log alone";
  }
  if (may_have_gone_back) return "stale, as numbers went back";
  // The log file of the index's state, which may be an earlier one, ends with a single deletion or
  // an empty range.
  if (absl::StrContains(status.message(), "are in no table file")) {
    return "stale, as its last row left nothing";
  }
  // Rows recovered from a log are in synced files, but the log itself may not be synced.
  if (of_recovered_log &&
      absl::StrContains(status.message(), "are not those that the index has read")) {
    return "stale, as a log was lost that had been recovered";
  }
  return "stale";
}

// A database of TwoFamilies, "default" and "a", whose indexes are of kCrashIndexes.
class CrashDatabase {
 public:
  // The options of these databases, on the local file system if `env` is null.
  static rocksdb::Options RocksDbOptions(rocksdb::Env* env) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    options.merge_operator = std::make_shared<AddOperator>();
    options.write_buffer_size = 128 << 10;  // so that logs change constantly
    options.keep_log_file_num = 1;
    if (env == nullptr) return options;
    options.env = env;
    options.info_log = std::make_shared<NoLogger>();  // so that only data is written
    options.stats_dump_period_sec = 0;
    options.stats_persist_period_sec = 0;
    return options;
  }
  // Does everything as often as possible, also in the background.
  static IndexedDBOptions BusyOptions() {
    IndexedDBOptions options;
    options.open.calibration = Calibration::kNone;
    options.open.threads = 1;
    options.build.threads = 1;
    options.build.memory_budget = 30000;  // so that spilling is interrupted, too
    options.compact_threads = 2;
    options.follow_interval = absl::Milliseconds(1);
    options.flush_interval = absl::Milliseconds(5);
    options.compact_interval = absl::Milliseconds(5);
    return options;
  }

  static absl::StatusOr<std::unique_ptr<CrashDatabase>> Open(
      const rocksdb::Options& rocksdb_options, const std::string& path,
      const IndexedDBOptions& options = BusyOptions()) {
    std::unique_ptr<CrashDatabase> database(new CrashDatabase);
    ASSIGN_OR_RETURN(database->db_,
                     IndexedDB::Open(rocksdb_options, path,
                                     {{"default", rocksdb_options}, {"a", rocksdb_options}},
                                     &database->families_, options));
    return database;
  }
  ~CrashDatabase() {
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      RequireOk(db_->DestroyColumnFamilyHandle(family));
    }
  }
  CrashDatabase(const CrashDatabase&) = delete;
  CrashDatabase& operator=(const CrashDatabase&) = delete;

  IndexedDB* operator->() { return db_.get(); }
  IndexedDB* get() { return db_.get(); }
  const std::vector<rocksdb::ColumnFamilyHandle*>& families() { return families_; }

  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const IndexInfo& info : db_->ListIndexes()) names.insert(info.spec.name);
    return names;
  }
  absl::Status Create(const std::string& name) {
    const IndexOfModel& index = kCrashIndexes.at(name);
    return db_->CreateIndex(SpecOf(index.spec), families_[index.family]);
  }

  TwoFamilies ReadAll() {
    TwoFamilies found;
    for (size_t family = 0; family < 2; ++family) {
      const std::unique_ptr<rocksdb::Iterator> row(db_->NewIterator({}, families_[family]));
      for (row->SeekToFirst(); row->Valid(); row->Next()) {
        found.rows[family][row->key().ToString()] = row->value().ToString();
      }
      RequireOk(row->status());
    }
    return found;
  }

  // Checks that the index is current and sound, and has these rows, which are the database's.
  void CheckIndex(const std::string& name, const TwoFamilies& model) {
    RequireOk(db_->WaitUntilReady(name));
    const auto pinned = RequireOk(db_->Pin(name));
    BOOST_TEST(pinned->sequence() == db_->GetLatestSequenceNumber());
    RequireOk(pinned->Verify());
    const IndexOfModel& of_model = kCrashIndexes.at(name);
    CheckAgainstDatabase(db_.get(), name, families_[of_model.family]);
    BOOST_REQUIRE_MESSAGE(SortedEntries(*pinned) == SortedEntries(of_model, model),
                          name << " has other entries than the rows");
  }

 private:
  class NoLogger final : public rocksdb::Logger {
   public:
    using Logger::Logv;
    void Logv(const char*, va_list) override {}
  };

  CrashDatabase() = default;

  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  std::unique_ptr<IndexedDB> db_;
};

}  // namespace cairn
