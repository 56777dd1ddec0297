#pragma once

// Arrow arrays from Python, by the PyCapsule interface, which pyarrow, Polars, DuckDB, pandas and
// others have.

#include <nanobind/nanobind.h>

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/internal/arrow.h"
#include "cairn/key_codec.h"

namespace cairn::python {

namespace nb = nanobind;

// An array, or the chunks of a stream, as exported by their owner; the destructor releases them. A
// stream may return its chunks only once.
class ArrowIn {
 public:
  // The arrays of `object`, or null if it does not have the interface.
  static std::unique_ptr<ArrowIn> Of(nb::handle object);
  ArrowIn(const ArrowIn&) = delete;
  ArrowIn& operator=(const ArrowIn&) = delete;
  ~ArrowIn();

  // Whether it has columns, as a struct array, record batch or table.
  bool is_struct() const { return std::string_view(schema_.format) == "+s"; }
  // The number of columns; 1 if it is not a struct.
  size_t columns() const { return is_struct() ? static_cast<size_t>(schema_.n_children) : 1; }

  // The part type for the values of column `i`; nothing for Arrow's other types.
  std::optional<DataType> TypeOf(size_t i) const;
  // Column `i` as values of `type`, which are valid during the lifetime of this object. Throws
  // KeyTypeError for another type, and InvalidArgument for an invalid Arrow array; messages begin
  // with `where`.
  ArrowValues Column(size_t i, DataType type, const std::string& where) const;

 private:
  ArrowIn() = default;
  const ArrowSchema& schema(size_t i) const { return is_struct() ? *schema_.children[i] : schema_; }

  // Owned: moved out of their capsules.
  ArrowArrayStream stream_ = {};
  ArrowSchema schema_ = {};
  std::list<ArrowArray> arrays_;  // all have this schema
};

}  // namespace cairn::python
