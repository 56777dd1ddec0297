#include "gpu/pinned_memory.h"

#include <cuda_runtime.h>
#include <sys/mman.h>

#include "absl/strings/str_format.h"
#include "gpu/cuda_status.h"
#include "index/topology.h"

namespace cairn::gpu {
namespace {

constexpr size_t kPageBytes = size_t{2} << 20;  // huge ones, which are pinned the faster

// What the current device says of itself; -1 if it does not.
int AttributeOfDevice(cudaDeviceAttr attribute) {
  int device = 0, value = -1;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&value, attribute, device) != cudaSuccess) {
    (void)cudaGetLastError();
    return -1;
  }
  return value;
}

absl::Status OutOfMemory(size_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrFormat("host memory: no room for %d bytes of pinned memory", bytes));
}

}  // namespace

absl::StatusOr<PinnedMemory> PinnedMemory::Allocate(size_t bytes) {
  if (AttributeOfDevice(cudaDevAttrCanUseHostPointerForRegisteredMem) != 1) {
    return absl::UnavailableError("CUDA: the device does not use the host's addresses");
  }
  bytes = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return OutOfMemory(bytes);
  madvise(data, bytes, MADV_HUGEPAGE);  // a wish
  Topology::Get().PlaceMemory(data, bytes, AttributeOfDevice(cudaDevAttrHostNumaId));
  const cudaError_t error =
      cudaHostRegister(data, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
  if (error != cudaSuccess) {
    munmap(data, bytes);
    if (error != cudaErrorMemoryAllocation) CAIRN_RETURN_IF_CUDA_FAILS(error);
    (void)cudaGetLastError();
    return OutOfMemory(bytes);
  }
  PinnedMemory memory;
  memory.data_ = static_cast<char*>(data);
  memory.bytes_ = bytes;
  return memory;
}

PinnedMemory::~PinnedMemory() {
  if (data_ == nullptr) return;
  (void)cudaHostUnregister(data_);
  munmap(data_, bytes_);
}

}  // namespace cairn::gpu
