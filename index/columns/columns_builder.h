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
// file in row order, as RunBuilder does for entries.
//
// The rows are scanned in ranges of ascending primary keys, the parts. Each row of a part is added,
// in order. The number of rows before a part is known only after the whole scan.
//
//   ColumnsBuilder builder(columns, options, 2);
//   // on any thread, one thread per part:
//   while (NextRow(&values)) builder.part(p)->Add(values);
//   absl::Status s = builder.part(p)->Finish();
//   // then, once:
//   s = builder.Finish(writer.get());
//
// Memory: the values, packed as in a column file but without dictionaries, and up to 1,024 unpacked
// rows of each part that is being filled. Values that would exceed the budget are spilled to a
// temporary file.
//
// Thread safety: each part is used by one thread at a time, different parts by different threads.
// Finish must not run at the same time as any of their methods. No exception leaves a method: if
// memory runs out, the error is ResourceExhausted.
class ColumnsBuilder {
 public:
  struct Options {
    // Bytes of memory; values that exceed it are spilled.
    uint64_t memory_budget = std::numeric_limits<uint64_t>::max();
    std::string spill_directory;              // if empty, exceeding the budget is ResourceExhausted
    FileSystem* files = FileSystem::Posix();  // for spill_directory; must outlive the builder
    uint64_t max_rows = kMaxEntries;          // exceeding it is ResourceExhausted
  };

  // The rows of one range of primary keys.
  class Part {
   public:
    explicit Part(ColumnsBuilder* builder);

    // Adds the part's next row, one value per column. Returns false if the part has failed, so that
    // the scan may stop; Finish returns the error.
    bool Add(absl::Span<const DataValue> row);
    // Adds rows: one piece per column, of the column's type, and all of the same size.
    bool Add(absl::Span<const ColumnValues> rows);

    // Called once, after the last row. Errors:
    // - InvalidArgument, with the column's name: a value does not fit (ColumnValues::Append), or
    //   the number of values is not that of columns.
    // - ResourceExhausted: too many rows, no memory, or no space for spilling.
    // - Errors of writing the spill file.
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
    std::vector<ColumnValues> pending_;  // rows that are not encoded yet, one element per column
    uint64_t pending_bytes_ = 0;         // of their text and bytes
    std::vector<Chunk> chunks_;
    uint64_t rows_ = 0;
    uint64_t reported_ = 0;  // the number of rows_ that the builder has counted
    // bytes of memory that the builder has counted for values that are not spilled
    uint64_t charged_ = 0;
    bool failed_ = false;
    bool finished_ = false;
    absl::Status status_;
  };

  // If CheckColumns refuses `columns`, each part and Finish return its error.
  ColumnsBuilder(std::vector<ColumnSchema> columns, Options options, int parts);
  ~ColumnsBuilder();
  ColumnsBuilder(const ColumnsBuilder&) = delete;
  ColumnsBuilder& operator=(const ColumnsBuilder&) = delete;

  // Part i of the `parts` given to the constructor.
  Part* part(int i) { return parts_[static_cast<size_t>(i)].get(); }
  absl::Span<const ColumnSchema> columns() const { return columns_; }
  // The rows of all parts: exact when every part is finished, slightly too low before.
  uint64_t rows() const { return rows_.load(std::memory_order_relaxed); }

  // Appends the rows of all parts, part by part, to `writer`, a new one of the same columns, and
  // finishes it. Called once, when all parts are finished; frees rows after they are written. Any
  // thread may set `*cancelled`.
  //
  // Returns the first error of the writer or of a part. Other errors: Cancelled; InvalidArgument:
  // the writer has other columns, or rows; FailedPrecondition: a part is not finished, or this is a
  // second call; DataLoss: the spill file is damaged.
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
  absl::Status status_;  // of CheckColumns
  std::vector<std::unique_ptr<Part>> parts_;
  std::atomic<uint64_t> rows_{0};
  std::atomic<uint64_t> charged_{0};  // bytes of memory that the parts take

  Mutex mutex_;
  std::unique_ptr<SpillFile> spill_file_;  // guarded by mutex_ until it is created
  // Finished parts with chunks in memory.
  std::vector<Part*> resting_ ABSL_GUARDED_BY(mutex_);
  absl::Status spill_status_;  // the first error of spilling; guarded by mutex_ until Finish
  bool finished_ = false;
};

}  // namespace cairn
