#pragma once

// Converts statuses and C++ exceptions to the exceptions of cairn/errors.py.

#include <exception>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cairn::python {

// An exception of the class `name` of cairn.errors.
class PythonError : public std::exception {
 public:
  PythonError(const char* name, std::string message) : name_(name), message_(std::move(message)) {}
  const char* name() const { return name_; }
  const std::string& message() const { return message_; }  // may contain zero bytes
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  const char* name_;
  std::string message_;
};

[[noreturn]] inline void ThrowKeyType(std::string message) {
  throw PythonError("KeyTypeError", std::move(message));
}
[[noreturn]] inline void ThrowInvalid(std::string message) {
  throw PythonError("InvalidArgument", std::move(message));
}
[[noreturn]] void ThrowStatus(const absl::Status& status);

inline void Check(const absl::Status& status) {
  if (!status.ok()) ThrowStatus(status);
}

template <typename T>
T ValueOf(absl::StatusOr<T> value) {
  if (!value.ok()) ThrowStatus(value.status());
  return *std::move(value);
}

// Makes nanobind raise PythonErrors as the classes that they name.
void RegisterErrors();

}  // namespace cairn::python
