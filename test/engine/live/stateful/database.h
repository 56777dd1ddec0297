#pragma once

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cairn/indexed_db.h"
#include "cairn/rocksdb_status.h"
#include "engine/util/key_order.h"
#include "engine/util/rocksdb_compat.h"
#include "index/machine/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/utilities/optimistic_transaction_db.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/wal_filter.h"
#include "test/engine/live/stateful/disk.h"
#include "test/engine/live/stateful/program.h"
#include "test/engine/live/stateful/rows.h"

namespace cairn::stateful {

inline constexpr size_t kFamilies = 3;
inline constexpr const char* kFamilyNames[kFamilies] = {"default", "a", "b"};

// A database of the stateful test with its indexes; opened, closed and stopped as its world
// defines.
class Database {
 public:
  using Handle = rocksdb::ColumnFamilyHandle;

  explicit Database(const World& world)
      : world_(world),
        disk_(std::make_shared<Disk>(std::make_shared<CrashFileSystem>(kPath))),
        env_(rocksdb::NewCompositeEnv(disk_)) {}
  ~Database() { Close(); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  World& world() { return world_; }
  const World& world() const { return world_; }
  Disk& disk() { return *disk_; }
  rocksdb::Env* env() { return env_.get(); }
  IndexedDB* operator->() { return indexed_.get(); }
  IndexedDB* get() { return indexed_.get(); }
  bool is_open() const { return indexed_ != nullptr; }
  // The application's database below the indexes.
  rocksdb::DB* base() { return indexed_->GetBaseDB(); }
  rocksdb::TransactionDB* transactions() { return transactions_; }
  rocksdb::OptimisticTransactionDB* optimistic() { return optimistic_; }
  std::vector<rocksdb::Transaction*>& prepared() { return prepared_; }
  // Whether it is open with an option with which the log and the rows may differ.
  bool is_special() const { return is_special_; }
  Handle* family(size_t i) { return families_[i]; }
  bool has(size_t i) const { return families_[i] != nullptr; }
  void SetFamily(size_t i, Handle* handle) {
    if (families_[i] != nullptr) dropped_.push_back(families_[i]);
    families_[i] = handle;
  }

  // The order of a family's keys.
  KeyOrder order(size_t family) const {
    const bool is_reverse = world_[kOrder] == kReverse || (world_[kOrder] == kMixed && family == 1);
    return is_reverse ? KeyOrder::kReverseBytewise : KeyOrder::kBytewise;
  }

  rocksdb::Options Options(size_t family = 0) const {
    rocksdb::Options options;
    // Each order has RocksDB's name and another one.
    options.comparator =
        ComparatorOfName(world_[kOrder] == kBytes               ? options.comparator->Name()
                         : order(family) == KeyOrder::kBytewise ? "RocksDB_SE_v3.10"
                         : family == 1                          ? "rev:RocksDB_SE_v3.10"
                                       : "rocksdb.ReverseBytewiseComparator",
                         order(family));
    options.env = env_.get();
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    options.info_log = std::make_shared<NoLogger>();
    options.stats_dump_period_sec = 0;
    options.stats_persist_period_sec = 0;
    options.keep_log_file_num = 1;
    options.bgerror_resume_retry_interval = 1000;
    options.arena_block_size = 8192;
    options.merge_operator = std::make_shared<AppendingOperator>(world_[kOperator]);
    options.enable_pipelined_write = world_[kWritePath] == kPipelined;
    options.two_write_queues = world_[kWritePath] == kTwoQueues;
    options.unordered_write = world_[kWritePath] == kUnordered;
    options.manual_wal_flush = world_[kManualFlush] == 1;
    options.paranoid_checks = world_[kParanoid] == 0;
    if (world_[kBuffer] > 0) options.write_buffer_size = 64 << 10;
    if (world_[kBuffer] > 1) options.max_total_wal_size = 1500;
    if (world_[kStyle] == kUniversal) {
      options.compaction_style = rocksdb::kCompactionStyleUniversal;
    } else if (world_[kStyle] == kFifo) {
      options.compaction_style = rocksdb::kCompactionStyleFIFO;
      options.num_levels = 1;
      options.compaction_options_fifo.max_table_files_size = 1500;
    }
    if (world_[kFilter] != kNoFilter) {
      static const CityFilter removes(kRemovingFilter), changes(kChangingFilter);
      options.compaction_filter = world_[kFilter] == kRemovingFilter ? &removes : &changes;
      options.disable_auto_compactions = true;  // so that rows stay during the checks
    }
    if (world_[kArchive] == kShortArchive) options.WAL_ttl_seconds = 1;
    if (world_[kArchive] == kKeepsLog) options.WAL_size_limit_MB = 100;
    return options;
  }

  // Options of a single opening.
  struct Special {
    rocksdb::WalFilter* wal_filter = nullptr;
    bool best_efforts_recovery = false;
  };
  absl::Status Open(const Special& special) {
    TagExtractor::version_now() = world_[kExtractor];
    std::vector<std::string> names;
    rocksdb::Options options = Options();
    rocksdb::DB::ListColumnFamilies(options, kPath, &names).PermitUncheckedError();
    options.wal_filter = special.wal_filter;
    options.best_efforts_recovery = special.best_efforts_recovery;
    is_special_ = special.wal_filter != nullptr || special.best_efforts_recovery;
    std::vector<rocksdb::ColumnFamilyDescriptor> families = {{"default", options},
                                                             {"a", InFamily(options, 1)}};
    if (std::find(names.begin(), names.end(), "b") != names.end()) {
      families.emplace_back("b", InFamily(options, 2));
    }
    std::vector<Handle*> handles;
    IndexedDBOptions indexed = IndexOptions();
    if (world_[kWrapper] == kOpen) {
      ASSIGN_OR_RETURN(indexed_, IndexedDB::Open(options, kPath, families, &handles, indexed));
    } else {
      std::unique_ptr<rocksdb::DB> db;
      RETURN_IF_ERROR(FromRocksDb(OpenBase(options, families, &handles, &db), "opening"));
      owned_ = std::move(db);
      auto attached = IndexedDB::Attach(owned_, handles, indexed);
      if (!attached.ok()) {
        for (Handle* handle : handles) {
          owned_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
        }
        CloseBase();
        return attached.status();
      }
      indexed_ = *std::move(attached);
    }
    families_ = {};
    std::copy(handles.begin(), handles.end(), families_.begin());
    if (transactions_ != nullptr) transactions_->GetAllPreparedTransactions(&prepared_);
    return absl::OkStatus();
  }
  void Close() {
    if (indexed_ == nullptr) return;
    ReleaseSnapshot();
    for (rocksdb::Transaction* transaction : prepared_) delete transaction;
    prepared_.clear();
    const bool attached = owned_ != nullptr;
    if (attached) indexed_->Close().PermitUncheckedError();
    for (Handle* handle : families_) {
      if (handle != nullptr) dropped_.push_back(handle);
    }
    for (Handle* handle : dropped_) {
      indexed_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    }
    dropped_.clear();
    families_ = {};
    indexed_ = nullptr;
    CloseBase();
  }

  // Stops the machine after `operations` more operations, during closing.
  void Stop(uint32_t operations, bool loses_power, uint64_t salt) {
    disk_->files().StopAfter(operations + 1);
    Close();
    std::mt19937_64 random(salt);
    disk_->files().Restart(
        loses_power ? CrashFileSystem::End::kPowerLost : CrashFileSystem::End::kKilled, &random);
  }

  // While it is closed, opens the database without indexes and calls `use(db, families)`.
  template <typename Use>
  absl::Status PlainSession(const Special& special, const Use& use) {
    rocksdb::Options options = Options();
    options.wal_filter = special.wal_filter;
    options.best_efforts_recovery = special.best_efforts_recovery;
    std::vector<std::string> names;
    rocksdb::DB::ListColumnFamilies(options, kPath, &names).PermitUncheckedError();
    std::vector<rocksdb::ColumnFamilyDescriptor> families = {{"default", options},
                                                             {"a", InFamily(options, 1)}};
    if (std::find(names.begin(), names.end(), "b") != names.end()) {
      families.emplace_back("b", InFamily(options, 2));
    }
    std::vector<Handle*> handles;
    std::unique_ptr<rocksdb::DB> db;
    RETURN_IF_ERROR(FromRocksDb(OpenBase(options, families, &handles, &db), "opening"));
    use(db.get(), handles);
    for (Handle* handle : handles) db->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    db.reset();
    transactions_ = nullptr;
    optimistic_ = nullptr;
    return absl::OkStatus();
  }

  // Called while it is closed.
  rocksdb::Status Repair() {
    const rocksdb::Options options = Options();
    return rocksdb::RepairDB(kPath, options, {{"default", options}, {"a", Options(1)}}, Options(2));
  }

  // The rows of a family, at the snapshot and as the transaction sees them if these are given.
  Rows Scan(size_t family, const rocksdb::Snapshot* snapshot = nullptr,
            rocksdb::Transaction* transaction = nullptr) {
    Rows rows;
    if (!has(family)) return rows;
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    const std::unique_ptr<rocksdb::Iterator> row(
        transaction == nullptr ? base()->NewIterator(options, families_[family])
                               : transaction->GetIterator(options, families_[family]));
    for (row->SeekToFirst(); row->Valid(); row->Next()) {
      rows[row->key().ToString()] = row->value().ToString();
    }
    status_ = row->status();
    return rows;
  }
  const rocksdb::Status& scan_status() const { return status_; }

  void HoldSnapshot() {
    if (snapshot_ == nullptr) snapshot_ = indexed_->GetSnapshot();
  }
  void ReleaseSnapshot() {
    if (snapshot_ != nullptr) indexed_->ReleaseSnapshot(snapshot_);
    snapshot_ = nullptr;
  }
  // The snapshot that is held; null if there is none.
  const rocksdb::Snapshot* snapshot() const { return snapshot_; }

 private:
  class NoLogger final : public rocksdb::Logger {
   public:
    using Logger::Logv;
    // Prints the reports of indexes, if CAIRN_TEST_VERBOSE is set.
    void Logv(const char* format, va_list arguments) override {
      static const bool is_verbose = std::getenv("CAIRN_TEST_VERBOSE") != nullptr;
      char line[1000];
      if (!is_verbose || std::vsnprintf(line, sizeof(line), format, arguments) < 0) return;
      if (std::strstr(line, "[cairn]") != nullptr) std::fprintf(stderr, "# %s\n", line);
    }
  };

  rocksdb::Options InFamily(rocksdb::Options options, size_t family) const {
    options.comparator = Options(family).comparator;
    return options;
  }

  IndexedDBOptions IndexOptions() const {
    IndexedDBOptions options;
    options.open.calibration = Calibration::kNone;
    options.open.threads = options.build.threads = options.compact_threads = 1;
    options.build.memory_budget = 1 << 20;
    const absl::Duration follow[] = {absl::Milliseconds(10), absl::Milliseconds(1),
                                     absl::ZeroDuration()};
    options.follow_interval = follow[world_[kFollow]];
    options.flush_interval = world_[kStore] == 0 ? absl::ZeroDuration() : absl::Milliseconds(10);
    options.compact_interval = world_[kMerge] == 0 ? absl::Seconds(1) : absl::Milliseconds(5);
    options.on_stale = world_[kOnStale] == 0 ? OnStale::kRebuild : OnStale::kKeepStale;
    if (world_[kArchive] == kNoArchive) options.log_retention_megabytes = 0;
    return options;
  }

  rocksdb::Status OpenBase(const rocksdb::Options& options,
                           const std::vector<rocksdb::ColumnFamilyDescriptor>& families,
                           std::vector<Handle*>* handles, std::unique_ptr<rocksdb::DB>* db) {
    rocksdb::Status s;
    if (world_[kWrapper] == kAttachTransactions) {
      rocksdb::TransactionDBOptions of_transactions;
      of_transactions.transaction_lock_timeout = of_transactions.default_lock_timeout = 5;
      s = rocksdb::TransactionDB::Open(options, of_transactions, kPath, families, handles,
                                       &transactions_);
      if (s.ok()) db->reset(transactions_);
    } else if (world_[kWrapper] == kAttachOptimistic) {
      s = rocksdb::OptimisticTransactionDB::Open(options, kPath, families, handles, &optimistic_);
      if (s.ok()) db->reset(optimistic_);
    } else {
      s = rocksdb::DB::Open(options, kPath, families, handles, Into(db));
    }
    return s;
  }
  void CloseBase() {
    owned_ = nullptr;
    transactions_ = nullptr;
    optimistic_ = nullptr;
  }

  World world_;
  const std::shared_ptr<Disk> disk_;
  const std::unique_ptr<rocksdb::Env> env_;
  std::shared_ptr<rocksdb::DB> owned_;  // null if IndexedDB opened it
  std::unique_ptr<IndexedDB> indexed_;
  rocksdb::TransactionDB* transactions_ = nullptr;
  rocksdb::OptimisticTransactionDB* optimistic_ = nullptr;
  std::array<Handle*, kFamilies> families_ = {};
  std::vector<Handle*> dropped_;  // of dropped families
  std::vector<rocksdb::Transaction*> prepared_;
  const rocksdb::Snapshot* snapshot_ = nullptr;
  bool is_special_ = false;
  rocksdb::Status status_;
};

}  // namespace cairn::stateful
