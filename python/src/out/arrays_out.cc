#include "python/src/out/arrays_out.h"

#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "python/src/base/errors.h"

namespace cairn::python {
namespace {

// numpy.empty and the dtypes of results; never destroyed.
struct NumPy {
  nb::handle empty;
  nb::handle dtypes[3];
};

// The GIL guards it. A guard of C++ would deadlock: threads would wait for it with the GIL held,
// while the import releases and retakes the GIL.
const NumPy& GetNumPy() {
  static constinit NumPy numpy;
  if (numpy.empty.is_valid()) return numpy;
  const nb::module_ module = nb::module_::import_("numpy");
  NumPy made;
  made.empty = nb::object(module.attr("empty")).release();
  constexpr const char* kNames[] = {"uint32", "uint64", "bool"};
  for (size_t i = 0; i < 3; ++i) {
    made.dtypes[i] = nb::object(module.attr("dtype")(kNames[i])).release();
  }
  numpy = made;
  return numpy;
}

std::optional<std::string> WhyNot(const Buffer& buffer, OutType type, nb::handle object) {
  switch (type) {
    case OutType::kU32:
      return buffer.WhyNot(DataType::kU32, object);
    case OutType::kU64:
      return buffer.WhyNot(DataType::kU64, object);
    case OutType::kBool:
      break;
  }
  return buffer.WhyNotBool(object);
}

}  // namespace

OutArray::OutArray(size_t size, OutType type, nb::handle out) : size_(size) {
  const auto refuse = [](const std::string& message) {
    throw PythonError("OutputTypeError", "out: " + message);
  };
  if (out.is_none()) {
    const NumPy& numpy = GetNumPy();
    object_ = numpy.empty(size, numpy.dtypes[static_cast<size_t>(type)]);
    if (!buffer_.Hold(object_, /*writable=*/true)) throw nb::python_error();
    return;
  }
  object_ = nb::borrow(out);
  if (!buffer_.Hold(out, /*writable=*/true)) {
    refuse("expected a NumPy array that can be written to, found " + Described(out));
  }
  if (const auto why = WhyNot(buffer_, type, out)) refuse(*why);
  if (buffer_.size() != size) {
    refuse("expected an array of " + std::to_string(size) + " elements, found one of " +
           std::to_string(buffer_.size()));
  }
}

nb::object ArrayOver(DataType type, const void* data, size_t size,
                     std::shared_ptr<const void> owner) {
  using Owner = std::shared_ptr<const void>;
  // NumPy requires an address that is aligned to the type, even without values.
  static constexpr uint64_t kNone = 0;
  if (data == nullptr) data = &kNone;
  const nb::capsule capsule(new Owner(std::move(owner)),
                            [](void* p) noexcept { delete static_cast<Owner*>(p); });
  return std::visit(
      [&](const auto& numbers) -> nb::object {
        using T = typename std::decay_t<decltype(numbers)>::value_type;
        if constexpr (std::is_arithmetic_v<T>) {
          return nb::cast(nb::ndarray<nb::numpy, const T, nb::ndim<1>>(data, {size}, capsule),
                          nb::rv_policy::reference);
        } else {
          return nb::none();
        }
      },
      ColumnSpan::OfNumbers(type, data, size).values);
}

}  // namespace cairn::python
