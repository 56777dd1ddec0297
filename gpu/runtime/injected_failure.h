#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

namespace cairn::gpu {

// Failures requested by tests, returned where CUDA would report them. They apply to the whole
// process. Thread-safe; without a request, a check costs one relaxed load. They have no effect in a
// build without CUDA.

// After `count` more device allocations in any threads, all later ones fail as if memory had run
// out. A negative count ends this.
void FailDeviceAllocationsAfter(int64_t count);

// Devices have only `bytes` bytes of memory for this library; 0 ends this.
void LimitDeviceBytes(uint64_t bytes);

// Affects the calls by which host-memory batches (GpuIndex) enqueue work or wait for it, in any
// threads. After `count` more of these, all later ones fail as if the device were lost
// (Unavailable). A negative count ends this. A batch makes up to two such calls per chunk of its
// queries, and per piece of row ids that the device copies.
void FailDeviceCallsAfter(int64_t count);

// Affects the calls by which a device group (cairn/device/group.h) gives work to a member or waits
// for it. After `count` more of these, all later ones fail as if the member's device were lost. A
// negative count ends this. `member` is the member's number in any group, or negative for all
// members.
void FailGroupMemberAfter(int member, int64_t count);

// Every kernel launch fails with this CUDA error (cudaError_t), as for code built for another
// device; 0 ends this.
void FailLaunchesWith(int cuda_error);

// Whether `bytes` more bytes may be allocated on a device where `allocated` are; counts an
// allocation.
bool MayAllocate(size_t bytes, size_t allocated);
// `available` bytes, reduced to what LimitDeviceBytes leaves if `allocated` are allocated.
size_t WithinDeviceLimit(size_t available, size_t allocated);
// OK unless the call should fail; counts the call.
absl::Status MayCallDevice();
// The same for a call to a group's member.
absl::Status MayCallMember(int member);
// The error set by FailLaunchesWith, or 0.
int InjectedLaunchError();

}  // namespace cairn::gpu
