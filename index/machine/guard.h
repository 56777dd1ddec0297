#pragma once

#include <exception>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

namespace cairn {

// The error that stands for the exception being handled: ResourceExhausted for what an allocation
// throws, Unavailable where the system has no more threads or such, Internal for any other. Called
// in a catch block. Where there is no memory for the message, there is none.
absl::Status StatusOfException(std::string_view doing) noexcept;

// Returns what `function` returns, a Status or a StatusOr, and an error in place of an exception
// that it throws. Every public function that may allocate stands behind one, as the exceptions of
// this library's callers are theirs: they may be built without.
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
