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

// How C++ ends at the C API: statuses become errors, and options are read.

namespace cairn {

// The error that the caller of a C function gets: NULL for OK. Where there is no memory for the
// message, one without it.
cairn_error* ToError(const absl::Status& status) noexcept;

// What every C function that can fail returns: what `function`, which returns a Status, says, or
// the error that stands for its exception.
template <typename Function>
cairn_error* CFunction(std::string_view doing, Function&& function) noexcept {
  return ToError(Guarded(doing, std::forward<Function>(function)));
}

// A copy that cairn_text_free frees. Throws std::bad_alloc.
char* NewText(std::string_view text);

// InvalidArgument, naming the parameter, for a null pointer.
absl::Status CheckNotNull(const void* pointer, std::string_view name);
template <typename... Rest>
absl::Status CheckNotNull(const void* pointer, std::string_view name, Rest... rest) {
  const absl::Status status = CheckNotNull(pointer, name);
  return status.ok() ? CheckNotNull(rest...) : status;
}

// Whether a structure of `given` bytes at `options` says no more than the `known` first of them.
absl::Status CheckOptionsSize(const void* options, size_t given, size_t known,
                              std::string_view name);

// The options of a caller who was compiled with an earlier or later version of their structure, or
// gave none: fields that only one of the two knows are 0. InvalidArgument for a size that is none,
// and for a later version's field that is not 0.
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

// One of the values 0 … `last` of an enumeration, as a C++ enumeration of the same numbers.
template <typename Enum>
absl::Status ReadEnum(int32_t value, Enum last, std::string_view name, Enum* result) {
  if (value < 0 || value > static_cast<int32_t>(last)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: expected 0 to %d, found %d", name, static_cast<int>(last), value));
  }
  *result = static_cast<Enum>(value);
  return absl::OkStatus();
}

// A number of threads: 0, one per core, to 4096.
absl::Status ReadThreads(int32_t given, int* threads);

}  // namespace cairn
