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

// Where the sections of a row table go: begun one after the other, each filled by appends. Used by
// one thread at a time.
class RowTableSink {
 public:
  virtual ~RowTableSink() = default;
  virtual absl::Status BeginSection(RowTableSection section) = 0;
  virtual absl::Status Append(std::string_view bytes) = 0;
};

// Writes a row table (row_table.h) in one pass by several threads. The primary keys are cut into
// parts, ascending ranges that one thread each fills; a part hands over about 1 MB of encoded keys
// at a time, in whatever order parts get there, so that nothing is written twice.
//
// Memory: 1 MB a part that is open and twice the longest 17 keys, half a byte a row, and about a
// thousandth of the keys' bytes.
class RowTableWriter {
 public:
  // The keys of one part. Used by one thread at a time; different parts by different threads.
  class alignas(64) Part {
   public:
    // Adds the part's next row. InvalidArgument, naming the key, unless it is greater than the one
    // before, or where it is longer than kMaxPrimaryKeyBytes; an error of the sink's. Throws
    // std::bad_alloc. After either the table cannot be finished.
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

    // Hands over what is left and gives the memory back. No row can be added afterwards.
    absl::Status Close();

    // Rows added so far.
    uint64_t rows() const { return rows_; }

   private:
    friend class RowTableWriter;

    // The last key added; requires that there be one.
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
    bool encoding_ = false;  // stays so where that throws
    // The last key of the block before, if there is one, and the keys of the block to come: key i
    // in [begins_[i], begins_[i + 1]), and room for more.
    std::string pending_;
    size_t begins_[kRowsPerBlock + 1] = {0};
    uint32_t pending_rows_ = 0;
    // Blocks that wait to be appended; the offsets from `flushed_` on count from encoded_'s start.
    std::string encoded_;
    std::vector<uint64_t> offsets_;
    size_t flushed_ = 0;
    std::string first_key_;
    std::string separators_;
    std::vector<uint64_t> separator_ends_;
  };

  // A table of `parts` parts, in ascending order of their keys; any of them may stay empty. `sink`
  // must outlive the writer, and have no section begun by others until Finish returns.
  RowTableWriter(size_t parts, RowTableSink* sink);

  Part& part(size_t i) { return parts_[i]; }

  // The id of each part's first row and, at the end, the number of rows: a row's id is its part's
  // first one plus its rank in the part. Right once no more rows are added.
  std::vector<uint64_t> FirstRows() const;

  // Closes the parts that are not, and writes the directory. InvalidArgument where parts overlap or
  // are not in order, or with more than kMaxEntries rows; the first error of any part.
  absl::Status Finish();

  static constexpr size_t kMaxPrimaryKeyBytes = size_t{1} << 27;
  static constexpr size_t kExtentBytes = size_t{1} << 20;

 private:
  // Appends to the blocks' section; *offset = where it came to stand. Thread-safe.
  absl::Status AppendBlocks(std::string_view bytes, uint64_t* offset);
  absl::Status Fail(absl::Status status);
  absl::Status CheckParts() const;

  RowTableSink* const sink_;
  std::vector<Part> parts_;
  Mutex mutex_;  // guards what follows, and the sink
  absl::Status status_;
  bool begun_ = false;
  uint64_t block_bytes_ = 0;
};

}  // namespace cairn
