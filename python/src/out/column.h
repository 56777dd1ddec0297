#pragma once

// Columns of values that Cairn passes to Python without a copy, by Arrow's C data interface.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cairn/column.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"

namespace cairn::python {

namespace nb = nanobind;

// An immutable column of values of one type, or of structs of such columns. Copies are cheap, and
// share the values. Thread-safe.
class Column {
 public:
  enum class Kind : uint8_t { kNumber, kText, kBytes, kStruct };

  // `size` numbers of `type` at `data`, with Arrow's validity bitmap, which is null if no value is
  // null.
  static Column Numbers(DataType type, const void* data, size_t size, const uint8_t* validity,
                        std::shared_ptr<const void> owner);
  // Strings in one heap, and their size + 1 offsets.
  static Column Strings(bool text, std::string_view heap, const std::vector<uint64_t>& offsets,
                        const uint8_t* validity, std::shared_ptr<const void> owner);
  // Structs of columns, which have the same size. Throws InvalidArgument if a name occurs twice.
  static Column Structs(size_t size, std::vector<std::pair<std::string, Column>> fields);

  Kind kind() const { return kind_; }
  DataType type() const { return type_; }
  size_t size() const { return size_; }
  const std::vector<std::pair<std::string, Column>>& fields() const { return fields_; }
  // Returns text as bytes, which need not be UTF-8.
  Column AsBytes() const;

  // Value i as a Python object; requires i < size().
  nb::object Value(size_t i) const;
  nb::object ToList() const;
  // Returns a NumPy array over numbers. Throws KeyTypeError for strings or if there are nulls.
  nb::object ToNumPy() const;
  // Arrow's name of the type.
  std::string TypeName() const;

  // Capsules of ArrowSchema, ArrowArray and ArrowArrayStream. Throw InvalidArgument if text is not
  // UTF-8.
  nb::object SchemaCapsule() const;
  nb::object ArrayCapsule() const;
  nb::object StreamCapsule() const;

  // Throws InvalidArgument for a field whose name has a zero byte, since Arrow's names end there.
  void CheckNames() const;
  // Throws InvalidArgument, with the position of the value, if text is not UTF-8.
  void CheckText() const;

 private:
  friend struct ColumnExport;

  bool is_null(size_t i) const {
    return validity_ != nullptr && (validity_[i / 8] >> (i % 8) & 1) == 0;
  }
  std::string_view StringAt(size_t i) const {
    return {static_cast<const char*>(data_) + offsets_[i], offsets_[i + 1] - offsets_[i]};
  }

  Kind kind_ = Kind::kNumber;
  DataType type_ = DataType::kU32;
  size_t size_ = 0;
  const void* data_ = nullptr;
  const uint64_t* offsets_ = nullptr;
  const uint8_t* validity_ = nullptr;
  std::shared_ptr<const void> owner_;
  std::vector<std::pair<std::string, Column>> fields_;
};

// The keys of a scan as logical values; they are decoded if physical keys differ from them. Keys of
// several parts are structs of part1, part2 …
Column EncodedKeysOf(const KeyCodec& codec, std::shared_ptr<const EncodedKeys> keys);
// The values of an included column.
Column ValuesColumnOf(std::shared_ptr<const ColumnValues> values);
// Strings as large_binary.
Column BinaryColumnOf(std::shared_ptr<const StringList> strings);

void BindColumn(nb::module_& module);

}  // namespace cairn::python
