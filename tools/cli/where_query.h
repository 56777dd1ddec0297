#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/cli/aggregate_options.h"

namespace cairn::tools {

// What `cairn query` is asked by a predicate: rows of several indexes, or groups of them.
struct WhereQuery {
  std::vector<std::string> indexes;
  std::string where = {};             // empty: all rows
  CLI::Option* parameters = nullptr;  // --param: the values of its '?'
  std::vector<std::string> select = {};
  AggregateOptions aggregates = {};
  std::vector<std::string> group_by = {};
  std::vector<std::string> order_by = {};  // "age", "sum(price) desc"
  bool reverse = false;
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  std::string after = {};  // a cursor in hexadecimal digits
  bool tell_cursor = false;
  bool explain = false;
  std::string format = {};

  // The options that only this takes.
  void AddTo(CLI::App* app);
  // Whether one of these is given, other than --where.
  bool groups() const { return !group_by.empty() || !aggregates.All().empty(); }
  bool any() const {
    return groups() || !order_by.empty() || !after.empty() || tell_cursor || !where.empty() ||
           parameters->count() > 0;
  }
  // Prints the answer.
  absl::Status Run() const;
};

}  // namespace cairn::tools
