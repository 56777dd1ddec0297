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
// waits for the disk, one page at a time, or longer if the kernel also reads the pages around it.
// If a batch waits, it requests the pages of its next reads together, so that the disk reads many
// at a time:
//
//   ColdReads reads;
//   for (group of a few dozen reads) {
//     if (this group has not been requested && reads.Wait(the first address of the group)) {
//       for (each of the next reads) if (!reads.Add(its address, its size)) break;
//       reads.Request();
//     }
//     read the group
//   }
//
// docs/performance.md has measurements. If all pages are in memory, a group costs one reading of
// the clock, and the first group two. Not thread-safe.
class ColdReads {
 public:
  // The maximum number of pages of a request, 16 MiB on x86-64.
  static constexpr size_t kMaxPages = 4096;
  // Smaller batches are not worth a look at the clock.
  static constexpr size_t kMinReads = 8;

  // Makes every Wait return true, so that tests request pages that are in memory.
  static inline bool always_for_tests = false;

  // Returns whether this batch has waited for a file's page. The first call reads the byte at
  // `next` to find out. Once true, it stays true: if only some pages are in memory, a check of the
  // next one is often wrong, and each wrong answer costs a group of waits.
  bool Wait(const void* next) {
    if (waits_) return true;
    const Clock::time_point before = std::exchange(last_, Clock::now());
    const bool is_first = before == Clock::time_point();
    if (is_first || last_ - before > kGroupWait || always_for_tests) {
      waits_ = HasWaited(next, is_first);
    }
    return waits_;
  }

  // Adds the pages that contain these bytes, or the first 64 KiB of them, to the next request.
  // Returns false, and adds nothing, if the request is full or memory is short.
  bool Add(const void* begin, size_t bytes) noexcept;
  // Asks the kernel to start reading the added pages, and forgets them.
  void Request();

 private:
  using Clock = std::chrono::steady_clock;
  // Longer than a read from memory, and longer than a group of them usually takes. A thread may
  // also lose the processor for that time, so its count of faults decides.
  static constexpr std::chrono::microseconds kReadWait{10}, kGroupWait{40};

  bool HasWaited(const void* next, bool is_first);

  Clock::time_point last_;
  bool waits_ = false;
  std::vector<uintptr_t> pages_;
};

}  // namespace cairn
