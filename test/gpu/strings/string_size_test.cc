#include <sys/mman.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/sorted_run.h"
#include "gpu/api/gpu_factory.h"
#include "test/require_ok.h"

// Reasons that prevent an index of byte-string keys on a GPU are known before the build. Requires
// no device.
namespace cairn::gpu {
BOOST_AUTO_TEST_SUITE(string_size_test)
namespace {

absl::Status Predict(const char* factory, const SortedRun& run) {
  return PredictDeviceBytes(RequireOk(FactoryString::Parse(factory)), run).status();
}

// Zeros that take no memory until they are read.
class Zeros {
 public:
  explicit Zeros(size_t bytes) : bytes_(bytes) {
    memory_ = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    BOOST_REQUIRE(memory_ != MAP_FAILED);
  }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  ~Zeros() { munmap(memory_, bytes_); }
  const char* data() const { return static_cast<const char*>(memory_); }

 private:
  size_t bytes_;
  void* memory_ = nullptr;
};

BOOST_AUTO_TEST_CASE(keys_that_are_too_long_are_refused) {
  constexpr uint32_t kTooLong = uint32_t{1} << 28;
  const Zeros zeros(kTooLong);
  const std::vector<RowId> row_ids = {1};
  for (const uint32_t length : {kTooLong - 1, kTooLong}) {
    const std::vector<uint32_t> offsets = {0, length};
    const SortedRun run =
        SortedRun::Wrap(BytesColumn(zeros.data(), absl::MakeConstSpan(offsets)), row_ids, nullptr);
    for (const char* factory : {"gpu:partial_key", "gpu:partial_key,hash"}) {
      const absl::Status status = Predict(factory, run);
      BOOST_TEST((length < kTooLong ? status.ok() : absl::IsUnimplemented(status)), status);
    }
  }
}

BOOST_AUTO_TEST_CASE(entries_out_of_order_or_without_rows_are_refused) {
  const std::vector<uint32_t> offsets = {0, 1, 2};
  const auto predict = [&](std::string_view heap, const std::vector<RowId>& row_ids) {
    return Predict(
        "gpu:partial_key",
        SortedRun::Wrap(BytesColumn(heap.data(), absl::MakeConstSpan(offsets)), row_ids, nullptr));
  };
  RequireOk(predict("ab", {1, 2}));
  RequireOk(predict("aa", {1, 2}));
  BOOST_TEST(absl::IsDataLoss(predict("ba", {1, 2})));
  BOOST_TEST(absl::IsDataLoss(predict("ab", {1, kNoRow})));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
