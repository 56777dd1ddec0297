#pragma once

#include <exception>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

namespace cairn {

// Converts the exception that is being handled to an error. Called in a catch block.
// ResourceExhausted: an allocation failed; Unavailable: the system is out of threads or similar
// resources; Internal: any other exception. If there is no memory for the message, it is empty.
absl::Status StatusOfException(std::string_view doing) noexcept;

// Returns the result of `function`, a Status or a StatusOr. If it throws an exception, returns an
// error instead. Every public function that may allocate is wrapped in it, since callers may be
// built without exceptions.
//
//   absl::Status Find(...) { return Guarded("finding keys", [&] { return DoFind(...); }); }
template <typename Function>
std::invoke_result_t<Function> Guarded(std::string_view doing, Function&& function) noexcept {
  try {
    return std::forward<Function>(function)();
  } catch (...) {
    return StatusOfException(doing);
  }
}

}  // namespace cairn
