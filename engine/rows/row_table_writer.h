#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/rows/row_table_format.h"
#include "index/machine/byte_copy.h"
#include "index/machine/mutex.h"
#include "index/machine/status_macros.h"
#include "index/strings/string_compare.h"

namespace cairn {

// Receives the sections of a row table, one after the other. Each section is begun once, and then
// filled by appends. Not thread-safe.
class RowTableSink {
 public:
  virtual ~RowTableSink() = default;
  virtual absl::Status BeginSection(RowTableSection section) = 0;
  virtual absl::Status Append(std::string_view bytes) = 0;
};

// Writes a row table (row_table.h) in one pass with several threads. The primary keys are divided
// into parts, which are ascending ranges. One thread fills each part. A part passes on about 1 MB
// of encoded keys at a time, in the order in which parts get there, so that nothing is written
// twice.
//
// Memory: per open part 1 MB and twice its 17 longest keys; in total half a byte per row, and about
// 0.1% of the keys' bytes.
class RowTableWriter {
 public:
  // The keys of one part. Not thread-safe, but different threads may use different parts.
  class alignas(64) Part {
   public:
    // Adds the part's next row. InvalidArgument, naming the key: it is not greater than the
    // previous one, or longer than kMaxPrimaryKeyBytes. Otherwise the sink's error. Throws
    // std::bad_alloc. After an error or exception the table cannot be finished.
    absl::Status Add(std::string_view primary_key) {
      if (rows_ != 0 && !Less(last(), primary_key)) return OutOfOrder(primary_key);
      if (primary_key.size() > kMaxPrimaryKeyBytes) return TooLong(primary_key);
      if (pending_rows_ == kRowsPerBlock) {
        RETURN_IF_ERROR(EncodeBlock());
        if (encoded_.size() >= kExtentBytes) {
          RETURN_IF_ERROR(Flush());
        }
      }
      const size_t begin = begins_[pending_rows_];
      const size_t end = begin + primary_key.size();
      if (pending_.size() < end) pending_.resize(std::max(end, 2 * pending_.size()));
      CopyBytes(primary_key, pending_.data() + begin);
      begins_[++pending_rows_] = end;
      ++rows_;
      return absl::OkStatus();
    }

    // Passes the remaining keys on and releases the memory. No row can be added afterwards.
    absl::Status Close();

    // Returns the number of rows added so far.
    uint64_t rows() const { return rows_; }

   private:
    friend class RowTableWriter;

    // Returns the last key added. Requires that there is one.
    std::string_view last() const {
      const size_t begin = pending_rows_ == 0 ? 0 : begins_[pending_rows_ - 1];
      return {pending_.data() + begin, begins_[pending_rows_] - begin};
    }
    absl::Status EncodeBlock();
    absl::Status Flush();
    absl::Status OutOfOrder(std::string_view primary_key);
    absl::Status TooLong(std::string_view primary_key);

    RowTableWriter* writer_ = nullptr;
    uint64_t rows_ = 0;
    bool closed_ = false;
    bool encoding_ = false;  // stays true if EncodeBlock throws
    // The last key of the previous block, if any, and the keys of the next block: key i is in
    // [begins_[i], begins_[i + 1]). The string may be longer.
    std::string pending_;
    size_t begins_[kRowsPerBlock + 1] = {0};
    uint32_t pending_rows_ = 0;
    // Blocks that have not been appended. Offsets from index `flushed_` are relative to encoded_.
    std::string encoded_;
    std::vector<uint64_t> offsets_;
    size_t flushed_ = 0;
    std::string first_key_;
    std::string separators_;
    std::vector<uint64_t> separator_ends_;
  };

  // Creates a table of `parts` parts, in ascending order of their keys; parts may remain empty.
  // `sink` must outlive the writer. No other code may begin a section of it until Finish returns.
  RowTableWriter(size_t parts, RowTableSink* sink);

  Part& part(size_t i) { return parts_[i]; }

  // Returns the id of each part's first row and, at the end, the number of rows. A row's id is the
  // part's first one plus the row's rank in the part. Valid when no more rows are added.
  std::vector<uint64_t> FirstRows() const;

  // Closes the parts that are open, and writes the directory. InvalidArgument: parts overlap or are
  // not in order, or there are more than kMaxEntries rows. Otherwise the first error of any part.
  absl::Status Finish();

  static constexpr size_t kMaxPrimaryKeyBytes = size_t{1} << 27;
  static constexpr size_t kExtentBytes = size_t{1} << 20;

 private:
  // Appends to the section of blocks, and sets *offset to the position there. Thread-safe.
  absl::Status AppendBlocks(std::string_view bytes, uint64_t* offset);
  absl::Status Fail(absl::Status status);
  absl::Status CheckParts() const;

  RowTableSink* const sink_;
  std::vector<Part> parts_;
  Mutex mutex_;  // guards the following members and the sink
  absl::Status status_;
  bool begun_ = false;
  uint64_t block_bytes_ = 0;
};

}  // namespace cairn
