#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "cairn/query.h"
#include "cairn/sorted_run.h"
#include "gpu/group/group_state.h"
#include "gpu/group/group_view.h"
#include "gpu/host/gpu_index.h"

namespace cairn::gpu {

// A group as an index for batches of the host. Each is split over the devices, to which the parts
// are copied as to one device alone. A part of a replica's is answered there; one of a device with
// a shard is put to the group from there. Thread-safe.
class HostGroup {
 public:
  // `run`: the entries of all, where they are one run.
  HostGroup(GroupState& group, std::optional<SortedRun> run, bool wide_rows);

  absl::Status Execute(const Batch& batch) const;

 private:
  absl::Status Check(const Batch& batch) const;
  // The members that a part may be put to: one a device, or every replica.
  std::vector<size_t> Sources() const;
  // Has `source` answer, or, where its device is lost, another one, or the CPU.
  absl::Status AnswerPart(const Batch& part, size_t source) const;
  absl::Status Ask(const Batch& part, size_t source) const;
  absl::Status AskWide(const Batch& part, int device) const;

  GroupState& group_;
  const std::optional<SortedRun> run_;
  const bool wide_rows_;
  std::vector<std::unique_ptr<GpuIndex>>
      indexes_;  // by member; none where positions are of 64 bits
  mutable std::atomic<size_t> turn_{0};
};

}  // namespace cairn::gpu
