#include "engine/route/resident_indexes.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "cairn/device.h"
#include "cpu_fast/packed/leaves_check.h"
#include "engine/route/ordered_index_factory.h"
#include "gpu/api/gpu_factory.h"
#include "index/machine/available_memory.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"
#include "index/query/factory_string.h"

namespace cairn {
namespace {

// A structure that `auto` may choose, and its maximum bytes per key: the largest counter
// bytes_per_key of the benchmarks PointLookup and Strings, rounded up.
struct Choice {
  const char* factory;
  double bytes_per_u32;
  double bytes_per_u64;
  double bytes_per_string;
  // The structure also copies all strings, and takes several times as long to make as the next one.
  // It is used only if the options set a memory budget.
  bool is_lavish;
};

constexpr char kWithHash[] = "cpu:partial_key,hash";

// The fastest first. The last one needs only the run.
constexpr Choice kOnCpu[] = {
    {kWithHash, -1, -1, 30, true},        {"cpu:auto", 12, 16, 10, false},
    {"cpu:fast", 0.4, 1.3, -1, false},    {"cpu:strings", -1, -1, 1, false},
    {"cpu:sorted_array", 0, 0, 0, false},
};
constexpr char kOnGpu[] = "gpu:auto";

// Returns the maximum bytes, or a negative number if the structure does not support the run's kind
// of keys.
double MostBytes(const Choice& choice, const SortedRun& run) {
  const double per_key = run.kind() == PhysicalType::kU32   ? choice.bytes_per_u32
                         : run.kind() == PhysicalType::kU64 ? choice.bytes_per_u64
                                                            : choice.bytes_per_string;
  if (per_key < 0) return per_key;
  const double bytes = per_key * static_cast<double>(run.size());
  if (!choice.is_lavish || run.empty()) return bytes;
  const BytesColumn& keys = run.bytes();
  return bytes + static_cast<double>(keys.offset(keys.size()) - keys.offset(0));
}

// Returns whether a GPU failed to make a structure for a reason for which the CPU is used instead.
bool IsReasonForCpu(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsUnimplemented(status);
}

bool IsOnGpu(std::string_view factory) {
  return absl::StartsWith(absl::string_view(factory.data(), factory.size()), "gpu:");
}

// Returns the device and structure of a factory string or a description: the text before its first
// option and before its devices.
std::string RouteName(std::string_view factory) {
  return std::string(factory.substr(0, factory.find_first_of(", ")));
}

class ResidentIndexMaker {
 public:
  ResidentIndexMaker(const OpenOptions& options, const SortedRun& run,
                     const std::optional<StoredLeaves>& leaves)
      : options_(options), run_(run) {
    if (!leaves.has_value()) return;
    leaves_ =
        UsableLeaves{*leaves, options.load_into_memory ? LeafMemory::kCopied : LeafMemory::kMapped};
  }

  absl::StatusOr<ResidentIndexes> Make() {
    for (const std::string& factory : Factories()) {
      const absl::Status status = factory == "cpu:auto" ? MakeWithinBudget() : MakeNamed(factory);
      if (status.ok()) continue;
      const bool left_out =
          options_.device == SearchDevice::kAuto && IsOnGpu(factory) && IsReasonForCpu(status);
      if (!left_out) return status;
      made_.fallback = std::string(status.message());
    }
    if (made_.indexes.empty()) {
      RETURN_IF_ERROR(MakeWithinBudget());
    }
    // The files can answer if a GPU is lost.
    const bool all_on_gpu = std::all_of(made_.indexes.begin(), made_.indexes.end(),
                                        [](const ResidentIndex& index) { return index.on_gpu; });
    if (all_on_gpu) {
      RETURN_IF_ERROR(MakeNamed("cpu:sorted_array"));
    }
    return std::move(made_);
  }

 private:
  std::vector<std::string> Factories() const {
    if (options_.ordered_indexes.empty()) {
      switch (options_.device) {
        case SearchDevice::kCpu:
          return {"cpu:auto"};
        case SearchDevice::kGpu:
          return {"gpu:auto"};
        case SearchDevice::kAuto:
          return {"cpu:auto", "gpu:auto"};
      }
    }
    std::vector<std::string> factories = options_.ordered_indexes;
    for (std::string& factory : factories) {
      if (factory == "auto") factory = "cpu:auto";
    }
    return factories;
  }

  // Makes cpu:auto, or the next structure that fits within the budget.
  absl::Status MakeWithinBudget() {
    const uint64_t budget =
        options_.host_memory_budget != 0 ? options_.host_memory_budget : AvailableMemoryBytes() / 2;
    for (const Choice& choice : kOnCpu) {
      if (choice.is_lavish && options_.host_memory_budget == 0) continue;
      const double bytes = MostBytes(choice, run_);
      // Mapped leaves take no memory.
      const bool mapped = leaves_.has_value() && leaves_->memory == LeafMemory::kMapped;
      if (bytes < 0 || (bytes > static_cast<double>(budget) && !mapped)) continue;
      return MakeNamed(choice.factory);
    }
    return MakeNamed("cpu:sorted_array");
  }

  absl::Status MakeNamed(const std::string& factory) {
    if (factory == kOnGpu) {
      RETURN_IF_ERROR(CheckDeviceBudget());
    }
    ASSIGN_OR_RETURN(std::unique_ptr<OrderedIndex> index,
                     MakeOrderedIndex(factory, run_, leaves_.has_value() ? &*leaves_ : nullptr,
                                      options_.devices));
    std::string name = RouteName(absl::EndsWith(factory, ":auto") ? index->description() : factory);
    // Variants of one structure are distinguished by the whole factory string.
    for (const ResidentIndex& other : made_.indexes) {
      if (other.name == name) name = factory;
    }
    for (const ResidentIndex& other : made_.indexes) {
      if (other.name == name) {
        return absl::InvalidArgumentError(
            absl::StrFormat("ordered index '%s' is listed twice", factory));
      }
    }
    made_.indexes.push_back({std::move(name), std::move(index), IsOnGpu(factory)});
    return absl::OkStatus();
  }

  absl::Status CheckDeviceBudget() const {
    ASSIGN_OR_RETURN(const std::vector<Device> devices, ListDevices());
    ASSIGN_OR_RETURN(const FactoryString factory, FactoryString::Parse(kOnGpu));
    ASSIGN_OR_RETURN(const gpu::DeviceBytes bytes,
                     gpu::PredictDeviceBytes(factory, run_, options_.threads));
    for (const Device& device : devices) {
      const auto copies = static_cast<uint64_t>(
          options_.devices.empty()
              ? device.ordinal == devices.front().ordinal
              : std::count(options_.devices.begin(), options_.devices.end(), device.ordinal));
      const uint64_t budget = options_.device_memory_budget != 0 ? options_.device_memory_budget
                                                                 : device.memory_bytes / 2;
      if (copies == 0 || bytes.resident <= budget / copies) continue;
      return absl::ResourceExhaustedError(absl::StrFormat(
          "%s may take %d bytes for %d entries%s, which exceeds the budget of %d bytes of %s",
          kOnGpu, copies * bytes.resident, run_.size(),
          copies == 1 ? "" : absl::StrFormat(" in %d copies", copies), budget, device.name));
    }
    return absl::OkStatus();
  }

  const OpenOptions& options_;
  const SortedRun& run_;
  std::optional<UsableLeaves> leaves_;
  ResidentIndexes made_;
};

}  // namespace

absl::StatusOr<ResidentIndexes> MakeResidentIndexes(const OpenOptions& options,
                                                    const SortedRun& run,
                                                    const std::optional<StoredLeaves>& leaves) {
  return ResidentIndexMaker(options, run, leaves).Make();
}

absl::StatusOr<std::optional<StoredLeaves>> LeavesOf(const RunFile& file,
                                                     const OpenOptions& options) {
  ASSIGN_OR_RETURN(std::optional<StoredLeaves> leaves, FindStoredLeaves(file));
  if (!leaves.has_value() || options.verify != VerifyLevel::kFull) return leaves;
  RETURN_IF_ERROR(Guarded("checking stored leaves", [&] {
    return CheckLeaves(file, *leaves, Topology::Get().Threads(options.threads));
  }));
  return leaves;
}

absl::Status CheckLeaves(const RunFile& file, const StoredLeaves& leaves, int threads) {
  return CheckStoredLeaves(file.run, leaves, threads);
}

}  // namespace cairn
