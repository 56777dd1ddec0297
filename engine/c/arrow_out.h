#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cairn/c/base.h"
#include "cairn/column.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"

// Arrays that are exported by Arrow's C data interface.

namespace cairn {

// A column to export: its type and the addresses of its buffers.
struct ColumnOut {
  std::string format;
  std::string name;
  int64_t length = 0;
  std::vector<const void*> buffers;
  std::vector<ColumnOut> children = {};
  int64_t null_count = 0;
  bool nullable = false;

  static ColumnOut RowIds(std::string name, absl::Span<const RowId> row_ids);
  static ColumnOut GlobalRowIds(std::string name, absl::Span<const GlobalRowId> rows);
  static ColumnOut Bytes(std::string name, const StringList& strings);
  // Nullable; text and bytes are large_binary.
  static ColumnOut Values(std::string name, const ColumnValues& values);
  static ColumnOut Struct(std::string name, size_t length, std::vector<ColumnOut> children);
  // Requires one name per column, and columns of equal length.
  static ColumnOut Struct(std::string name, absl::Span<const std::string> names,
                          absl::Span<const ColumnValues> columns);
  // List i has items offsets[i] … offsets[i + 1] - 1.
  static ColumnOut Lists(const std::vector<uint64_t>& offsets, ColumnOut items);
};

// Exports the column, whose buffers `owner` owns. A consumer may move each child out and release it
// separately. Throws std::bad_alloc, and then leaves the outputs unchanged.
void Export(const ColumnOut& column, const std::shared_ptr<const void>& owner, ArrowSchema* schema,
            ArrowArray* array);

// Logical keys of physical ones, used in place or decoded.
class KeysOut {
 public:
  // DataLoss: a key is not a key of the codec. `keys` must outlive what Column() returns.
  absl::Status Decode(const KeyCodec& codec, const EncodedKeys& keys);
  // `keys` must be the decoded keys, but may have been moved since.
  ColumnOut Column(std::string name, const KeyCodec& codec, const EncodedKeys& keys) const;

 private:
  std::vector<ColumnValues> parts_;  // empty if keys are used in place
};

}  // namespace cairn
