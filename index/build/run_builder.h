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
// The rows are scanned in ranges of ascending primary keys, the parts. Entries carry the row's rank
// within its part; how many rows lie before a part is only known once all are scanned.
//
//   RunBuilder builder(PhysicalType::kU64, options, 2);
//   // on any thread, a part at a time:
//   while (NextRows(&keys, &rows)) builder.part(p)->Add(keys, rows);
//   absl::Status s = builder.part(p)->Finish();
//   // then, once:
//   s = builder.Finish({0, rows_of_part_0}, &sink);
//
// Memory: at most 16 bytes a u32 entry, 28 a u64 entry, and for keys of bytes the keys and 26 a key
// (8 in the record, 18 in the sort). What would exceed the budget is sorted and spilled to a
// temporary file, and merged at the end, by as many threads as half of the budget suffices for
// (spill_stretches.h).
//
// Thread safety: each part is used by one thread at a time, different parts by different threads.
// Finish must not run at the same time as any of their methods. No exception leaves: want of memory
// is ResourceExhausted.
class RunBuilder {
 public:
  struct Options {
    int threads = 1;  // of Finish, and about how many parts are being filled at a time
    // Bytes of memory beyond which entries are spilled.
    uint64_t memory_budget = std::numeric_limits<uint64_t>::max();
    std::string spill_directory;              // empty: to exceed the budget is ResourceExhausted
    FileSystem* files = FileSystem::Posix();  // of that; it must outlive the builder
    uint64_t max_entries = kMaxEntries;       // more of them are ResourceExhausted
  };

  // The entries of one range of primary keys.
  class Part {
   public:
    explicit Part(RunBuilder* builder) : builder_(builder) {}

    // Adds entries, keys[i] of row local_rows[i]; requires as many of one as of the other. Rows
    // must ascend, and so must the keys of one row, which are all added by one call. False once the
    // part has failed, so that the scan may stop; Finish says why.
    bool Add(const EncodedKeys& keys, absl::Span<const RowId> local_rows);

    // Called once, behind the last row. InvalidArgument: keys of another kind or longer than
    // KeyCodec::kMaxKeyBytes, or rows or a row's keys that do not ascend. ResourceExhausted: too
    // many entries, no memory, no space for spilling. Other errors are those of writing the spill
    // file.
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
    ColumnChunks<uint32_t> u32_;  // the chunks of the builder's kind hold what is not spilled
    ColumnChunks<uint64_t> u64_;
    RecordChunks bytes_;
    int64_t last_row_ = -1;
    uint64_t entries_ = 0;    // in all
    uint64_t key_bytes_ = 0;  // likewise
    uint64_t reported_ = 0;   // of entries_, those counted in the builder's
    uint64_t charged_ = 0;    // bytes of memory counted in the builder's, for what is not spilled
    uint64_t unspilled_ = 0;  // entries in memory
    bool failed_ = false;
    bool finished_ = false;
    absl::Status status_;
  };

  RunBuilder(PhysicalType kind, Options options, int parts);
  ~RunBuilder();
  RunBuilder(const RunBuilder&) = delete;
  RunBuilder& operator=(const RunBuilder&) = delete;

  // Part i, of those given to the constructor.
  Part* part(int i) { return parts_[static_cast<size_t>(i)].get(); }

  // The entries of all parts: exact once every part is finished, a little behind before.
  uint64_t entries() const { return entries_.load(std::memory_order_relaxed); }

  // Yields all entries to `sink`, with global row ids: base_row_ids[part] + local row. Called once,
  // when all parts are finished; frees what it has yielded. `on_progress`, if any, is told the
  // number of entries that the sink has taken, by one thread at a time; `*cancelled` may be set by
  // any thread.
  //
  // Returns the first error of the sink or of a part; Cancelled; InvalidArgument for bases with
  // which parts overlap; FailedPrecondition for a part that is not finished, or a second call;
  // DataLoss where the spill file was damaged.
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
  std::unique_ptr<SpillFile> spill_file_;  // guarded by mutex_ until it is made
  std::vector<PartRun> spilled_;           // guarded by mutex_ until the last part is finished
  // Finished parts with entries in memory.
  std::vector<Part*> resting_ ABSL_GUARDED_BY(mutex_);
  absl::Status spill_status_;  // the first error of spilling; guarded as spilled_
  bool finished_ = false;
};

}  // namespace cairn
