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
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/write_batch.h"

namespace cairn {

// What a transaction will do once it commits.
struct PreparedTransaction {
  uint64_t count = 0;               // sequence numbers that its commit takes: one a record
  std::vector<RowChanges> changes;  // one for each column family that is followed
};

// Takes from write batches what happens to the rows of some column families, whichever records it
// is written as: values, entities, deletions, merge operands, range deletions, references to values
// that are elsewhere. Only committed changes count: what a batch prepares (two-phase commit) is
// kept until another commits it, and comes there in the order of changes, or rolls it back.
//
// A record takes one sequence number, whichever column family it is of and whether that is there
// still. Records that are prepared take none until they are committed, markers and log data take
// none at all. So the count in a batch's header, which counts prepared records and not those that
// it commits, does not say how many sequence numbers it took: Read does.
//
// A deletion of an empty range takes one, too, which RocksDB gives to no row: rows behind it in its
// batch have numbers lower by one than their places. And when RocksDB recovers a log, a batch that
// is the last one ends before them (empty_ranges()), so that they are given again.
//
// Transactions that are written before they commit (WritePrepared, WriteUnprepared) number batches
// instead of records, and are refused as Unimplemented. Not thread-safe.
class WriteBatchReader final : private WriteBatchHandler {
 public:
  // Asked for a transaction that is committed and that no batch read so far has prepared. Its error
  // is Read's. May not use the reader.
  using FindPrepared = std::function<absl::StatusOr<PreparedTransaction>(std::string_view name)>;

  // `column_families` are ids. Without a `find`, such a commit is FailedPrecondition.
  explicit WriteBatchReader(std::vector<uint32_t> column_families, FindPrepared find = nullptr);

  // Appends to changes[i] what the batch, written at sequence number `first`, does to the i-th
  // column family, and returns how many sequence numbers it took. Changes outside (after, until]
  // are passed over. DataLoss for a batch that cannot be read; ResourceExhausted for want of
  // memory. After an error the changes may have some of the batch's.
  absl::StatusOr<uint64_t> Read(const rocksdb::WriteBatch& batch, SequenceNumber first,
                                SequenceNumber after, SequenceNumber until,
                                absl::Span<RowChanges> changes);
  // The same; large values are not copied (RowChanges::Owner).
  absl::StatusOr<uint64_t> Read(const std::shared_ptr<const rocksdb::WriteBatch>& batch,
                                SequenceNumber first, SequenceNumber after, SequenceNumber until,
                                absl::Span<RowChanges> changes);
  // All that a batch does, for callers who know its place.
  absl::StatusOr<uint64_t> Read(const rocksdb::WriteBatch& batch, absl::Span<RowChanges> changes) {
    return Read(batch, 1, 0, UINT64_MAX, changes);
  }

  // How many deletions of empty ranges were among what the last batch took sequence numbers for.
  uint64_t empty_ranges() const { return empty_ranges_; }

  // The largest id of a column family in all records that were read, followed or not. RocksDB
  // gives ascending ids, and none twice.
  uint32_t newest_family() const { return newest_family_; }

  // Takes a transaction that is prepared and not yet committed.
  std::optional<PreparedTransaction> TakePrepared(std::string_view name);

 private:
  rocksdb::Status PutCF(uint32_t id, const rocksdb::Slice& key,
                        const rocksdb::Slice& value) override;
  rocksdb::Status PutEntityCF(uint32_t id, const rocksdb::Slice& key,
                              const rocksdb::Slice& entity) override;
  rocksdb::Status DeleteCF(uint32_t id, const rocksdb::Slice& key) override;
  rocksdb::Status SingleDeleteCF(uint32_t id, const rocksdb::Slice& key) override;
  rocksdb::Status DeleteRangeCF(uint32_t id, const rocksdb::Slice& lower,
                                const rocksdb::Slice& upper) override;
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
  // RocksDB may be built with assertions that every mark succeeds, so that errors stop it here.
  bool Continue() override { return status_.ok(); }
  // RocksDB then refuses, by name, the records of transactions that are written before they commit.
  OptionState WriteAfterCommit() const override { return OptionState::kEnabled; }
  OptionState WriteBeforePrepare() const override { return OptionState::kDisabled; }

  // The index of a column family, or how many there are for one that is not followed.
  size_t IndexOf(uint32_t id);
  // Counts a record; returns where its change goes, null where it is not wanted.
  RowChanges* NextRecord(uint32_t id);
  absl::Status Commit(std::string_view name);

  const std::vector<uint32_t> column_families_;
  const FindPrepared find_;
  std::map<std::string, PreparedTransaction, std::less<>> prepared_;  // by name

  // The last column family asked for.
  uint32_t last_id_ = 0;
  size_t last_index_;
  uint32_t newest_family_ = 0;

  // Of the batch that is being read.
  SequenceNumber next_ = 0;  // of the next record that is not being prepared
  SequenceNumber after_ = 0;
  SequenceNumber until_ = 0;
  absl::Span<RowChanges> changes_;
  RowChanges::Owner owner_;
  uint64_t empty_ranges_ = 0;
  bool preparing_ = false;
  PreparedTransaction transaction_;  // that is being prepared
  absl::Status status_;
};

}  // namespace cairn
