#pragma once

#include <stdexcept>
#include <type_traits>
#include <utility>

namespace cairn::bench {

// Throws the error of an absl::Status, absl::StatusOr or rocksdb::Status, which ends the benchmarks
// with its text. Returns the value of a StatusOr that is a temporary.
template <typename Result>
auto OrThrow(Result&& result) {
  if (!result.ok()) {
    if constexpr (requires { result.status(); }) {
      throw std::runtime_error(result.status().ToString());
    } else {
      throw std::runtime_error(result.ToString());
    }
  }
  if constexpr (!std::is_lvalue_reference_v<Result> &&
                requires { *std::forward<Result>(result); }) {
    return *std::forward<Result>(result);
  }
}

}  // namespace cairn::bench
