#include "cpu_fast/batch/parallel_batch.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "index/query/sorted_array.h"
#include "test/ordered_index_oracle.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(parallel_batch_test)
namespace {

constexpr Parallelism kFourThreads{4, 10};

// An index whose every operation goes through the functions under test.
class OnFourThreads : public OrderedIndex {
 public:
  explicit OnFourThreads(SortedRun run) : OrderedIndex(run), index_(run) {}

  std::string description() const override { return "four threads"; }
  uint64_t memory_bytes() const override { return 0; }
  absl::Status Execute(const Batch& batch) const override {
    return cairn::Execute(index_, batch, kFourThreads);
  }

 private:
  SortedArray index_;
};

std::unique_ptr<OrderedIndex> Make(SortedRun run) {
  return std::make_unique<OnFourThreads>(std::move(run));
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_in_the_caller_s_order) {
  CheckCatalogue<uint32_t>(Make, 5000);
  CheckCatalogue<std::string>(Make, FewerUnderTsan(5000, 50));
}

BOOST_AUTO_TEST_CASE(slices_cover_a_batch_once) {
  for (size_t size : {0, 1, 9, 10, 19, 20, 21, 39, 40, 41, 1000, 1003}) {
    std::vector<std::atomic<int>> seen(size);
    std::atomic<int> calls = 0;
    BOOST_TEST(ForEachSlice(size, kFourThreads, [&](size_t first, size_t count) {
                 ++calls;
                 for (size_t i = first; i < first + count; ++i) ++seen[i];
                 return absl::OkStatus();
               }).ok());
    BOOST_TEST(calls <= 4);
    BOOST_TEST((calls == 1 || size >= 20));
    for (const auto& times : seen) BOOST_REQUIRE(times == 1);
  }
}

BOOST_AUTO_TEST_CASE(one_part_s_error_is_the_batch_s) {
  const absl::Status s = ForEachSlice(1000, kFourThreads, [](size_t first, size_t) {
    return first == 0 ? absl::OkStatus() : absl::DataLossError("lost");
  });
  BOOST_TEST(absl::IsDataLoss(s));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
