#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

namespace cairn::gpu {

// Failures that tests ask for, met where CUDA would report them. They hold for the whole process.
// Thread-safe; where none is asked for they cost a relaxed load. In a build without CUDA there is
// nothing to fail.

// The allocation of device memory after `count` more, in any thread, fails as if memory had run
// out, and so do all after it; a negative count ends that.
void FailDeviceAllocationsAfter(int64_t count);

// Devices have only `bytes` of memory for this library; 0 ends that.
void LimitDeviceBytes(uint64_t bytes);

// The call by which a batch of the host (GpuIndex) gives work to the device or waits for it, after
// `count` more in any thread, fails as if the device were lost (Unavailable), and so do all after
// it; a negative count ends that. A batch makes up to two such calls for each chunk of its queries,
// and for each piece of its rows that the device copies.
void FailDeviceCallsAfter(int64_t count);

// The call by which a device group (cairn/device/group.h) gives work to one of its members,
// or waits for it, after `count` more, fails as if the member's device were lost, and so do all
// after it; a negative count ends that. `member` is its number in any group, or negative for all
// members.
void FailGroupMemberAfter(int member, int64_t count);

// Every launch of a kernel fails with this error of CUDA's (cudaError_t), as it would for another
// device; 0 ends that.
void FailLaunchesWith(int cuda_error);

// Whether `bytes` more may be allocated on a device where `allocated` are; counts an allocation.
bool MayAllocate(size_t bytes, size_t allocated);
// What LimitDeviceBytes leaves of `available` bytes where `allocated` are.
size_t WithinDeviceLimit(size_t available, size_t allocated);
// OK unless the call is to fail; counts it.
absl::Status MayCallDevice();
// The same of a call to a group's member.
absl::Status MayCallMember(int member);
// FailLaunchesWith's error, or 0.
int InjectedLaunchError();

}  // namespace cairn::gpu
