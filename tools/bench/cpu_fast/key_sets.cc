// KeySets/<set>/<key>/n:<log2 n>: sets of unevenly distributed keys (uneven_keys.h), compared with
// uniform keys of the same number. Both use cpu:auto, in alternating batches of 2^16.
// Counters: ns per query, and as `_ratio` the quotient to uniform keys (median over adjacent
// batches), for
//   hit    keys that the index contains;
//   miss   keys just above these;
//   far    keys anywhere, most of them absent;
//   count  ranges of one key.
// Also bytes per key, without the run, with its ratio. ns are CPU time.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "tools/bench/data.h"
#include "tools/bench/or_throw.h"
#include "tools/bench/uneven_keys.h"

namespace cairn::bench::key_sets {
namespace {

constexpr size_t kBatch = size_t{1} << 16;
constexpr size_t kBatches = 8;  // used in turn

enum class Asked : uint8_t { kHit, kMiss, kFar, kCount };
constexpr Asked kAsked[] = {Asked::kHit, Asked::kMiss, Asked::kFar, Asked::kCount};
constexpr const char* kAskedNames[] = {"hit", "miss", "far", "count"};

// A set with its structure, and queries.
template <typename Key>
class Contender {
 public:
  explicit Contender(const std::vector<Key>& keys) {
    std::vector<RowId> rows(keys.size());
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<RowId>(i);
    index_ = OrThrow(MakeOrderedIndex(
        "cpu:auto", OrThrow(SortedRun::FromSorted(absl::MakeConstSpan(keys), rows))));
    const std::vector<Key> absent = AbsentKeysBehind(keys);
    Random random(kSeed + 1);
    hits_.resize(kBatch * kBatches);
    misses_.resize(hits_.size());
    far_.resize(hits_.size());
    for (size_t i = 0; i < hits_.size(); ++i) {
      const size_t p = random.Below(keys.size());
      hits_[i] = keys[p];
      misses_[i] = absent[p];
      far_[i] = static_cast<Key>(random());
    }
  }

  const OrderedIndex& index() const { return *index_; }

  double Ns(Asked asked, size_t b) {
    const absl::Span<const Key> queries = absl::MakeConstSpan(asked == Asked::kMiss  ? misses_
                                                              : asked == Asked::kFar ? far_
                                                                                     : hits_)
                                              .subspan(b % kBatches * kBatch, kBatch);
    const Batch batch = asked == Asked::kCount
                            ? Batch::Count(RangeBatch::Equal(queries), absl::MakeSpan(counts_))
                            : Batch::FindFirst(queries, absl::MakeSpan(rows_));
    timespec before, after;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    OrThrow(index_->Execute(batch));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    return (static_cast<double>(after.tv_sec - before.tv_sec) * 1e9 +
            static_cast<double>(after.tv_nsec - before.tv_nsec)) /
           static_cast<double>(kBatch);
  }

  // Whether the answers to a batch of each kind equal those of binary search.
  bool AnswersRight() {
    const absl::Span<const Key> keys = index_->run().template keys<Key>();
    for (const auto* all : {&hits_, &misses_, &far_}) {
      const auto queries = absl::MakeConstSpan(*all).first(kBatch);
      OrThrow(index_->Execute(Batch::FindFirst(queries, absl::MakeSpan(rows_))));
      OrThrow(index_->Execute(Batch::Count(RangeBatch::Equal(queries), absl::MakeSpan(counts_))));
      for (size_t i = 0; i < queries.size(); ++i) {
        const auto [begin, end] = std::equal_range(keys.begin(), keys.end(), queries[i]);
        const auto row = begin == end ? kNoRow : static_cast<RowId>(begin - keys.begin());
        if (rows_[i] != row || counts_[i] != static_cast<uint64_t>(end - begin)) return false;
      }
    }
    return true;
  }

 private:
  std::unique_ptr<OrderedIndex> index_;
  std::vector<Key> hits_, misses_, far_;
  std::vector<RowId> rows_ = std::vector<RowId>(kBatch);
  std::vector<uint64_t> counts_ = std::vector<uint64_t>(kBatch);
};

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <typename Key>
void KeySets(benchmark::State& state, UnevenSet set) {
  const auto n = size_t{1} << state.range(0);
  Contender<Key> uniform(UniformKeys<Key>(n));
  Contender<Key> contender(UnevenKeys<Key>(set, n));
  std::vector<double> ns[std::size(kAsked)], ratios[std::size(kAsked)];
  size_t b = 0;
  for (auto _ : state) {
    for (Asked asked : kAsked) {
      const auto a = static_cast<size_t>(asked);
      const double of_uniform = uniform.Ns(asked, b);
      ns[a].push_back(contender.Ns(asked, b));
      ratios[a].push_back(ns[a].back() / of_uniform);
    }
    ++b;
  }
  if (!contender.AnswersRight()) return state.SkipWithError("wrong answer");
  for (Asked asked : kAsked) {
    const auto a = static_cast<size_t>(asked);
    state.counters[kAskedNames[a]] = Median(ns[a]);
    state.counters[absl::StrFormat("%s_ratio", kAskedNames[a])] = Median(ratios[a]);
  }
  const auto bytes = static_cast<double>(contender.index().memory_bytes());
  state.counters["bytes"] = bytes / static_cast<double>(n);
  state.counters["bytes_ratio"] = bytes / static_cast<double>(uniform.index().memory_bytes());
  state.SetLabel(contender.index().description());
}

template <typename Key>
void Register(const char* key) {
  for (UnevenSet set : kUnevenSets) {
    benchmark::RegisterBenchmark(absl::StrFormat("KeySets/%s/%s", UnevenSetName(set), key).c_str(),
                                 [=](benchmark::State& state) { KeySets<Key>(state, set); })
        ->ArgName("n")
        ->Arg(22)
        ->Arg(24)
        ->Iterations(24)
        ->Unit(benchmark::kMillisecond);
  }
}

const bool registered = [] {
  Register<uint32_t>("u32");
  Register<uint64_t>("u64");
  return true;
}();

}  // namespace
}  // namespace cairn::bench::key_sets
