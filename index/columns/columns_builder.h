#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/key_codec.h"
#include "cairn/types.h"
#include "index/build/spill_file.h"
#include "index/columns/column_file.h"
#include "index/files/file_system.h"
#include "index/machine/mutex.h"

namespace cairn {

// Collects the columns of one index's rows from a scan on many threads, and writes them to a column
// file in row order: what RunBuilder is for entries.
//
// The rows are scanned in ranges of ascending primary keys, the parts, of which each row is added,
// in order; how many rows lie before a part is only known once all are scanned.
//
//   ColumnsBuilder builder(columns, options, 2);
//   // on any thread, a part at a time:
//   while (NextRow(&values)) builder.part(p)->Add(values);
//   absl::Status s = builder.part(p)->Finish();
//   // then, once:
//   s = builder.Finish(writer.get());
//
// Memory: the values, packed as in a column file but for dictionaries, and of each part that is
// being filled up to 1,024 rows as they were added. What would exceed the budget is spilled to a
// temporary file.
//
// Thread safety: each part is used by one thread at a time, different parts by different threads.
// Finish must not run at the same time as any of their methods. No exception leaves: want of memory
// is ResourceExhausted.
class ColumnsBuilder {
 public:
  struct Options {
    // Bytes of memory beyond which values are spilled.
    uint64_t memory_budget = std::numeric_limits<uint64_t>::max();
    std::string spill_directory;              // empty: to exceed the budget is ResourceExhausted
    FileSystem* files = FileSystem::Posix();  // of that; it must outlive the builder
    uint64_t max_rows = kMaxEntries;          // more of them are ResourceExhausted
  };

  // The rows of one range of primary keys.
  class Part {
   public:
    explicit Part(ColumnsBuilder* builder);

    // Adds the part's next row, one value a column. False once the part has failed, so that the
    // scan may stop; Finish says why.
    bool Add(absl::Span<const DataValue> row);
    // Adds rows: a piece of each column, of its type, all of one size.
    bool Add(absl::Span<const ColumnValues> rows);

    // Called once, behind the last row. InvalidArgument, naming the column: a value that does not
    // fit (ColumnValues::Append), another number of values than of columns. ResourceExhausted: too
    // many rows, no memory, no space for spilling. Other errors are those of writing the spill
    // file.
    absl::Status Finish();

    // Rows added so far.
    uint64_t rows() const { return rows_; }

   private:
    friend class ColumnsBuilder;

    // Encoded rows (columns_builder.cc), in memory or in the spill file.
    struct Chunk {
      std::string bytes;
      SpillBlock spilled = {};
      bool is_spilled = false;
    };

    bool Admit(size_t columns);
    absl::Status AppendRows(absl::Span<const ColumnValues> rows);
    absl::Status Encode();
    void Charge();
    bool Fail(absl::Status status);

    ColumnsBuilder* builder_;
    std::vector<ColumnValues> pending_;  // rows that are not encoded yet, one a column
    uint64_t pending_bytes_ = 0;         // of their text and bytes
    std::vector<Chunk> chunks_;
    uint64_t rows_ = 0;
    uint64_t reported_ = 0;  // of rows_, those counted in the builder's
    uint64_t charged_ = 0;   // bytes of memory counted in the builder's, for what is not spilled
    bool failed_ = false;
    bool finished_ = false;
    absl::Status status_;
  };

  // InvalidArgument columns (CheckColumns) are what each part and Finish report.
  ColumnsBuilder(std::vector<ColumnSchema> columns, Options options, int parts);
  ~ColumnsBuilder();
  ColumnsBuilder(const ColumnsBuilder&) = delete;
  ColumnsBuilder& operator=(const ColumnsBuilder&) = delete;

  // Part i, of those given to the constructor.
  Part* part(int i) { return parts_[static_cast<size_t>(i)].get(); }
  absl::Span<const ColumnSchema> columns() const { return columns_; }
  // The rows of all parts: exact once every part is finished, a little behind before.
  uint64_t rows() const { return rows_.load(std::memory_order_relaxed); }

  // Appends the rows of all parts, one part behind the other, to `writer`, a new one of the same
  // columns, and finishes it. Called once, when all parts are finished; frees what it has written.
  // `*cancelled` may be set by any thread.
  //
  // Returns the first error of the writer or of a part; Cancelled; InvalidArgument for a writer of
  // other columns or with rows; FailedPrecondition for a part that is not finished, or a second
  // call; DataLoss where the spill file was damaged.
  absl::Status Finish(ColumnFileWriter* writer, const std::atomic<bool>* cancelled = nullptr);

 private:
  absl::Status CheckParts() const;
  absl::Status WriteChunk(Part::Chunk* chunk, std::vector<ColumnValues>* rows,
                          ColumnFileWriter* writer, const std::atomic<bool>* cancelled);
  absl::Status MakeRoom(Part* part);
  absl::Status Spill(Part* part);
  absl::StatusOr<SpillFile*> OpenSpillFile();

  const std::vector<ColumnSchema> columns_;
  const Options options_;
  absl::Status status_;  // CheckColumns'
  std::vector<std::unique_ptr<Part>> parts_;
  std::atomic<uint64_t> rows_{0};
  std::atomic<uint64_t> charged_{0};  // bytes of memory that the parts take

  Mutex mutex_;
  std::unique_ptr<SpillFile> spill_file_;  // guarded by mutex_ until it is made
  // Finished parts with chunks in memory.
  std::vector<Part*> resting_ ABSL_GUARDED_BY(mutex_);
  absl::Status spill_status_;  // the first error of spilling; guarded by mutex_ until Finish
  bool finished_ = false;
};

}  // namespace cairn
