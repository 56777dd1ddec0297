#include "index/machine/cold_reads.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace cairn {
BOOST_AUTO_TEST_SUITE(cold_reads_test)
namespace {

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

long Faults() {
  rusage usage = {};
  BOOST_REQUIRE(getrusage(RUSAGE_THREAD, &usage) == 0);
  return usage.ru_majflt;
}

// A mapped file of 1,024 pages, which are not in memory if the file system allows that. It is in
// /var/tmp, since the directory for other tests' files may be in memory.
class ColdFile {
 public:
  ColdFile() {
    std::string path = "/var/tmp/cairn_cold_XXXXXX";
    const int file = mkstemp(path.data());
    BOOST_REQUIRE(file >= 0);
    unlink(path.c_str());
    const std::string text(kBytes, 'x');
    BOOST_REQUIRE(write(file, text.data(), kBytes) == static_cast<ssize_t>(kBytes));
    BOOST_REQUIRE(fsync(file) == 0);
    BOOST_REQUIRE(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0);
    void* const begin = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file, 0);
    BOOST_REQUIRE(begin != MAP_FAILED);
    begin_ = static_cast<char*>(begin);
    close(file);
    madvise(begin_, kBytes, MADV_RANDOM);  // no pages around a fault
  }
  ~ColdFile() { munmap(begin_, kBytes); }
  ColdFile(const ColdFile&) = delete;
  ColdFile& operator=(const ColdFile&) = delete;

  char* at(size_t page) const { return begin_ + page * kPage; }
  bool IsInMemory(size_t page) const {
    unsigned char resident = 0;
    BOOST_REQUIRE(mincore(at(page), kPage, &resident) == 0);
    return (resident & 1) != 0;
  }
  bool BecomesResident(size_t page) const {
    for (int i = 0; i < 10'000 && !IsInMemory(page); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return IsInMemory(page);
  }
  // Whether a read of a page waits, and the pages around it stay on the disk; and whether pages can
  // be requested. Uses the last pages.
  bool IsUsable() const {
    if (IsInMemory(kPages - 1)) return false;
    const long before = Faults();
    const auto begin = std::chrono::steady_clock::now();
    const bool is_text = *static_cast<const volatile char*>(at(kPages - 1)) == 'x';
    const auto end = std::chrono::steady_clock::now();
    WillRead(at(kPages - 3), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return is_text && end - begin > std::chrono::microseconds(60) && Faults() > before &&
           !IsInMemory(kPages - 2) && IsInMemory(kPages - 3);
  }

 private:
  static constexpr size_t kPages = 1024;
  const size_t kBytes = kPages * kPage;
  char* begin_ = nullptr;
};

#define RETURN_UNLESS_USABLE(file)                                                        \
  if (!(file).IsUsable()) {                                                               \
    BOOST_TEST_MESSAGE("skipped: /var/tmp is not on a disk, or it is as fast as memory"); \
    return;                                                                               \
  }

BOOST_AUTO_TEST_CASE(requests_exactly_the_pages_of_the_reads) {
  const ColdFile file;
  RETURN_UNLESS_USABLE(file)
  ColdReads reads;
  // In any order, repeated, across a page's end, and without bytes.
  for (const size_t page : {9, 1, 9, 1}) BOOST_TEST(reads.Add(file.at(page), 8));
  BOOST_TEST(reads.Add(file.at(5) - 4, 8));
  BOOST_TEST(reads.Add(file.at(7), 0));
  BOOST_TEST(reads.Add(file.at(100), 1 << 30));
  reads.Request();
  for (const size_t page : {9, 1, 4, 5, 100}) BOOST_TEST(file.BecomesResident(page));
  BOOST_TEST(file.BecomesResident(100 + (size_t{64} << 10) / kPage - 1));
  for (const size_t page : {0, 2, 3, 6, 7, 8, 10, 99}) BOOST_TEST(!file.IsInMemory(page));
  BOOST_TEST(!file.IsInMemory(100 + (size_t{64} << 10) / kPage + 1));
}

BOOST_AUTO_TEST_CASE(requests_all_pages_of_a_long_range) {
  const ColdFile file;
  RETURN_UNLESS_USABLE(file)
  ColdReads reads;
  for (size_t page = 0; page < 1000; ++page) BOOST_TEST(reads.Add(file.at(page), 1));
  reads.Request();
  for (size_t page = 0; page < 1000; ++page) BOOST_TEST(file.BecomesResident(page));
}

BOOST_AUTO_TEST_CASE(a_full_request_takes_no_more) {
  ColdReads reads;
  const auto page = [](size_t i) { return reinterpret_cast<const void*>((2 * i + 1) * kPage); };
  for (size_t i = 0; i + 1 < ColdReads::kMaxPages; ++i) BOOST_TEST(reads.Add(page(i), 1));
  BOOST_TEST(!reads.Add(page(ColdReads::kMaxPages), 2 * kPage));
  BOOST_TEST(reads.Add(page(ColdReads::kMaxPages), 1));
  BOOST_TEST(!reads.Add(page(ColdReads::kMaxPages + 1), 1));
}

BOOST_AUTO_TEST_CASE(a_batch_waits_if_its_first_read_does) {
  const ColdFile file;
  RETURN_UNLESS_USABLE(file)
  ColdReads reads;
  BOOST_TEST(reads.Wait(file.at(500)));
  BOOST_TEST(file.IsInMemory(500));
  // It goes on to, and reads nothing to find out.
  reads.Request();
  BOOST_TEST(reads.Wait(file.at(300)));
  BOOST_TEST(!file.IsInMemory(300));
}

BOOST_AUTO_TEST_CASE(a_batch_waits_if_a_group_did) {
  const ColdFile file;
  RETURN_UNLESS_USABLE(file)
  const std::vector<char> memory(1 << 20, 'y');
  ColdReads reads;
  reads.Wait(memory.data());
  BOOST_TEST(*static_cast<const volatile char*>(file.at(700)) == 'x');
  BOOST_TEST(reads.Wait(memory.data()));
}

BOOST_AUTO_TEST_CASE(a_batch_in_memory_does_not_wait) {
  const std::vector<char> memory(1 << 20, 'y');
  size_t waits = 0;
  for (int i = 0; i < 100; ++i) {
    ColdReads reads;
    waits += reads.Wait(memory.data()) ? 1 : 0;
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    waits += reads.Wait(memory.data()) ? 1 : 0;
  }
  // This thread's earlier faults count once, and its code may have to be read.
  BOOST_TEST(waits <= 10u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
