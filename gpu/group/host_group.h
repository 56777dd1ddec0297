#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "cairn/query.h"
#include "gpu/group/group.h"
#include "gpu/host/gpu_index.h"

namespace cairn::gpu {

// A group as an index for host-memory batches. Each batch is split across the devices, and each
// part is copied to its device like a batch for a single device. A part for a replica is executed
// there. A part for a device with a shard is sent from there to the group. Thread-safe.
class HostGroup {
 public:
  explicit HostGroup(const Group& group);

  absl::Status Execute(const Batch& batch) const;

 private:
  absl::Status Check(const Batch& batch) const;
  // The members that parts may be sent to: one per device, or every replica.
  std::vector<size_t> Sources() const;
  // Executes a part on `source`, or if its device is lost, on another member or on the CPU.
  absl::Status AnswerPart(const Batch& part, size_t source) const;
  absl::Status Ask(const Batch& part, size_t source) const;
  absl::Status AskWide(const Batch& part, int device) const;

  const Group& group_;
  std::vector<std::unique_ptr<GpuIndex>> indexes_;  // by member; empty if positions have 64 bits
  mutable std::atomic<size_t> turn_{0};
};

}  // namespace cairn::gpu
