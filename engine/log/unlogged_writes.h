#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "cairn/types.h"
#include "engine/log/anchor.h"
#include "engine/log/log_tail.h"
#include "index/machine/mutex.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"

namespace cairn {

// The sequence numbers of a database that are not in its log: those of ingested files, and of
// batches that were written without a log (WriteOptions::disableWAL). The follower of the log takes
// these batches from here, and passes the numbers of ingested files.
//
// RocksDB assigns a number during the write, and publishes it before the write returns. So each
// write and ingestion is registered before its call into the database. While one is registered, a
// number that is neither here nor in the log may still come.
//
// MakeDurable keeps the files of an index from running ahead of the database's files. Thread-safe.
class UnloggedWrites {
 public:
  UnloggedWrites() = default;
  UnloggedWrites(const UnloggedWrites&) = delete;
  UnloggedWrites& operator=(const UnloggedWrites&) = delete;

  // Registers a write without a log for its lifetime. The caller must not wait for the follower
  // during that time.
  class Write {
   public:
    // Throws std::bad_alloc, before the write.
    Write(UnloggedWrites* writes, std::shared_ptr<const rocksdb::WriteBatch> batch);
    ~Write();
    Write(const Write&) = delete;
    Write& operator=(const Write&) = delete;

    // The write has succeeded, and `first` is the sequence number of the batch's first record.
    // Allocates nothing.
    void Succeed(SequenceNumber first) noexcept;

   private:
    using Batches = std::map<SequenceNumber, UnloggedBatch>;

    UnloggedWrites* const writes_;
    const uint64_t ticket_;
    Batches::node_type node_;  // made before the write
  };

  // An ingested file has taken this number. Does not wait.
  void NoteIngested(SequenceNumber sequence);
  // Files are ingested between these two calls.
  void BeginIngestion();
  void EndIngestion();

  // While a Hold exists, batches are kept although the follower has passed them, for an index that
  // is being built or will join. Once the kept batches take more than `max_bytes`, the hold ends.
  class Hold {
   public:
    Hold(UnloggedWrites* writes, size_t max_bytes);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    // Returns whether the hold has ended.
    bool exceeded() const { return exceeded_.load(std::memory_order_relaxed); }

   private:
    friend class UnloggedWrites;
    UnloggedWrites* const writes_;
    const size_t max_bytes_;
    std::atomic<bool> exceeded_{false};
  };

  // Returns whether a write without a log is in progress.
  bool any_in_progress() const { return in_progress_ > 0; }
  // Returns the first number after `sequence` that is here; the largest number if there is none.
  SequenceNumber Next(SequenceNumber sequence) const;
  // Returns the last number of the ingested files that follow `sequence` without a gap, up to
  // `until`.
  SequenceNumber PassIngested(SequenceNumber sequence, SequenceNumber until) const;
  // Returns the last number of the batches and ingested files that follow `sequence` without a gap,
  // up to `until`.
  SequenceNumber PassAll(SequenceNumber sequence, SequenceNumber until) const;
  // Appends to *batches those that follow `sequence` without a gap, up to `until`. Ends once they
  // take `max_bytes`.
  void Get(SequenceNumber sequence, SequenceNumber until, size_t max_bytes,
           std::vector<UnloggedBatch>* batches) const;
  // Waits until `number` is here, until no write is in progress, or for some milliseconds.
  void Await(SequenceNumber number);
  // Waits until all writes and ingestions have ended that began before the call, though not for
  // long. All numbers up to one that was published before the call are then here or in the log.
  void AwaitAll();

  // No member of the follower needs the batches up to `sequence`.
  void DropUpTo(SequenceNumber sequence) noexcept;

  // A flush of a column family has written rows with numbers up to `sequence` to files.
  void NoteFlushed(SequenceNumber sequence);
  // Makes sure that the database, opened again after a crash, has the state `sequence`, which an
  // index has reached:
  // - All rows up to `sequence` that are not in the log are in table files. Otherwise all column
  //   families are flushed first.
  // - RocksDB will not give numbers up to `sequence` to other writes. It would do so if the last of
  //   them were only in memory. A flush can drop the row with the last number; then the result is
  //   Unavailable, and a later state can be stored.
  // *anchor, of that state, is then tied to the table files; if the last row may not be in the log,
  // only they prove the state. The log must be made durable separately. Other errors: those of
  // flushing.
  absl::Status MakeDurable(rocksdb::DB* db, SequenceNumber sequence, Anchor* anchor);

 private:
  using Batches = std::map<SequenceNumber, UnloggedBatch>;  // by first number

  uint64_t Begin();
  void End(uint64_t ticket, Batches::node_type node) noexcept;
  // Returns the batch that has the number, or null.
  const UnloggedBatch* Find(SequenceNumber number) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  SequenceNumber PassIngestedLocked(SequenceNumber sequence, SequenceNumber until) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Moves some batches to *dropped that neither a member nor a hold needs. Returns false if there
  // are none.
  static constexpr size_t kMaxAtOnce = 128;  // batches that are moved or copied under one lock
  bool TakeUnneeded(std::array<Batches::node_type, kMaxAtOnce>* dropped) noexcept;
  void DropUnneeded() noexcept;

  mutable Mutex mutex_;
  CondVar ended_;
  Batches batches_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of batches_
  std::set<SequenceNumber> ingested_ ABSL_GUARDED_BY(mutex_);
  int ingestions_ ABSL_GUARDED_BY(mutex_) = 0;  // in progress
  std::vector<Hold*> holds_ ABSL_GUARDED_BY(mutex_);
  SequenceNumber needed_after_ ABSL_GUARDED_BY(mutex_) = UINT64_MAX;  // by members of the follower

  // The writes that have begun are numbered. The first one in `open_` is oldest_, which is in
  // progress unless the list is empty.
  uint64_t oldest_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<bool> open_ ABSL_GUARDED_BY(mutex_);
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // threads
  std::atomic<uint64_t> in_progress_{0};

  std::atomic<SequenceNumber> newest_{0};   // the largest number of a batch
  std::atomic<SequenceNumber> flushed_{0};  // the largest number in a file that a flush has written

  Mutex durable_mutex_;  // held during MakeDurable
  // All batches up to this number are in files.
  SequenceNumber in_files_ ABSL_GUARDED_BY(durable_mutex_) = 0;
  // Log files up to this number do not show that the database has these files.
  uint64_t log_behind_files_ ABSL_GUARDED_BY(durable_mutex_) = 0;
};

}  // namespace cairn
