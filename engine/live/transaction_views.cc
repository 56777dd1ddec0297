#include "engine/live/transaction_views.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/log/row_changes.h"
#include "engine/log/settled_changes.h"
#include "engine/log/write_batch_reader.h"
#include "engine/serve/change_extractor.h"
#include "engine/util/rocksdb_compat.h"
#include "engine/util/status.h"
#include "engine/version/version_branch.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"
#include "rocksdb/utilities/write_batch_with_index.h"
#include "rocksdb/write_batch.h"

namespace cairn {
namespace {

const std::string& WritesOf(rocksdb::Transaction* transaction) {
  return transaction->GetWriteBatch()->GetWriteBatch()->Data();
}

// Reads the uncommitted changes of one transaction to the rows of one column family.
class UncommittedRows {
 public:
  UncommittedRows(rocksdb::DB* db, rocksdb::Transaction* transaction,
                  rocksdb::ColumnFamilyHandle* column_family, const rocksdb::Snapshot* snapshot)
      : db_(db), transaction_(transaction), column_family_(column_family) {
    options_.snapshot = snapshot;
  }

  // The changes refer to this object.
  absl::Status Read(SettledChanges* settled) {
    WriteBatchReader reader({FollowedFamily::Of(column_family_)});
    RETURN_IF_ERROR(
        reader.Read(*transaction_->GetWriteBatch()->GetWriteBatch(), absl::MakeSpan(&written_, 1))
            .status());
    // The reader takes the contents of a prepared batch for a transaction of its own.
    if (auto prepared = reader.TakePrepared(transaction_->GetName())) {
      written_.Append(prepared->changes[0]);
    }
    settled->Settle(written_);
    if (!settled->deleted_ranges().empty()) {
      return absl::UnimplementedError("the transaction deletes a range of rows");
    }
    for (const RowChange& row : settled->rows()) RETURN_IF_ERROR(Resolve(row));
    settled->Settle(resolved_);
    return absl::OkStatus();
  }

 private:
  absl::Status ReadError(const rocksdb::Status& status) const {
    return FromRocksDb(status, "cannot read an uncommitted row");
  }
  static absl::Status NotIndexed() {
    return absl::UnimplementedError(
        "the transaction has writes that it does not index (DisableIndexing), so its own reads do "
        "not see them");
  }

  // Appends the row's change to resolved_, with the result of merge operands instead of these.
  // Checks that the transaction's reads see the change.
  absl::Status Resolve(const RowChange& row) {
    const rocksdb::Slice key(row.key);
    rocksdb::PinnableSlice value;
    const rocksdb::Status read = transaction_->Get(options_, column_family_, key, &value);
    if (!read.ok() && !read.IsNotFound()) return ReadError(read);
    switch (row.kind) {
      case RowChangeKind::kPut:
        if (!read.ok() || value != rocksdb::Slice(row.value)) return NotIndexed();
        resolved_.Put(row.key, row.value);
        return absl::OkStatus();
      case RowChangeKind::kDelete:
      case RowChangeKind::kDeleteRange:
        if (read.ok()) return NotIndexed();
        resolved_.Delete(row.key);
        return absl::OkStatus();
      case RowChangeKind::kPutEntity:
      case RowChangeKind::kLookUp:
        break;
    }
    if (read.IsNotFound() && row.kind == RowChangeKind::kPutEntity) return NotIndexed();
    if (read.IsNotFound()) {
      resolved_.Delete(row.key);
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(ResolveEntity(transaction_, key, value));
    const bool is_same =
        row.kind == RowChangeKind::kLookUp || resolved_[resolved_.size() - 1].value == row.value;
    return is_same ? absl::OkStatus() : NotIndexed();
  }

  // Appends a row that exists, `value` being its default column.
  template <typename Transaction>
  absl::Status ResolveEntity(Transaction* transaction, const rocksdb::Slice& key,
                             const rocksdb::Slice& value) {
    rocksdb::PinnableWideColumns columns;
    constexpr bool kReadsEntities = requires {
      transaction->GetEntity(options_, column_family_, key, &columns);
    };
    rocksdb::Status read;
    if constexpr (kReadsEntities) {
      read = transaction->GetEntity(options_, column_family_, key, &columns);
    } else {
      read = db_->GetEntity(options_, column_family_, key, &columns);
      if (read.IsNotFound()) read = rocksdb::Status::OK();  // not committed yet
    }
    if (!read.ok()) return ReadError(read);
    const bool is_entity = columns.columns().size() > 1 ||
                           (columns.columns().size() == 1 && !columns.columns()[0].name().empty());
    if (!is_entity) {
      resolved_.Put(key.ToStringView(), value.ToStringView());
      return absl::OkStatus();
    }
    if constexpr (!kReadsEntities) {
      return absl::UnimplementedError(
          "this version of RocksDB cannot read the result of a merge operand of a wide-column "
          "entity in a transaction");
    }
    rocksdb::WriteBatch batch;
    const rocksdb::Status put = batch.PutEntity(column_family_, key, columns.columns());
    if (!put.ok()) return ReadError(put);
    WriteBatchReader reader({FollowedFamily::Of(column_family_)});
    return reader.Read(batch, absl::MakeSpan(&resolved_, 1)).status();
  }

  rocksdb::DB* const db_;
  rocksdb::Transaction* const transaction_;
  rocksdb::ColumnFamilyHandle* const column_family_;
  rocksdb::ReadOptions options_;
  RowChanges written_, resolved_;
};

}  // namespace

std::shared_ptr<const IndexVersion> TransactionViews::Find(
    rocksdb::Transaction* transaction, const std::shared_ptr<const IndexVersion>& version) {
  const std::string& writes = WritesOf(transaction);
  std::shared_ptr<View> found;
  {
    const MutexLock lock(&mutex_);
    const auto view = std::find_if(views_.rbegin(), views_.rend(), [&](const auto& known) {
      return known->transaction == transaction && known->from == version;
    });
    if (view == views_.rend()) return nullptr;
    found = *view;
    found->used = absl::Now();
  }
  return found->writes == writes ? found->version : nullptr;
}

absl::StatusOr<std::shared_ptr<const IndexVersion>> TransactionViews::Make(
    rocksdb::DB* db, rocksdb::Transaction* transaction, const FollowedIndex& index,
    std::shared_ptr<const IndexVersion> version, const rocksdb::Snapshot* snapshot) {
  UncommittedRows rows(db, transaction, index.column_family(), snapshot);
  SettledChanges settled;
  RowUpdates updates(index.codec().kind());
  const auto read = [&]() -> absl::StatusOr<std::shared_ptr<const IndexVersion>> {
    RETURN_IF_ERROR(rows.Read(&settled));
    if (settled.rows().empty()) return version;
    ASSIGN_OR_RETURN(ChangeExtractor extractor, ChangeExtractor::Create(index.spec()));
    RETURN_IF_ERROR(extractor.Extract(settled, nullptr, &updates));
    return BranchVersion(*version, updates);
  };
  absl::StatusOr<std::shared_ptr<const IndexVersion>> made = read();
  if (!made.ok()) {
    const absl::Status shown = ShownError(db, made.status());
    return absl::Status(shown.code(), absl::StrFormat("index %s, uncommitted writes: %s",
                                                      Quoted(index.name()), shown.message()));
  }
  Keep({transaction, WritesOf(transaction), std::move(version), *made, absl::Now()});
  return made;
}

void TransactionViews::Keep(View view) {
  auto kept = std::make_shared<View>(std::move(view));
  std::shared_ptr<View> gone;  // destroyed without the lock
  const MutexLock lock(&mutex_);
  auto old = std::find_if(views_.begin(), views_.end(), [&](const auto& known) {
    return known->transaction == kept->transaction &&
           known->from->base->directory == kept->from->base->directory;
  });
  if (old == views_.end() && views_.size() == kMaxViews) old = views_.begin();
  if (old != views_.end()) {
    gone = std::move(*old);
    views_.erase(old);
  }
  views_.push_back(std::move(kept));
}

void TransactionViews::DropUnused() {
  Views gone;  // destroyed without the lock
  const MutexLock lock(&mutex_);
  const absl::Time since = absl::Now() - kKept;
  const auto unused = std::stable_partition(views_.begin(), views_.end(),
                                            [&](const auto& view) { return view->used >= since; });
  gone.assign(std::make_move_iterator(unused), std::make_move_iterator(views_.end()));
  views_.erase(unused, views_.end());
}

void TransactionViews::Clear() {
  Views gone;
  const MutexLock lock(&mutex_);
  gone.swap(views_);
}

}  // namespace cairn
