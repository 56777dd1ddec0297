#include "index/machine/cold_reads.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "test/temporary_directory.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(cold_reads_test)
namespace {

// A mapped file of 16 MiB whose pages are not in memory, if the file system allows that.
class ColdFile {
 public:
  static constexpr size_t kBytes = size_t{16} << 20;

  ColdFile() {
    const std::string path = directory_.path() + "/file";
    const std::string text(kBytes, 'x');
    const int file = open(path.c_str(), O_RDWR | O_CREAT, 0600);
    BOOST_REQUIRE(file >= 0);
    BOOST_REQUIRE(write(file, text.data(), kBytes) == static_cast<ssize_t>(kBytes));
    BOOST_REQUIRE(fsync(file) == 0);
    BOOST_REQUIRE(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0);
    void* const begin = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file, 0);
    BOOST_REQUIRE(begin != MAP_FAILED);
    begin_ = static_cast<char*>(begin);
    close(file);
  }
  ~ColdFile() { munmap(begin_, kBytes); }
  ColdFile(const ColdFile&) = delete;
  ColdFile& operator=(const ColdFile&) = delete;

  char* at(size_t offset) const { return begin_ + offset; }
  bool IsInMemory(size_t offset) const {
    unsigned char resident = 0;
    BOOST_REQUIRE(mincore(begin_ + offset / 4096 * 4096, 4096, &resident) == 0);
    return (resident & 1) != 0;
  }
  bool BecomesResident(size_t offset) const {
    for (int i = 0; i < 10'000 && !IsInMemory(offset); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return IsInMemory(offset);
  }

 private:
  TemporaryDirectory directory_;
  char* begin_ = nullptr;
};

BOOST_AUTO_TEST_CASE(requests_exactly_the_pages_of_the_reads) {
  const ColdFile file;
  if (file.IsInMemory(0)) {
    BOOST_TEST_MESSAGE("this file system keeps its pages in memory");
    return;
  }
  ColdReads reads;
  // In any order, repeated, across a page's end, and without bytes.
  for (const size_t offset : {9 << 20, 1 << 20, 9 << 20, 1 << 20}) reads.Add(file.at(offset), 8);
  reads.Add(file.at((4 << 20) + 4092), 8);
  reads.Add(file.at(6 << 20), 0);
  reads.Request();
  for (const size_t offset : {9 << 20, 1 << 20, 4 << 20, (4 << 20) + 4096}) {
    BOOST_TEST(file.BecomesResident(offset));
  }
  for (const size_t offset : {(9 << 20) + 4096, (9 << 20) - 4096, 6 << 20, (4 << 20) + 8192}) {
    BOOST_TEST(!file.IsInMemory(offset));
  }
  reads.Request();  // nothing is left
}

BOOST_AUTO_TEST_CASE(a_batch_waits_if_its_first_read_does) {
  const ColdFile file;
  if (file.IsInMemory(0)) return;
  ColdReads reads;
  BOOST_TEST(reads.Wait(file.at(8 << 20)));
  BOOST_TEST(file.IsInMemory(8 << 20));
  BOOST_TEST(reads.Wait(file.at(0)));  // and goes on to
  BOOST_TEST(!file.IsInMemory(0));
}

BOOST_AUTO_TEST_CASE(a_batch_waits_if_a_group_did) {
  const ColdFile file;
  if (file.IsInMemory(0)) return;
  const std::vector<char> memory(1 << 20, 'y');
  ColdReads reads;
  bool waits = reads.Wait(memory.data());
  BOOST_TEST(!waits);
  BOOST_TEST(*static_cast<const volatile char*>(file.at(12 << 20)) == 'x');
  BOOST_TEST(reads.Wait(memory.data()));
}

BOOST_AUTO_TEST_CASE(time_without_the_processor_is_no_wait) {
  const std::vector<char> memory(1 << 20, 'y');
  {
    ColdReads reads;
    reads.Wait(memory.data());
  }
  ColdReads reads;
  reads.Wait(memory.data());
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  reads.Wait(memory.data());  // forgets faults of this thread before the test
  for (int i = 0; i < 3; ++i) {
    ColdReads again;
    BOOST_TEST(!again.Wait(memory.data()));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    BOOST_TEST(!again.Wait(memory.data()));
  }
}

BOOST_AUTO_TEST_CASE(memory_that_is_no_file_can_be_requested) {
  const std::vector<char> memory(1 << 20, 'y');
  ColdReads reads;
  reads.Add(memory.data(), memory.size());
  reads.Request();
  BOOST_TEST(memory.front() == 'y');
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
