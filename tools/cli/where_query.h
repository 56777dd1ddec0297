#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/cli/aggregate_options.h"

namespace cairn::tools {

// A query by predicate in `cairn query`: rows of several indexes, or groups of them.
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
  std::string after = {};  // a cursor as hexadecimal digits
  bool tell_cursor = false;
  bool explain = false;
  std::string format = {};

  // Adds the options for predicates.
  void AddTo(CLI::App* app);
  // Whether the query is for groups.
  bool groups() const { return !group_by.empty() || !aggregates.All().empty(); }
  bool any() const {
    return groups() || !order_by.empty() || !after.empty() || tell_cursor || !where.empty() ||
           parameters->count() > 0;
  }
  // Prints the result.
  absl::Status Run() const;
};

}  // namespace cairn::tools
