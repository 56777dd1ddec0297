#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/indexed_db.h"
#include "engine/live/followed_index.h"
#include "engine/live/index_catalog.h"
#include "engine/live/index_upkeep.h"
#include "engine/live/log_follower.h"
#include "engine/live/log_retention.h"
#include "engine/live/unique_guard.h"
#include "rocksdb/db.h"

namespace cairn {

// The indexes of one database, and all that is done to keep them: what is behind IndexedDB, whose
// methods have these names. Thread-safe.
class IndexSet {
 public:
  // Neither the database nor `options` may go before Close.
  IndexSet(rocksdb::DB* db, IndexedDBOptions options, IndexCatalog catalog);
  ~IndexSet();

  // Has the catalog's indexes follow, and starts what is done in the background.
  absl::Status Start(absl::Span<rocksdb::ColumnFamilyHandle* const> handles);
  // Ends all of it, and stores what is there. Once; not beside other calls.
  void Close();

  absl::Status CreateIndex(const IndexSpec& spec, rocksdb::ColumnFamilyHandle* column_family);
  absl::Status RebuildIndex(const std::string& name);
  absl::Status DropIndex(const std::string& name);
  absl::Status MergeIndex(const std::string& name);
  absl::Status WaitUntilReady(const std::string& name, absl::Duration timeout) const;
  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Index(const std::string& name) const;
  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Pin(const std::string& name) const;
  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> PinAsItIs(const std::string& name) const;
  std::vector<IndexInfo> ListIndexes() const;
  absl::Status StoreIndexes();

  // Whether writes need not come through Write.
  bool checks_nothing() const { return guard_.idle(); }
  rocksdb::Status Write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch);

  // Calls `change`, which changes rows of column families in a way that the log does not tell; if
  // it does, `why` says how, and their indexes are stale.
  rocksdb::Status ChangePastLog(absl::Span<rocksdb::ColumnFamilyHandle* const> column_families,
                                const std::string& why,
                                const std::function<rocksdb::Status()>& change);
  // The indexes of these have failed for good, as the column families have gone.
  void DetachFamilies(absl::Span<rocksdb::ColumnFamilyHandle* const> column_families,
                      const std::string& why);
  // Likewise those that use this handle, which is about to go.
  void DetachHandle(rocksdb::ColumnFamilyHandle* handle);

 private:
  using Indexes = std::vector<std::shared_ptr<FollowedIndex>>;

  absl::StatusOr<std::shared_ptr<FollowedIndex>> Find(const std::string& name) const;
  Indexes All() const;
  Indexes Of(absl::Span<rocksdb::ColumnFamilyHandle* const> column_families) const;
  void Add(const std::shared_ptr<FollowedIndex>& index);
  void Detach(const std::shared_ptr<FollowedIndex>& index, const std::string& why);
  void Open(const IndexCatalog::Entry& entry,
            absl::Span<rocksdb::ColumnFamilyHandle* const> handles);
  // Its rows change in a way that the log does not tell.
  absl::Status Disrupt(FollowedIndex* index, const std::string& why);
  absl::Status Store(FollowedIndex* index);  // its work_mutex is held
  absl::Status Merge(FollowedIndex* index);
  absl::Status MergeDeltaFiles(FollowedIndex* index);
  void FollowInBackground();
  void StoreInBackground();
  void MergeWhatPays();

  rocksdb::DB* const db_;
  const IndexedDBOptions options_;
  const IndexCatalog catalog_;
  const std::shared_ptr<LogFollower> follower_;
  LogRetention retention_;
  IndexUpkeep upkeep_;
  UniqueGuard guard_;
  std::atomic<bool> closed_{false};

  std::mutex names_mutex_;  // held while an index comes or goes
  mutable std::mutex indexes_mutex_;
  std::map<std::string, std::shared_ptr<FollowedIndex>> indexes_;  // guarded by indexes_mutex_

  // The last, so that they end first.
  std::unique_ptr<Periodically> following_;
  std::unique_ptr<Periodically> storing_;
  std::unique_ptr<Periodically> merging_;
};

}  // namespace cairn
