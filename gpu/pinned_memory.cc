#include "gpu/pinned_memory.h"

#include <cuda_runtime.h>
#include <sys/mman.h>

#include "absl/strings/str_format.h"
#include "gpu/cuda_status.h"
#include "index/topology.h"

namespace cairn::gpu {
namespace {

constexpr size_t kPageBytes = size_t{2} << 20;  // huge ones, which are pinned the faster

// What the current device says of itself.
absl::StatusOr<int> AttributeOfDevice(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

absl::Status OutOfMemory(size_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrFormat("host memory: no room for %d bytes of pinned memory", bytes));
}

}  // namespace

absl::StatusOr<PinnedMemory> PinnedMemory::Allocate(size_t bytes) {
  const absl::StatusOr<int> same_addresses =
      AttributeOfDevice(cudaDevAttrCanUseHostPointerForRegisteredMem);
  if (!same_addresses.ok()) return same_addresses.status();
  if (*same_addresses != 1) {
    return absl::UnavailableError("CUDA: the device does not use the host's addresses");
  }
  bytes = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return OutOfMemory(bytes);
  madvise(data, bytes, MADV_HUGEPAGE);  // a wish
  Topology::Get().PlaceMemory(data, bytes, AttributeOfDevice(cudaDevAttrHostNumaId).value_or(-1));
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
