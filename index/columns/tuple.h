#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/key_codec.h"

namespace cairn {

// A row's values as bytes: how they travel in updates and deltas. A bit a column that says
// which are null, the first column's the least significant of the first byte; then the others in
// order: numbers of their width in little-endian, text and bytes behind a length of 4 bytes.
//
// Whatever the bytes are, nothing outside of them is read.

// Appends one tuple, value by value.
class TupleWriter {
 public:
  // Both must outlive the writer.
  TupleWriter(absl::Span<const DataType> types, std::string* tuple);

  // The next column's value. InvalidArgument, with what was expected and found, where it does not
  // fit the column's type or is longer than KeyCodec::kMaxKeyBytes; the tuple is of no use then.
  absl::Status Add(const DataValue& value);

  // Columns whose values were added.
  size_t size() const { return next_; }

 private:
  const absl::Span<const DataType> types_;
  std::string* const tuple_;
  const size_t begin_;
  size_t next_ = 0;
};

// Sets values[i] to that of column i; text points into the tuple. False where the bytes are no
// tuple of these types.
bool ReadTuple(absl::Span<const DataType> types, std::string_view tuple,
               absl::Span<DataValue> values);

}  // namespace cairn
