#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "index/build/sorted_yield.h"
#include "index/build/spill_file.h"
#include "index/machine/mutex.h"
#include "index/run/entry_sink.h"
#include "index/sort/entry_chunks.h"

namespace cairn {

// Collects the entries of one index from a scan on many threads, and yields them sorted.
//
// The rows are scanned in ranges of ascending primary keys, the parts. Entries have the row's rank
// within its part, since the number of rows before a part is known only after the whole scan.
//
//   RunBuilder builder(PhysicalType::kU64, options, 2);
//   // on any thread, one thread per part:
//   while (NextRows(&keys, &rows)) builder.part(p)->Add(keys, rows);
//   absl::Status s = builder.part(p)->Finish();
//   // then, once:
//   s = builder.Finish({0, rows_of_part_0}, &sink);
//
// Memory: at most 16 bytes per u32 entry and 28 per u64 entry; for bytes the keys and 26 per key (8
// in the record, 18 in the sort). Entries that would exceed the budget are sorted and spilled to a
// temporary file, and merged at the end. The number of threads that merge is limited by half of the
// budget (spill_stretches.h).
//
// Thread safety: each part is used by one thread at a time, different parts by different threads.
// Finish must not run at the same time as any of their methods. No exception leaves a method: if
// memory runs out, the error is ResourceExhausted.
class RunBuilder {
 public:
  struct Options {
    int threads = 1;  // used by Finish; also about the number of parts that are filled concurrently
    // Bytes of memory; entries that exceed it are spilled.
    uint64_t memory_budget = std::numeric_limits<uint64_t>::max();
    std::string spill_directory;              // if empty, exceeding the budget is ResourceExhausted
    FileSystem* files = FileSystem::Posix();  // for spill_directory; must outlive the builder
    uint64_t max_entries = kMaxEntries;       // exceeding it is ResourceExhausted
  };

  // The entries of one range of primary keys.
  class Part {
   public:
    explicit Part(RunBuilder* builder) : builder_(builder) {}

    // Adds entries: keys[i] of row local_rows[i]; requires that both have the same length. Rows
    // must ascend. All keys of a row must be added in one call and must ascend. Returns false if
    // the part has failed, so that the scan may stop; Finish returns the error.
    bool Add(const EncodedKeys& keys, absl::Span<const RowId> local_rows);

    // Called once, after the last row. Errors:
    // - InvalidArgument: keys of another kind or longer than KeyCodec::kMaxKeyBytes, or rows or a
    //   row's keys that do not ascend.
    // - ResourceExhausted: too many entries, no memory, or no space for spilling.
    // - Errors of writing the spill file.
    absl::Status Finish();

   private:
    friend class RunBuilder;

    bool Admit(PhysicalType kind);
    template <typename KeyAt>
    bool InOrder(absl::Span<const RowId> rows, KeyAt key_at);
    template <typename Key>
    bool AddNumbers(ColumnChunks<Key>* chunks, absl::Span<const Key> keys,
                    absl::Span<const RowId> rows);
    bool AddStrings(const EncodedKeys& keys, absl::Span<const RowId> rows);
    bool Grow(std::string_view key);
    bool Fail(absl::Status status);
    absl::Status Report();

    RunBuilder* builder_;
    // the chunks of the builder's kind hold the entries that are not spilled
    ColumnChunks<uint32_t> u32_;
    ColumnChunks<uint64_t> u64_;
    RecordChunks bytes_;
    int64_t last_row_ = -1;
    uint64_t entries_ = 0;    // total
    uint64_t key_bytes_ = 0;  // total
    uint64_t reported_ = 0;   // the number of entries_ that the builder has counted
    // bytes of memory that the builder has counted for entries that are not spilled
    uint64_t charged_ = 0;
    uint64_t unspilled_ = 0;  // entries in memory
    bool failed_ = false;
    bool finished_ = false;
    absl::Status status_;
  };

  RunBuilder(PhysicalType kind, Options options, int parts);
  ~RunBuilder();
  RunBuilder(const RunBuilder&) = delete;
  RunBuilder& operator=(const RunBuilder&) = delete;

  // Part i of the `parts` given to the constructor.
  Part* part(int i) { return parts_[static_cast<size_t>(i)].get(); }

  // The entries of all parts: exact when every part is finished, slightly too low before.
  uint64_t entries() const { return entries_.load(std::memory_order_relaxed); }

  // Yields all entries to `sink`, with global row ids: base_row_ids[part] + local row. Called once,
  // when all parts are finished; frees entries after they are yielded. `on_progress`, if not null,
  // is called with the number of entries that the sink has taken, by one thread at a time. Any
  // thread may set `*cancelled`.
  //
  // Returns the first error of the sink or of a part. Other errors: Cancelled; InvalidArgument:
  // parts overlap with these bases; FailedPrecondition: a part is not finished, or this is a second
  // call; DataLoss: the spill file is damaged.
  absl::Status Finish(absl::Span<const RowId> base_row_ids, EntrySink* sink,
                      const std::function<void(uint64_t entries)>& on_progress = nullptr,
                      const std::atomic<bool>* cancelled = nullptr);

 private:
  // A spilled run and the part that it came from.
  struct PartRun {
    size_t part;
    SpillRun run;
  };

  absl::Status CheckParts(absl::Span<const RowId> base_row_ids) const;
  absl::Status MakeRoom(Part* part, uint64_t bytes);
  absl::Status Spill(Part* part);
  absl::StatusOr<SpillFile*> OpenSpillFile();

  template <typename Key>
  absl::Status SortUnspilled(absl::Span<Part* const> parts, absl::Span<const RowId> bases,
                             int threads, EntryBatch<Key>* batch, StopFlag* stop);
  template <typename Key>
  absl::StatusOr<SpillRun> SpillSorted(absl::Span<Part* const> parts, absl::Span<const RowId> bases,
                                       int threads, StopFlag* stop);
  template <typename Key>
  absl::Status MergeSpilled(std::vector<RunOf> runs, EntryBatch<Key>* batch, StopFlag* stop);
  template <typename Key>
  absl::Status Yield(absl::Span<const RowId> bases, EntrySink* sink,
                     const std::function<void(uint64_t)>& on_progress,
                     const std::atomic<bool>* cancelled);

  const PhysicalType kind_;
  const Options options_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::atomic<uint64_t> entries_{0};
  std::atomic<uint64_t> charged_{0};  // bytes of memory that the parts take

  Mutex mutex_;
  std::unique_ptr<SpillFile> spill_file_;  // guarded by mutex_ until it is created
  std::vector<PartRun> spilled_;           // guarded by mutex_ until the last part is finished
  // Finished parts with entries in memory.
  std::vector<Part*> resting_ ABSL_GUARDED_BY(mutex_);
  absl::Status spill_status_;  // the first error of spilling; guarded as spilled_
  bool finished_ = false;
};

}  // namespace cairn
