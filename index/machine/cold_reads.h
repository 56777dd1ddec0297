#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cairn {

// Asks the kernel to start reading the pages of a mapping that contain these bytes. Unlike
// MADV_SEQUENTIAL, it does not affect the rest of the mapping, which other threads may be
// searching, and the kernel does not drop pages after they are read. Does nothing for other memory.
void WillRead(const void* begin, size_t bytes);

// The reads of a batch in mapped files, at random places. A read of a page that is not in memory
// waits for the disk, one page at a time. If a batch has waited, it requests the pages of its next
// reads together, so that the disk reads many pages at a time:
//
//   ColdReads reads;
//   for (group of a few dozen reads) {
//     if (reads.Wait(the first address of the group)) {
//       for (each read) reads.Add(its address, its size);
//       reads.Request();
//     }
//     read the group
//   }
//
// 10,000 primary keys in a file of 0.9 GB take 170 instead of 890 ms, on a disk that gives 80,000
// reads a second to many requests (docs/performance.md). If all pages are in memory, a group costs
// one reading of the clock. Not thread-safe.
class ColdReads {
 public:
  // The number of reads to request together.
  static constexpr size_t kTogether = 4096;

  // Returns whether this batch has waited for a disk. The first call finds out by reading the byte
  // at `next`; the others compare the time since the call before with that of reads in memory.
  bool Wait(const void* next) {
    if (waits_) return true;
    const Clock::time_point before = std::exchange(last_, Clock::now());
    const bool is_first = before == Clock::time_point();
    return (is_first || last_ - before > kShortestWait) && HasWaited(next, is_first);
  }

  // Adds the pages that contain these bytes, or the first 64 KiB of them, to the next request.
  void Add(const void* begin, size_t bytes);
  // Asks the kernel to start reading the added pages, and forgets them. The kernel drops requests
  // of pages that are in memory.
  void Request();

 private:
  using Clock = std::chrono::steady_clock;
  // Less than any disk takes for a page, and more than memory takes for a group of reads.
  static constexpr std::chrono::microseconds kShortestWait{40};

  bool HasWaited(const void* next, bool is_first);

  Clock::time_point last_;
  bool waits_ = false;
  std::vector<uintptr_t> pages_;
};

}  // namespace cairn
