#include "test/allocation/failing_new.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string_view>
#include <vector>

namespace cairn {
namespace {

// The addresses of a loaded file's code.
struct Extent {
  uintptr_t begin = UINTPTR_MAX, end = 0;

  bool Holds(const void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    return begin <= at && at < end;
  }
};

Extent executable;
std::vector<Extent> not_to_fail;  // RocksDB and Abseil

std::atomic<bool> armed = false;
std::atomic<bool> failed = false;
std::atomic<bool> onward = false;
std::atomic<uint64_t> spared_allocations = 0;
std::atomic<uint64_t> allocations = 0;
std::atomic<uint64_t> first_failure = 0;
thread_local bool looking = false;  // backtrace() may allocate

void FindExtents() {
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void*) {
        Extent extent;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
          extent.begin = std::min(extent.begin, begin);
          extent.end = std::max(extent.end, begin + segment.p_memsz);
        }
        const std::string_view name = info->dlpi_name;
        if (name.empty()) {
          executable = extent;
        } else if (name.find("librocksdb") != name.npos || name.find("libabsl") != name.npos) {
          not_to_fail.push_back(extent);
        }
        return 0;
      },
      nullptr);
}

// The owner of a function in this executable. Functions of the C++ library are called by all
// libraries. So are the clones and parts that compilers make of them, whose names are not exported.
enum class Owner : uint8_t { kExecutable, kStandardLibrary, kUnknown };

Owner OwnerOf(const void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_sname == nullptr) return Owner::kUnknown;
  const std::string_view name = info.dli_sname;
  for (const std::string_view prefix : {"_ZNSt", "_ZNKSt", "_ZSt", "_ZN9__gnu_cxx"}) {
    if (name.substr(0, prefix.size()) == prefix) return Owner::kStandardLibrary;
  }
  return Owner::kExecutable;
}

// Whether this executable's code requested the memory: its frame is nearer to `caller`, which
// called operator new, than any frame of RocksDB or Abseil. Frames without a known name count as
// the executable's if no frame of such a library is found.
bool AskedByExecutable(const void* caller) {
  void* frames[64];
  const int depth = backtrace(frames, 64);
  int i = 0;
  while (i < depth && frames[i] != caller) ++i;
  bool unknown = false;
  for (; i < depth; ++i) {
    if (executable.Holds(frames[i])) {
      const Owner owner = OwnerOf(frames[i]);
      if (owner == Owner::kExecutable) return true;
      unknown = unknown || owner == Owner::kUnknown;
      continue;
    }
    const auto holds = [&](const Extent& library) { return library.Holds(frames[i]); };
    if (std::any_of(not_to_fail.begin(), not_to_fail.end(), holds)) return false;
  }
  return unknown;
}

// Whether an allocation must fail.
bool Fails(const void* caller) {
  if (!armed.load(std::memory_order_relaxed) || looking) return false;
  const uint64_t n = allocations.fetch_add(1);
  if (n < spared_allocations.load(std::memory_order_relaxed)) return false;
  if (failed.load() && !onward.load()) return false;
  looking = true;
  const bool ours = AskedByExecutable(caller);
  looking = false;
  if (!ours) return false;
  bool before = false;
  if (failed.compare_exchange_strong(before, true)) {
    first_failure = n;
    return true;
  }
  return onward.load();
}

void* AllocateOrNull(size_t size, size_t alignment, const void* caller) {
  if (Fails(caller)) return nullptr;
  if (alignment == 0) return std::malloc(size == 0 ? 1 : size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* Allocate(size_t size, size_t alignment, const void* caller) {
  void* const memory = AllocateOrNull(size, alignment, caller);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void FailingNew::Arm(uint64_t spared, How how) {
  if (executable.end == 0) {
    FindExtents();
    void* frame;
    backtrace(&frame, 1);  // loads its library now
  }
  spared_allocations = spared;
  onward = how == How::kOnward;
  allocations = 0;
  failed = false;
  armed = true;
}

FailingNew::Result FailingNew::Disarm() {
  armed = false;
  const bool any = failed.load();
  return {any, any ? first_failure.load() : allocations.load()};
}

}  // namespace cairn

void* operator new(size_t size) {
  return cairn::Allocate(size, 0, __builtin_return_address(0));
}
void* operator new[](size_t size) {
  return cairn::Allocate(size, 0, __builtin_return_address(0));
}
void* operator new(size_t size, std::align_val_t alignment) {
  return cairn::Allocate(size, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return cairn::Allocate(size, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return cairn::AllocateOrNull(size, 0, __builtin_return_address(0));
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return cairn::AllocateOrNull(size, 0, __builtin_return_address(0));
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return cairn::AllocateOrNull(size, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return cairn::AllocateOrNull(size, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
