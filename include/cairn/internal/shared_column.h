#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/c/arrow.h"
#include "cairn/column.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"

namespace cairn {

// A column of a result that other programs get by Arrow's C data interface, without a copy: values
// of one type, structs of columns, or lists of the items of one. Immutable and thread-safe. Copies
// are cheap and share the memory of the values, which lives as long as one of them or of the
// exported arrays. Functions without a status throw std::bad_alloc.
class SharedColumn {
 public:
  enum class Kind : uint8_t { kValues, kStructs, kLists };
  using Field = std::pair<std::string, SharedColumn>;  // a name and a column

  // Returns `size` numbers of `type` at `data`.
  static SharedColumn Numbers(DataType type, const void* data, size_t size,
                              std::shared_ptr<const void> owner);
  static SharedColumn Bytes(std::shared_ptr<const StringList> strings);
  static SharedColumn Values(std::shared_ptr<const ColumnValues> values);
  // Returns row ids of 32 bits, or global ones, which are a copy, of an index in shards.
  static SharedColumn RowIds(std::shared_ptr<const RowList> rows, bool in_shards);
  // Returns the logical values of physical keys, decoded unless KeysAreValues. Keys of several
  // parts are structs of part1, part2 … Errors: DataLoss if a key is not a key of the codec;
  // ResourceExhausted.
  static absl::StatusOr<SharedColumn> Keys(const KeyCodec& codec,
                                           const std::shared_ptr<const EncodedKeys>& keys);
  // Requires that each field has `size` values.
  static SharedColumn Structs(size_t size, std::vector<Field> fields);
  // Returns a field for each column of `columns`. Requires that many names.
  static std::vector<Field> Fields(absl::Span<const std::string> names,
                                   const std::shared_ptr<const std::vector<ColumnValues>>& columns);
  // List i has items [offsets[i], offsets[i + 1]), so that there is one more offset than lists.
  static SharedColumn Lists(const std::vector<uint64_t>& offsets, Field items,
                            std::shared_ptr<const void> owner);
  // Returns the column with text as bytes, which need not be UTF-8.
  SharedColumn AsBytes() const;

  Kind kind() const { return kind_; }
  DataType type() const { return type_; }  // of values
  size_t size() const { return size_; }
  // The fields of structs, or the items of lists.
  const std::vector<Field>& fields() const { return fields_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  // Whether Arrow's type of the column has nulls, even if no value is null.
  bool nullable() const { return nullable_; }
  size_t null_count() const { return null_count_; }
  bool is_null(size_t i) const {
    return validity_ != nullptr && (validity_[i / 8] >> (i % 8) & 1) == 0;
  }
  // Returns string i. Requires text or bytes and i < size().
  std::string_view string(size_t i) const {
    return {static_cast<const char*>(data_) + offsets_[i], offsets_[i + 1] - offsets_[i]};
  }

  // Arrow's buffers. Data is null only if there are no values.
  const uint8_t* validity() const { return validity_; }
  const uint64_t* offsets() const { return offsets_; }  // of strings and lists
  const void* data() const { return data_; }            // of numbers and strings

  // Export the type, the values or both. A consumer may move each child out and release it
  // separately. Errors: InvalidArgument if a field's name has a zero byte, where Arrow's would end,
  // or if a text is not UTF-8, with its position; ResourceExhausted. On error the outputs are
  // unchanged.
  absl::Status Export(ArrowSchema* schema, std::string_view name = {}) const;
  absl::Status Export(ArrowArray* array) const;
  absl::Status Export(ArrowSchema* schema, ArrowArray* array, std::string_view name = {}) const;
  // Exports a stream of one array.
  absl::Status Export(ArrowArrayStream* stream) const;

 private:
  static SharedColumn Strings(DataType type, std::string_view heap,
                              const std::vector<uint64_t>& offsets,
                              std::shared_ptr<const void> owner);
  absl::Status CheckNames() const;
  absl::Status CheckText() const;

  Kind kind_ = Kind::kValues;
  DataType type_ = DataType::kU32;
  bool nullable_ = false;
  size_t size_ = 0;
  size_t null_count_ = 0;
  const void* data_ = nullptr;
  const uint64_t* offsets_ = nullptr;
  const uint8_t* validity_ = nullptr;  // null if no value is null
  std::shared_ptr<const void> owner_;
  std::vector<Field> fields_;
};

}  // namespace cairn
