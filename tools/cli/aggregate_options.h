#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "cairn/aggregate.h"

namespace cairn::tools {

// The aggregates that a command line requests: --count, --sum, --avg, --min and --max.
struct AggregateOptions {
  bool count = false;
  std::vector<std::string> count_distinct;  // added by the command; "" means keys
  std::vector<std::string> sum, avg, min, max;

  void AddTo(CLI::App* app);
  // In the order of these members.
  std::vector<Aggregate> All() const;
};

// Adds an option that takes names of columns.
CLI::Option* AddColumns(CLI::App* app, const std::string& name, std::vector<std::string>* columns,
                        const std::string& description);

// Returns the name of an aggregate: "count", "sum(price)".
std::string NameOf(const Aggregate& aggregate);

}  // namespace cairn::tools
