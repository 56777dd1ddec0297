#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/key_codec.h"

namespace cairn {

// A row's values as bytes, in updates and deltas. First there is a bit per column, 1 if it is null;
// the first column is the least significant bit of the first byte. Then the other values follow in
// order: numbers in little-endian with their width, and text and bytes after a length of 4 bytes.
//
// Readers never read outside of the bytes, whatever they are.

// Appends one tuple, value by value.
class TupleWriter {
 public:
  // Both arguments must outlive the writer.
  TupleWriter(absl::Span<const DataType> types, std::string* tuple);

  // Adds the next column's value. InvalidArgument, with the expected and the found value: it does
  // not fit the column's type, or is longer than KeyCodec::kMaxKeyBytes. Then the tuple is
  // unusable.
  absl::Status Add(const DataValue& value);

  // The number of columns whose values were added.
  size_t size() const { return next_; }

 private:
  const absl::Span<const DataType> types_;
  std::string* const tuple_;
  const size_t begin_;
  size_t next_ = 0;
};

// Sets values[i] to that of column i; text points into the tuple. Returns false if the bytes are no
// tuple of these types.
bool ReadTuple(absl::Span<const DataType> types, std::string_view tuple,
               absl::Span<DataValue> values);

}  // namespace cairn
