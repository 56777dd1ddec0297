#include "python/src/in/arrow_in.h"

#include <cstring>
#include <utility>
#include <vector>

#include "python/src/base/errors.h"
#include "python/src/in/buffer.h"

namespace cairn::python {
namespace {

// Moves a structure out of its capsule, so that no other code takes or releases it.
template <typename T>
void Take(nb::handle capsule, const char* name, T* taken) {
  if (PyCapsule_IsValid(capsule.ptr(), name) == 0) {
    ThrowInvalid("expected an Arrow capsule '" + std::string(name) + "', found " +
                 Described(capsule));
  }
  auto* held = static_cast<T*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (held->release == nullptr) ThrowInvalid("an Arrow capsule was released before it was read");
  *taken = *held;
  held->release = nullptr;
}

// Checks that the types of the columns can be queried before an array is read.
void CheckSchema(const ArrowSchema& schema) {
  bool whole = schema.format != nullptr && schema.n_children >= 0 &&
               (schema.n_children == 0 || schema.children != nullptr);
  for (int64_t i = 0; whole && i < schema.n_children; ++i) {
    whole = schema.children[i] != nullptr && schema.children[i]->format != nullptr;
  }
  if (!whole) ThrowInvalid("an Arrow schema lacks a format or children");
}

}  // namespace

std::unique_ptr<ArrowIn> ArrowIn::Of(nb::handle object) {
  if (PyType_Check(object.ptr()) != 0) return nullptr;
  std::unique_ptr<ArrowIn> made(new ArrowIn);
  ArrowIn& in = *made;
  if (nb::hasattr(object, "__arrow_c_array__")) {
    const nb::object pair = object.attr("__arrow_c_array__")();
    if (!PyTuple_Check(pair.ptr()) || nb::len(pair) != 2) {
      ThrowInvalid("__arrow_c_array__ returned no pair of capsules");
    }
    Take(nb::object(pair[0]), "arrow_schema", &in.schema_);
    Take(nb::object(pair[1]), "arrow_array", &in.arrays_.emplace_back());
  } else if (nb::hasattr(object, "__arrow_c_stream__")) {
    ArrowArrayStream& stream = in.stream_;
    Take(nb::object(object.attr("__arrow_c_stream__")()), "arrow_array_stream", &stream);
    const auto check = [&](int error) {
      if (error == 0) return;
      const char* message = stream.get_last_error(&stream);
      ThrowInvalid("an Arrow stream failed: " +
                   std::string(message == nullptr ? std::strerror(error) : message));
    };
    check(stream.get_schema(&stream, &in.schema_));
    while (true) {
      ArrowArray& array = in.arrays_.emplace_back();
      check(stream.get_next(&stream, &array));
      if (array.release == nullptr) {
        in.arrays_.pop_back();
        break;
      }
    }
  } else {
    return nullptr;
  }
  CheckSchema(in.schema_);
  return made;
}

ArrowIn::~ArrowIn() {
  for (ArrowArray& array : arrays_) {
    if (array.release != nullptr) array.release(&array);
  }
  if (schema_.release != nullptr) schema_.release(&schema_);
  if (stream_.release != nullptr) stream_.release(&stream_);
}

std::optional<DataType> ArrowIn::TypeOf(size_t i) const {
  return DataTypeOf(schema(i));
}

ArrowValues ArrowIn::Column(size_t i, DataType type, const std::string& where) const {
  const std::optional<DataType> found = TypeOf(i);
  if (!found.has_value() || (*found != type && !(IsText(*found) && IsText(type)))) {
    const std::string expected = IsText(type) ? "strings or binary" : DtypeName(type);
    ThrowKeyType(where + ": expected an Arrow array of " + expected + ", found one of " +
                 ArrowTypeName(schema(i)) + "; convert with .cast()");
  }
  std::vector<ArrowColumn> chunks;
  for (const ArrowArray& array : arrays_) {
    const auto column = ReadArrowColumn(&schema_, &array, i);
    if (!column.ok()) {
      if (!absl::IsInvalidArgument(column.status())) Check(column.status());
      ThrowInvalid(where + ": the Arrow array breaks the rules of its format: " +
                   std::string(column.status().message()));
    }
    chunks.push_back(*column);
  }
  return ValueOf(ArrowValues::Of(type, chunks));
}

}  // namespace cairn::python
