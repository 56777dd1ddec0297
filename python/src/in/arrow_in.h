#pragma once

// Arrow arrays from Python, by the PyCapsule interface: pyarrow, Polars, DuckDB, pandas and others
// have it.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/key_codec.h"
#include "python/src/base/arrow_abi.h"

namespace cairn::python {

namespace nb = nanobind;

// Views of strings. Threads keep one from call to call, as fresh memory for a large batch costs a
// tenth of its search.
class ViewBuffer {
 public:
  ViewBuffer() = default;
  ViewBuffer(ViewBuffer&&) noexcept = default;
  ViewBuffer& operator=(ViewBuffer&&) = delete;
  ~ViewBuffer();

  // Room for `size` views, which are unspecified; called once.
  std::string_view* Take(size_t size);

 private:
  std::vector<std::string_view> views_;
};

// One column of values, and what keeps them alive. Where a column had several chunks, numbers are
// gathered here; text never is.
struct ArrowColumn {
  PartColumn part;
  ViewBuffer views;                     // of text and bytes
  std::vector<unsigned char> gathered;  // numbers of several chunks
  std::vector<unsigned char> validity;  // likewise, Arrow's bitmap
};

// An array, or the chunks of a stream, as their owner exported them; released by the destructor. A
// stream may give its chunks only once.
class ArrowIn {
 public:
  // The arrays of `object`; null where it does not have the interface.
  static std::unique_ptr<ArrowIn> Of(nb::handle object);
  ArrowIn(const ArrowIn&) = delete;
  ArrowIn& operator=(const ArrowIn&) = delete;
  ~ArrowIn();

  // Whether there are several columns: a struct array, record batch or table.
  bool is_struct() const { return std::string_view(schema_.format) == "+s"; }
  // Of columns; 1 where it is no struct.
  size_t columns() const { return is_struct() ? static_cast<size_t>(schema_.n_children) : 1; }

  // The part type whose values column `i` has; none for Arrow's other types.
  std::optional<KeyType> TypeOf(size_t i) const;
  // Column `i` as values of `type`. Throws KeyTypeError for another type, InvalidArgument for an
  // array that breaks Arrow's rules; `where` begins their messages.
  ArrowColumn Column(size_t i, KeyType type, const std::string& where) const;

 private:
  ArrowIn() = default;

  // Owned here: moved out of their capsules.
  ArrowArrayStream stream_ = {};
  ArrowSchema schema_ = {};
  std::list<ArrowArray> arrays_;  // all of this schema
};

// Arrow's name of a type's format string, for a message.
std::string ArrowTypeName(const ArrowSchema& schema);

}  // namespace cairn::python
