#include "index/machine/aligned_buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace cairn {
namespace {
constexpr size_t kHugePageBytes = size_t{2} << 20;
}  // namespace

void* AllocateLines(size_t bytes, size_t alignment) {
  const bool huge = bytes >= kHugePageBytes;
  if (huge) alignment = kHugePageBytes;
  if (bytes >= SIZE_MAX / 2) throw std::bad_alloc();
  const size_t rounded = bytes == 0 ? alignment : (bytes + alignment - 1) / alignment * alignment;
  void* p = std::aligned_alloc(alignment, rounded);
  if (p == nullptr) throw std::bad_alloc();
  if (huge) madvise(p, rounded, MADV_HUGEPAGE);  // only a hint: small pages also work, but slower
  const size_t last_line = bytes / kCacheLineBytes * kCacheLineBytes;
  if (last_line < rounded) std::memset(static_cast<char*>(p) + last_line, 0, kCacheLineBytes);
  return p;
}

void FreeLines(void* p) {
  std::free(p);
}

}  // namespace cairn
