#pragma once

#include <boost/test/unit_test.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace cairn {

// Ends the test with the caller's place and the error unless `result`, an absl::Status,
// absl::StatusOr or rocksdb::Status, is OK. Any thread may call it; it uses Boost.Test, which
// supports only one thread, only for errors. Returns the value of a StatusOr that is a temporary:
//
//   const SortedRun run = RequireOk(SortedRun::Copy(keys, row_ids));
template <typename Result>
auto RequireOk(Result&& result, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const auto error = [&]() -> std::string {
    if constexpr (requires { result.status(); }) {
      return result.status().ToString();
    } else {
      return result.ToString();
    }
  };
  if (!result.ok()) BOOST_FAIL(file << ":" << line << ": " << error());
  if constexpr (!std::is_lvalue_reference_v<Result> && requires { *std::move(result); }) {
    return *std::move(result);
  }
}

}  // namespace cairn
