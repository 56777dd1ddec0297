#include "python/src/base/errors.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace cairn::python {
namespace {

const char* NameOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return "InvalidArgument";
    case absl::StatusCode::kNotFound:
      return "NotFound";
    case absl::StatusCode::kAlreadyExists:
      return "AlreadyExists";
    case absl::StatusCode::kFailedPrecondition:
      return "FailedPrecondition";
    case absl::StatusCode::kOutOfRange:
      return "OutOfRange";
    case absl::StatusCode::kDataLoss:
      return "DataLoss";
    case absl::StatusCode::kResourceExhausted:
      return "ResourceExhausted";
    case absl::StatusCode::kUnavailable:
      return "Unavailable";
    case absl::StatusCode::kUnimplemented:
      return "Unimplemented";
    case absl::StatusCode::kCancelled:
      return "Cancelled";
    case absl::StatusCode::kDeadlineExceeded:
      return "DeadlineExceeded";
    default:
      return "Internal";
  }
}

void Translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const PythonError& error) {
    const nb::object type = nb::module_::import_("cairn.errors").attr(error.name());
    // A message may quote bytes of a file that are not UTF-8.
    const nb::object message = nb::steal(
        PyUnicode_DecodeUTF8(error.message().data(),
                             static_cast<Py_ssize_t>(error.message().size()), "backslashreplace"));
    PyErr_SetObject(type.ptr(), message.ptr());
  }
}

}  // namespace

void ThrowStatus(const absl::Status& status) {
  throw PythonError(NameOf(status.code()), std::string(status.message()));
}

void RegisterErrors() {
  nb::register_exception_translator(Translate);
}

}  // namespace cairn::python
