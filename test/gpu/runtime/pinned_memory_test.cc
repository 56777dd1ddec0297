#include "gpu/runtime/pinned_memory.h"

#include <cuda_runtime.h>
#include <sys/mman.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <vector>

#include "gpu/host/gpu_index.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(pinned_memory_test, NeedsDevice)
namespace {

constexpr size_t kPage = 4096;

// Pages of ordinary memory; parts of them are pinned.
class Pages {
 public:
  explicit Pages(size_t count) : bytes_(count * kPage) {
    void* const data =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    BOOST_REQUIRE(data != MAP_FAILED);
    data_ = static_cast<char*>(data);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() {
    for (char* part : pinned_) (void)cudaHostUnregister(part);
    munmap(data_, bytes_);
  }
  char* data() const { return data_; }
  void Pin(size_t first, size_t count) {
    BOOST_REQUIRE(cudaHostRegister(data_ + first * kPage, count * kPage, cudaHostRegisterMapped) ==
                  cudaSuccess);
    pinned_.push_back(data_ + first * kPage);
  }

 private:
  size_t bytes_;
  char* data_ = nullptr;
  std::vector<char*> pinned_;
};

BOOST_AUTO_TEST_CASE(memory_is_pinned_if_all_of_it_is) {
  Pages pages(8);
  BOOST_TEST(!IsPinned(pages.data(), 1));
  pages.Pin(1, 4);
  char* const begin = pages.data() + kPage;
  BOOST_TEST(IsPinned(begin, 1));
  BOOST_TEST(IsPinned(begin, 4 * kPage));
  BOOST_TEST(IsPinned(begin + 100, 4 * kPage - 100));
  BOOST_TEST(!IsPinned(begin, 4 * kPage + 1));
  BOOST_TEST(!IsPinned(begin - 1, 2));
  BOOST_TEST(!IsPinned(begin + 3 * kPage, 2 * kPage));
}

BOOST_AUTO_TEST_CASE(memory_with_a_hole_between_pinned_ends_is_not_pinned) {
  Pages pages(4);
  pages.Pin(0, 1);
  pages.Pin(3, 1);
  BOOST_TEST(!IsPinned(pages.data(), 4 * kPage));
}

BOOST_AUTO_TEST_CASE(allocations_of_cuda_and_of_ours_are_pinned) {
  void* memory = nullptr;
  BOOST_REQUIRE(cudaMallocHost(&memory, 100000) == cudaSuccess);
  BOOST_TEST(IsPinned(memory, 100000));
  BOOST_REQUIRE(cudaFreeHost(memory) == cudaSuccess);
  const auto ours = RequireOk(PinnedMemory::Allocate(100000));
  BOOST_TEST(IsPinned(ours.data(), ours.bytes()));
  BOOST_TEST(!IsPinned(nullptr, 8));
  std::vector<int> ordinary(1000);
  BOOST_TEST(!IsPinned(ordinary.data(), 4000));
}

// Batches whose keys and results are pinned in part only, at one end or the other.
BOOST_AUTO_TEST_CASE(batches_in_memory_that_is_pinned_in_part_are_answered) {
  constexpr size_t kEntries = 10000;
  std::vector<uint32_t> keys(kEntries);
  std::vector<RowId> rows(kEntries);
  for (size_t i = 0; i < kEntries; ++i) {
    keys[i] = static_cast<uint32_t>(3 * i);
    rows[i] = static_cast<RowId>(i);
  }
  const auto run = *SortedRun::FromSorted(keys, rows);
  for (size_t max_zero_copy : {size_t{1} << 16, size_t{100}}) {
    auto made = RequireOk(MakeDeviceIndex("gpu:packed", run));
    HostBatchPolicy policy;
    policy.max_zero_copy = max_zero_copy;
    policy.min_chunk = 1000;
    const GpuIndex index(run, std::move(made), policy);
    for (size_t first : {0, 4}) {
      constexpr size_t kQueries = 8 * kPage / sizeof(uint32_t);
      Pages in(8), out(8);
      in.Pin(first, 4);
      out.Pin(4 - first, 4);
      auto* const asked = reinterpret_cast<uint32_t*>(in.data());
      auto* const found = reinterpret_cast<RowId*>(out.data());
      for (size_t i = 0; i < kQueries; ++i) asked[i] = static_cast<uint32_t>(i * 7 % 31000);
      RequireOk(index.Execute(
          Batch::FindFirst(absl::MakeConstSpan(asked, kQueries), absl::MakeSpan(found, kQueries))));
      size_t wrong = 0;
      for (size_t i = 0; i < kQueries; ++i) {
        const bool there = asked[i] % 3 == 0 && asked[i] / 3 < kEntries;
        wrong += found[i] != (there ? asked[i] / 3 : kNoRow);
      }
      BOOST_TEST(wrong == 0u);
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
