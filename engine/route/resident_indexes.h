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

// An ordered index in memory, with its device.
struct ResidentIndex {
  std::string name;  // of routes over it: device and structure, such as "cpu:packed"
  std::unique_ptr<OrderedIndex> index;
  bool on_gpu = false;
};

// Ordered indexes over one run. At least one is on the CPU.
struct ResidentIndexes {
  std::vector<ResidentIndex> indexes;
  std::string fallback;  // why none is on a GPU, if one was requested
};

// Makes the ordered indexes over `run` that `options` list, or chooses them within the memory
// budgets. An index of a GPU is made on each of the listed devices, as one index
// (engine/route/open_devices.h checks the list). If `leaves` of cpu:packed are stored with the run,
// they are used. That takes no memory, unless OpenOptions::load_into_memory is set. Errors: those
// of MakeOrderedIndex; InvalidArgument: an index is listed twice.
absl::StatusOr<ResidentIndexes> MakeResidentIndexes(
    const OpenOptions& options, const SortedRun& run,
    const std::optional<StoredLeaves>& leaves = std::nullopt);

// Returns the leaves that are stored in a run file, if any. DataLoss: they are damaged, or, with
// VerifyLevel::kFull, differ from the leaves that the run produces.
absl::StatusOr<std::optional<StoredLeaves>> LeavesOf(const RunFile& file,
                                                     const OpenOptions& options);

// Checks that the leaves are those that the file's entries produce, and that the entries are in
// order. DataLoss: they are not. Throws std::bad_alloc.
absl::Status CheckLeaves(const RunFile& file, const StoredLeaves& leaves, int threads);

}  // namespace cairn
