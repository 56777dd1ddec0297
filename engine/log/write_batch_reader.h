#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/log/row_changes.h"
#include "engine/util/key_order.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"

namespace cairn {

// Returns the order of a column family's keys by its id.
using OrderOfFamily = std::function<KeyOrder(uint32_t)>;

// Returns the orders of the column families of a database by the names of their comparators, which
// only the MANIFEST has for all of them. It is read at the first call and for an unknown id. An
// unknown order, or that of a dropped column family, is kBytewise. The database must outlive the
// result, which is not thread-safe.
OrderOfFamily OrdersOfFamilies(rocksdb::DB* db);

// A column family whose changes are read.
struct FollowedFamily {
  uint32_t id = 0;
  KeyOrder order = KeyOrder::kBytewise;

  static FollowedFamily Of(rocksdb::ColumnFamilyHandle* family) {
    return {family->GetID(), KnownKeyOrderOf(family)};
  }
};

// The changes of a transaction that is prepared and not yet committed.
struct PreparedTransaction {
  uint64_t count = 0;  // sequence numbers that its commit takes: one per record
  std::optional<uint32_t> last_kept_family;
  std::vector<RowChanges> changes;  // one per followed column family
};

// Extracts the changes to the rows of some column families from write batches, for all types of
// records: values, entities, deletions, merge operands, range deletions, and references to blobs.
// Only committed changes count. Changes that a batch prepares (two-phase commit) are kept until
// another batch commits or rolls them back. They take their position in the order of changes at the
// commit.
//
// A record takes one sequence number, even if its column family is not followed or no longer
// exists. Prepared records take none until they are committed; markers and log data take none. So
// the count in a batch's header is not the number of sequence numbers that it took, because the
// header counts prepared records but not the records that it commits. Read returns the number.
//
// A deletion of an empty range also takes one number, but RocksDB gives it to no row: rows after it
// in its batch have numbers that are lower by one than their places. If RocksDB recovers a log and
// such a batch is the last one, it ends before these numbers (empty_ranges()), and they are used
// again.
//
// Transactions that are written before they commit (WritePrepared, WriteUnprepared) number batches
// instead of records, and are refused as Unimplemented. Not thread-safe.
class WriteBatchReader final : private WriteBatchHandler {
 public:
  // Finds a transaction if the reader has read its commit but not its preparation. If it
  // returns an error, Read returns that error. Must not use the reader.
  using FindPrepared = std::function<absl::StatusOr<PreparedTransaction>(std::string_view name)>;

  // If `find` is null, Read returns FailedPrecondition for such a commit. `order_of` is called for
  // families that are not followed; null: their keys are in the order of bytes.
  explicit WriteBatchReader(std::vector<FollowedFamily> column_families,
                            FindPrepared find = nullptr, OrderOfFamily order_of = nullptr);

  // Appends to changes[i] the changes of the batch to the i-th column family. `first` is the
  // sequence number of the batch. Returns the number of sequence numbers that it took. Changes
  // outside (after, until] are skipped. Errors: DataLoss if the batch cannot be read;
  // ResourceExhausted if memory runs out. After an error the changes may contain some of the
  // batch's.
  absl::StatusOr<uint64_t> Read(const rocksdb::WriteBatch& batch, SequenceNumber first,
                                SequenceNumber after, SequenceNumber until,
                                absl::Span<RowChanges> changes);
  // The same, but large values are not copied (RowChanges::Owner).
  absl::StatusOr<uint64_t> Read(const std::shared_ptr<const rocksdb::WriteBatch>& batch,
                                SequenceNumber first, SequenceNumber after, SequenceNumber until,
                                absl::Span<RowChanges> changes);
  // Reads all changes of a batch, for callers that know its sequence number.
  absl::StatusOr<uint64_t> Read(const rocksdb::WriteBatch& batch, absl::Span<RowChanges> changes) {
    return Read(batch, 1, 0, UINT64_MAX, changes);
  }

  // The number of deletions of empty ranges among the records of the last batch that took sequence
  // numbers.
  uint64_t empty_ranges() const { return empty_ranges_; }

  // The largest id of a column family in all records read, followed or not. RocksDB assigns
  // ascending ids and never reuses one.
  uint32_t newest_family() const { return newest_family_; }

  // The id of the column family of the last record that took a sequence number, if a flush keeps
  // that record; nullopt if the flush may drop it: a single deletion (together with the row), or a
  // deletion of an empty range.
  std::optional<uint32_t> last_kept_family() const { return last_kept_family_; }

  // Removes and returns a transaction that is prepared and not yet committed.
  std::optional<PreparedTransaction> TakePrepared(std::string_view name);

 private:
  rocksdb::Status PutCF(uint32_t id, const rocksdb::Slice& key,
                        const rocksdb::Slice& value) override;
  rocksdb::Status PutEntityCF(uint32_t id, const rocksdb::Slice& key,
                              const rocksdb::Slice& entity) override;
  rocksdb::Status DeleteCF(uint32_t id, const rocksdb::Slice& key) override;
  rocksdb::Status SingleDeleteCF(uint32_t id, const rocksdb::Slice& key) override;
  rocksdb::Status DeleteRangeCF(uint32_t id, const rocksdb::Slice& begin,
                                const rocksdb::Slice& end) override;
  rocksdb::Status MergeCF(uint32_t id, const rocksdb::Slice& key,
                          const rocksdb::Slice& operand) override;
  rocksdb::Status PutBlobIndexCF(uint32_t id, const rocksdb::Slice& key,
                                 const rocksdb::Slice& index) override;
  rocksdb::Status MarkBeginPrepare(bool unprepared) override;
  rocksdb::Status MarkEndPrepare(const rocksdb::Slice& name) override;
  rocksdb::Status MarkCommit(const rocksdb::Slice& name) override;
  rocksdb::Status MarkCommitWithTimestamp(const rocksdb::Slice& name,
                                          const rocksdb::Slice& timestamp) override;
  rocksdb::Status MarkRollback(const rocksdb::Slice& name) override;
  rocksdb::Status MarkNoop(bool empty_batch) override;
  // RocksDB may be built with assertions that every mark succeeds, so errors end the iteration
  // here.
  bool Continue() override { return status_.ok(); }
  // With these two, RocksDB rejects the records of transactions that are written before they
  // commit.
  OptionState WriteAfterCommit() const override { return OptionState::kEnabled; }
  OptionState WriteBeforePrepare() const override { return OptionState::kDisabled; }

  // Returns the index of a column family, or the number of followed families if it is not followed.
  size_t IndexOf(uint32_t id);
  // Checks other_ranges_.
  void FindInvertedRanges();
  // Counts a record. Returns the destination of its change, or null if the change is not needed.
  RowChanges* NextRecord(uint32_t id);
  // The last record may be dropped by a flush.
  void ForgetLast() { (preparing_ ? transaction_.last_kept_family : last_kept_family_).reset(); }
  absl::Status Commit(std::string_view name);

  const std::vector<FollowedFamily> column_families_;
  const FindPrepared find_;
  const OrderOfFamily order_of_;
  std::map<std::string, PreparedTransaction, std::less<>> prepared_;  // by name

  // The last column family looked up.
  uint32_t last_id_ = 0;
  size_t last_index_;
  uint32_t newest_family_ = 0;
  std::optional<uint32_t> last_kept_family_;

  // State of the batch being read.
  SequenceNumber next_ = 0;  // number of the next record that is not being prepared
  SequenceNumber after_ = 0;
  SequenceNumber until_ = 0;
  absl::Span<RowChanges> changes_;
  RowChanges::Owner owner_;
  uint64_t empty_ranges_ = 0;
  bool has_inverted_range_ = false;
  struct OtherRange {
    uint32_t family;
    bool ascends;
  };
  std::vector<OtherRange> other_ranges_;  // of families that are not followed; not yet checked
  bool preparing_ = false;
  PreparedTransaction transaction_;  // the transaction being prepared
  absl::Status status_;
};

}  // namespace cairn
