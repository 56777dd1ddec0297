#include "python/src/out/arrays_out.h"

#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

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

template <typename T>
nb::object Array(const void* data, size_t size, nb::handle owner) {
  return nb::cast(nb::ndarray<nb::numpy, const T, nb::ndim<1>>(data, {size}, owner),
                  nb::rv_policy::reference);
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

nb::object ArrayOver(const void* data, size_t size, const char* dtype,
                     std::shared_ptr<const void> owner) {
  using Owner = std::shared_ptr<const void>;
  // NumPy requires an address that is aligned to the type, even without values.
  static constexpr uint64_t kNone = 0;
  if (data == nullptr) data = &kNone;
  const nb::capsule capsule(new Owner(std::move(owner)),
                            [](void* p) noexcept { delete static_cast<Owner*>(p); });
  const std::string_view name = dtype;
  if (name == "uint8") return Array<uint8_t>(data, size, capsule);
  if (name == "uint16") return Array<uint16_t>(data, size, capsule);
  if (name == "uint32") return Array<uint32_t>(data, size, capsule);
  if (name == "uint64") return Array<uint64_t>(data, size, capsule);
  if (name == "int8") return Array<int8_t>(data, size, capsule);
  if (name == "int16") return Array<int16_t>(data, size, capsule);
  if (name == "int32") return Array<int32_t>(data, size, capsule);
  if (name == "int64") return Array<int64_t>(data, size, capsule);
  if (name == "float32") return Array<float>(data, size, capsule);
  return Array<double>(data, size, capsule);
}

}  // namespace cairn::python
