#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/options.h"
#include "cairn/ordered_index.h"
#include "cairn/sorted_run.h"
#include "cpu_fast/packed/stored_leaves.h"
#include "index/files/run_file.h"

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
// `run`; those of a GPU on each of the devices that are listed (engine/route/open_devices.h
// checks the list), as one. Where leaves of cpu:packed are stored beside it, they are taken, which
// costs no memory but with OpenOptions::load_into_memory. Errors as MakeOrderedIndex's;
// InvalidArgument for one that is named twice.
absl::StatusOr<ResidentIndexes> MakeResidentIndexes(
    const OpenOptions& options, const SortedRun& run,
    const std::optional<StoredLeaves>& leaves = std::nullopt);

// The leaves that are stored in a run file, if there are any. DataLoss where they are damaged:
// with VerifyLevel::kFull, also where they are not those that the run gives.
absl::StatusOr<std::optional<StoredLeaves>> LeavesOf(const RunFile& file,
                                                     const OpenOptions& options);

// Whether leaves are those that the file's entries give, whose order is checked. DataLoss. Throws
// std::bad_alloc.
absl::Status CheckLeaves(const RunFile& file, const StoredLeaves& leaves, int threads);

}  // namespace cairn
