#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/delta/row_updates.h"
#include "engine/live/followed_index.h"
#include "engine/version/index_version.h"
#include "index/machine/mutex.h"
#include "rocksdb/db.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/utilities/transaction.h"

namespace cairn {

// The versions of indexes as open transactions see them: with their own uncommitted writes. Recent
// ones are kept, so that several lookups between two writes read the writes once.
//
// RocksDB does not report the end of a transaction. So a view is found by the bytes of the
// transaction's write batch, which it contains, and is kept for kKept after its last use. The bytes
// do not show which writes the transaction has indexed.
// Thread-safe, as far as transactions are: no other thread may use one during a call for it.
class TransactionViews {
 public:
  // Returns the view of this transaction on `version`, or null if it is not known.
  std::shared_ptr<const IndexVersion> Find(rocksdb::Transaction* transaction,
                                           const std::shared_ptr<const IndexVersion>& version);
  // Makes the view. `snapshot` is at the version's state, and `db` is the database of both. Errors:
  // Unimplemented for writes that are not indexed (Transaction::DisableIndexing), for deleted
  // ranges, and for a merge operand of a wide-column entity if this RocksDB cannot read entities in
  // transactions;
  // InvalidArgument if a row cannot be read as the index requires; those of reading merged rows and
  // of BranchVersion. Throws std::bad_alloc.
  absl::StatusOr<std::shared_ptr<const IndexVersion>> Make(
      rocksdb::DB* db, rocksdb::Transaction* transaction, const FollowedIndex& index,
      std::shared_ptr<const IndexVersion> version, const rocksdb::Snapshot* snapshot);
  // Releases the views that were not used recently, or all.
  void DropUnused();
  void Clear();

 private:
  static constexpr size_t kMaxViews = 64;
  static constexpr absl::Duration kKept = absl::Seconds(1);

  struct View {
    const rocksdb::Transaction* transaction;
    std::string writes;  // the transaction's batch
    std::shared_ptr<const IndexVersion> from;
    std::shared_ptr<const IndexVersion> version;
    absl::Time used;
  };
  using Views = std::vector<std::shared_ptr<View>>;

  void Keep(View view);

  Mutex mutex_;
  Views views_ ABSL_GUARDED_BY(mutex_);  // `used` is guarded, too
};

}  // namespace cairn
