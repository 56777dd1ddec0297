#pragma once

#include <utility>

// Early returns of errors, for functions that return absl::Status or absl::StatusOr<T>. Internal:
// no header below include/ may include this one.

// Evaluates the expression, a Status, once and returns it if it is an error. A rocksdb::Status
// works too, in a function that returns one.
//
//   RETURN_IF_ERROR(file->Sync());
#define RETURN_IF_ERROR(...)                                     \
  do {                                                           \
    if (auto cairn_status = (__VA_ARGS__); !cairn_status.ok()) { \
      return cairn_status;                                       \
    }                                                            \
  } while (false)

// Evaluates the expression, a StatusOr, once. If it is an error, returns its status. Otherwise
// moves its value into `lhs`, a declaration or an assignable expression. Expands to several
// statements, so it needs a block. Write `auto` for a type that contains a comma.
//
//   ASSIGN_OR_RETURN(const RunFile file, OpenRunFile(path));
//   ASSIGN_OR_RETURN(file_, files->Create(path));
#define ASSIGN_OR_RETURN(lhs, ...) \
  CAIRN_ASSIGN_OR_RETURN(CAIRN_CONCAT(cairn_result_, __COUNTER__), lhs, __VA_ARGS__)

#define CAIRN_ASSIGN_OR_RETURN(result, lhs, ...)       \
  auto result = (__VA_ARGS__);                         \
  if (!result.ok()) return std::move(result).status(); \
  lhs = *std::move(result)

#define CAIRN_CONCAT(a, b) CAIRN_CONCAT_INNER(a, b)
#define CAIRN_CONCAT_INNER(a, b) a##b
