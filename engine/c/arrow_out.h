#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cairn/c/base.h"
#include "cairn/column.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"

// Arrays that go out by Arrow's C data interface.

namespace cairn {

// A column to go out: its type, and where its buffers are.
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
  // As many columns as names, all of one length.
  static ColumnOut Struct(std::string name, absl::Span<const std::string> names,
                          absl::Span<const ColumnValues> columns);
  // Lists that begin at, and end before, the next of `offsets`.
  static ColumnOut Lists(const std::vector<uint64_t>& offsets, ColumnOut items);
};

// Hands out the column, whose buffers `owner` keeps; each child may be moved away and released by
// itself. Throws std::bad_alloc, with the outputs as they were.
void Export(const ColumnOut& column, const std::shared_ptr<const void>& owner, ArrowSchema* schema,
            ArrowArray* array);

// Logical keys of physical ones: shown where they are, or decoded.
class KeysOut {
 public:
  // DataLoss where a key is none of the codec's. `keys` must outlive what Column() shows.
  absl::Status Decode(const KeyCodec& codec, const EncodedKeys& keys);
  // Of `keys`, which were decoded, wherever they are by now.
  ColumnOut Column(std::string name, const KeyCodec& codec, const EncodedKeys& keys) const;

 private:
  std::vector<ColumnValues> parts_;  // none where keys are shown as they are
};

}  // namespace cairn
