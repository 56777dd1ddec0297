#include "gpu/runtime/pinned_memory.h"

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#include <sys/mman.h>

#include <cstdint>
#include <optional>

#include "absl/strings/str_format.h"
#include "gpu/runtime/cuda_status.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn::gpu {
namespace {

constexpr size_t kPageBytes = size_t{2} << 20;  // huge pages, which are faster to pin
constexpr uintptr_t kSmallPageBytes = 4096;     // granularity of pinning

// An attribute of the current device.
absl::StatusOr<int> AttributeOfDevice(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

absl::Status OutOfMemory(size_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrFormat("host memory: cannot allocate %d bytes of pinned memory", bytes));
}

bool IsPinnedByte(uintptr_t address) {
  cudaPointerAttributes attributes;
  if (cudaPointerGetAttributes(&attributes, reinterpret_cast<const void*>(address)) !=
      cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  return attributes.type == cudaMemoryTypeHost;
}

using GetPointerAttributes = PFN_cuPointerGetAttributes_v7000;

// The driver's function, for which the runtime has no equivalent; null if it is not available.
GetPointerAttributes FindGetPointerAttributes() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuPointerGetAttributes", &function,
                                                             12000, cudaEnableDefault, &found);
#else
  const cudaError_t error =
      cudaGetDriverEntryPoint("cuPointerGetAttributes", &function, cudaEnableDefault, &found);
#endif
  if (error == cudaSuccess && found == cudaDriverEntryPointSuccess) {
    return reinterpret_cast<GetPointerAttributes>(function);
  }
  (void)cudaGetLastError();
  return nullptr;
}

// The driver's information about the allocation or registration that contains a byte.
struct KnownMemory {
  bool pinned = false;
  uintptr_t begin = 0;
  size_t bytes = 0;
};

// Queries the driver with one call; nullopt if the function is not available.
std::optional<KnownMemory> MemoryOf(uintptr_t address) {
  static const GetPointerAttributes get = FindGetPointerAttributes();
  if (get == nullptr) return std::nullopt;
  CUmemorytype type = {};
  unsigned managed = 0;
  CUdeviceptr begin = 0;
  size_t bytes = 0;
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                 CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* values[] = {&type, &managed, &begin, &bytes};
  if (get(4, names, values, static_cast<CUdeviceptr>(address)) != CUDA_SUCCESS) return std::nullopt;
  const bool pinned = type == CU_MEMORYTYPE_HOST && managed == 0;
  if (pinned && bytes == 0) return std::nullopt;
  return KnownMemory{pinned, static_cast<uintptr_t>(begin), bytes};
}

}  // namespace

absl::StatusOr<PinnedMemory> PinnedMemory::Allocate(size_t bytes) {
  ASSIGN_OR_RETURN(const int same_addresses,
                   AttributeOfDevice(cudaDevAttrCanUseHostPointerForRegisteredMem));
  if (same_addresses != 1) {
    return absl::UnavailableError("CUDA: the device does not use the same addresses as the host");
  }
  bytes = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return OutOfMemory(bytes);
  madvise(data, bytes, MADV_HUGEPAGE);  // advisory only
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

bool IsPinned(const void* memory, size_t bytes) {
  if (memory == nullptr || bytes == 0) return false;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  if (const std::optional<KnownMemory> known = MemoryOf(begin); known.has_value()) {
    const uintptr_t behind = begin - known->begin;
    return known->pinned && behind <= known->bytes && bytes <= known->bytes - behind;
  }
  if (!IsPinnedByte(begin) || !IsPinnedByte(begin + bytes - 1)) return false;
  for (uintptr_t page = begin / kSmallPageBytes + 1; page * kSmallPageBytes < begin + bytes;
       ++page) {
    if (!IsPinnedByte(page * kSmallPageBytes)) return false;
  }
  return true;
}

PinnedMemory::~PinnedMemory() {
  if (data_ == nullptr) return;
  (void)cudaHostUnregister(data_);
  munmap(data_, bytes_);
}

}  // namespace cairn::gpu
