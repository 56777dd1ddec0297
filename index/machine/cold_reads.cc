#include "index/machine/cold_reads.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

namespace cairn {
namespace {

constexpr size_t kMaxAdded = size_t{64} << 10;
// The kernel reads only the first part of a long range, but at least this many bytes.
constexpr size_t kMaxRange = size_t{128} << 10;

uintptr_t PageBytes() {
  static const auto bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// Whether this thread has waited for pages of files since it last called this function.
bool HasFaulted() {
  static thread_local long known = 0;
  rusage usage = {};
  if (getrusage(RUSAGE_THREAD, &usage) != 0) return false;
  return usage.ru_majflt != std::exchange(known, usage.ru_majflt);
}

}  // namespace

void WillRead(const void* begin, size_t bytes) {
  const auto from = reinterpret_cast<uintptr_t>(begin) / PageBytes() * PageBytes();
  const auto to = reinterpret_cast<uintptr_t>(begin) + bytes;
  if (bytes > 0) madvise(reinterpret_cast<void*>(from), to - from, MADV_WILLNEED);
}

bool ColdReads::HasWaited(const void* next, bool is_first) {
  if (always_for_tests) return true;
  if (is_first) {
    const char byte = *static_cast<const volatile char*>(next);
    static_cast<void>(byte);
    const Clock::time_point before = std::exchange(last_, Clock::now());
    if (last_ - before <= kReadWait) return false;
  }
  return HasFaulted();
}

bool ColdReads::Add(const void* begin, size_t bytes) noexcept {
  const auto from = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t first = from / PageBytes();
  const uintptr_t end = (from + std::min(bytes, kMaxAdded) + PageBytes() - 1) / PageBytes();
  if (bytes == 0) return true;
  if (end - first > kMaxPages - pages_.size()) return false;
  try {
    pages_.reserve(kMaxPages);
  } catch (const std::bad_alloc&) {
    return false;  // the reads wait for the disk one by one
  }
  for (uintptr_t page = first; page < end; ++page) {
    if (pages_.empty() || pages_.back() != page) pages_.push_back(page);
  }
  return true;
}

void ColdReads::Request() {
  std::sort(pages_.begin(), pages_.end());
  for (size_t i = 0; i < pages_.size();) {
    const uintptr_t first = pages_[i];
    uintptr_t end = first;
    for (; i < pages_.size() && pages_[i] <= end; ++i) {
      if ((pages_[i] + 1 - first) * PageBytes() > std::max(kMaxRange, PageBytes())) break;
      end = pages_[i] + 1;
    }
    WillRead(reinterpret_cast<const void*>(first * PageBytes()), (end - first) * PageBytes());
  }
  pages_.clear();
}

}  // namespace cairn
