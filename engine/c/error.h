#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "cairn/c/base.h"
#include "index/machine/guard.h"

// The boundary of C++ in the C API: converts statuses to errors, and reads options.

namespace cairn {

// Returns the error for the caller of a C function: NULL for OK. If there is no memory for the
// message, the error has none.
cairn_error* ToError(const absl::Status& status) noexcept;

// Runs `function`, which returns a Status, and returns its error, or the error for its exception.
// Every C function that can fail is wrapped in it.
template <typename Function>
cairn_error* CFunction(std::string_view doing, Function&& function) noexcept {
  return ToError(Guarded(doing, std::forward<Function>(function)));
}

// Returns a copy for cairn_text_free. Throws std::bad_alloc.
char* NewText(std::string_view text);

// InvalidArgument, naming the parameter: a pointer is null.
absl::Status CheckNotNull(const void* pointer, std::string_view name);
template <typename... Rest>
absl::Status CheckNotNull(const void* pointer, std::string_view name, Rest... rest) {
  const absl::Status status = CheckNotNull(pointer, name);
  return status.ok() ? CheckNotNull(rest...) : status;
}

// Checks that a structure of `given` bytes at `options` sets only its first `known` bytes.
absl::Status CheckOptionsSize(const void* options, size_t given, size_t known,
                              std::string_view name);

// Reads options whose structure may be of an earlier or a later version, or null. Fields that the
// caller's version or this one lacks are 0. InvalidArgument: the size is impossible, or a field of
// a later version is not 0.
template <typename Options>
absl::StatusOr<Options> ReadOptions(const Options* given, std::string_view name) {
  Options options;
  std::memset(&options, 0, sizeof options);
  if (given != nullptr) {
    const absl::Status status = CheckOptionsSize(given, given->size, sizeof options, name);
    if (!status.ok()) return status;
    std::memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
  }
  options.size = sizeof options;
  return options;
}

// Reads an enumerator in 0 … `last`. The C and C++ enumerations have equal numbers.
template <typename Enum>
absl::Status ReadEnum(int32_t value, Enum last, std::string_view name, Enum* result) {
  if (value < 0 || value > static_cast<int32_t>(last)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: expected 0 to %d, found %d", name, static_cast<int>(last), value));
  }
  *result = static_cast<Enum>(value);
  return absl::OkStatus();
}

// Reads a number of threads from 0 (one per core) to 4096.
absl::Status ReadThreads(int32_t given, int* threads);

}  // namespace cairn
