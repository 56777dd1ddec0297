#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/open_options.h"
#include "cairn/ordered_index.h"
#include "cairn/sorted_run.h"

namespace cairn {

// An ordered index that is kept in memory, and where.
struct ResidentIndex {
  std::string name;  // what routes over it are called: device and structure, "cpu:packed"
  std::unique_ptr<OrderedIndex> index;
  bool on_gpu = false;
};

// All of them over one run, one of them at least on the CPU.
struct ResidentIndexes {
  std::vector<ResidentIndex> indexes;
  std::string fallback;  // why none is on a GPU, although one was asked for
};

// Makes the ordered indexes that `options` name, or leave to choose within the memory budgets, over
// `run`. Errors as MakeOrderedIndex's; InvalidArgument for one that is named twice.
absl::StatusOr<ResidentIndexes> MakeResidentIndexes(const OpenOptions& options,
                                                    const SortedRun& run);

}  // namespace cairn
