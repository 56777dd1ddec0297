// KeySets/<set>/<key>/n:<log2 n>: sets of keys that are not spread evenly, by the side of as many
// that are (uniform), both under cpu:auto, in batches of 2^16 by turns. Sets:
//   lognormal      e^(2 z) for normally distributed z, the greatest at the end of the key space
//   clustered      dense in a thousand places, each somewhere in its thousandth of the key space
//   outliers       uniform in a 65,536th of the key space, and a hundred keys anywhere
//   timestamps     bursts: gaps that are short a thousand times, then long; one in ten is none
//   two_ends       half in the first, half in the last 1,024th of the key space
//   powers         as many between 2^k and 2^(k + 1) for every k from half the key's bits on
//   near_unique    uniform, one in a thousand twice
// Counters, ns a query and `_ratio` to uniform (medians of neighbours): hit, keys that are there;
// miss, keys just above these; far, keys anywhere, of which most are not there; count, ranges of
// one key. Likewise bytes a key beyond the run. ns are of the processor's time.
#include <benchmark/benchmark.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "tools/bench/data.h"
#include "tools/bench/or_throw.h"

namespace cairn::bench {
namespace {

constexpr size_t kBatch = size_t{1} << 16;
constexpr size_t kBatches = 8;  // asked in turn

enum class Set : uint8_t {
  kLognormal,
  kClustered,
  kOutliers,
  kTimestamps,
  kTwoEnds,
  kPowers,
  kNearUnique
};
constexpr const char* kSetNames[] = {"lognormal", "clustered", "outliers",   "timestamps",
                                     "two_ends",  "powers",    "near_unique"};

// Uniform in [0, 1).
double Unit(Random* random) {
  return static_cast<double>((*random)() >> 11) * 0x1p-53;
}
double Normal(Random* random) {
  return std::sqrt(-2 * std::log(1 - Unit(random))) * std::cos(2 * M_PI * Unit(random));
}

// `n` keys of the set, ascending.
template <typename Key>
std::vector<Key> MakeKeys(Set set, size_t n) {
  constexpr Key kGreatest = ~Key{0};
  constexpr int kBits = static_cast<int>(sizeof(Key)) * 8;
  Random random(kSeed);
  std::vector<Key> keys(n);
  switch (set) {
    case Set::kLognormal: {
      std::vector<double> values(n);
      for (double& value : values) value = std::exp(2 * Normal(&random));
      const double scale =
          std::ldexp(1.0, kBits - 1) / *std::max_element(values.begin(), values.end());
      for (size_t i = 0; i < n; ++i) keys[i] = static_cast<Key>(values[i] * scale);
      break;
    }
    case Set::kClustered: {
      constexpr size_t kClusters = 1000;
      const Key space = kGreatest / kClusters;
      for (size_t i = 0, cluster = 0; cluster < kClusters; ++cluster) {
        const size_t end = n * (cluster + 1) / kClusters;
        Key key = static_cast<Key>(space * cluster + random.Below(space - 2 * (end - i)));
        for (; i < end; ++i) keys[i] = key += static_cast<Key>(1 + random.Below(2));
      }
      break;
    }
    case Set::kOutliers:
      for (size_t i = 0; i < n; ++i) {
        // Of 32-bit keys a 65,536th would hold 65,536.
        const uint64_t width = std::max<uint64_t>(kGreatest >> 16, 4 * uint64_t{n});
        keys[i] = static_cast<Key>(i < 100 ? random() : kGreatest / 3 + random.Below(width));
      }
      break;
    case Set::kTimestamps: {
      const uint64_t gap = std::max<uint64_t>(1, (kGreatest >> 2) / n);
      uint64_t key = 0;
      for (size_t i = 0; i < n; ++i) {
        const bool pause = i % 1000 == 0;
        if (random.Below(10) != 0) key += 1 + random.Below(pause ? 1000 * gap : gap);
        keys[i] = static_cast<Key>(std::min<uint64_t>(key, kGreatest));
      }
      break;
    }
    case Set::kTwoEnds:
      for (size_t i = 0; i < n; ++i) {
        const Key key = static_cast<Key>(random()) >> 10;
        keys[i] = i % 2 == 0 ? key : static_cast<Key>(kGreatest - key);
      }
      break;
    case Set::kPowers:
      for (size_t i = 0; i < n; ++i) {
        const int k = kBits / 2 + static_cast<int>(random.Below(static_cast<uint64_t>(kBits / 2)));
        keys[i] = static_cast<Key>((Key{1} << k) + (static_cast<Key>(random()) >> (kBits - k)));
      }
      break;
    case Set::kNearUnique:
      keys = UniformKeys<Key>(n);
      for (size_t i = 0; i + 1 < n; ++i) {
        if (random.Below(1000) == 0) keys[i + 1] = keys[i];
      }
      break;
  }
  tbb::parallel_sort(keys.begin(), keys.end());
  return keys;
}

enum class Asked : uint8_t { kHit, kMiss, kFar, kCount };
constexpr Asked kAsked[] = {Asked::kHit, Asked::kMiss, Asked::kFar, Asked::kCount};
constexpr const char* kAskedNames[] = {"hit", "miss", "far", "count"};

// A set under its structure, and queries of it.
template <typename Key>
class Contender {
 public:
  explicit Contender(const std::vector<Key>& keys) {
    std::vector<RowId> rows(keys.size());
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<RowId>(i);
    index_ = OrThrow(MakeOrderedIndex(
        "cpu:auto", OrThrow(SortedRun::FromSorted(absl::MakeConstSpan(keys), rows))));
    Random random(kSeed + 1);
    hits_.resize(kBatch * kBatches);
    misses_.resize(hits_.size());
    far_.resize(hits_.size());
    // The last of the neighbours behind each key.
    std::vector<RowId> last(keys.size(), static_cast<RowId>(keys.size() - 1));
    for (size_t p = keys.size() - 1; p-- > 0;) {
      last[p] = keys[p + 1] - keys[p] <= 1 ? last[p + 1] : static_cast<RowId>(p);
    }
    for (size_t i = 0; i < hits_.size(); ++i) {
      const size_t p = random.Below(keys.size());
      hits_[i] = keys[p];
      misses_[i] = keys[last[p]] + 1;
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
    OrThrow(index_->Answer(batch));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    return (static_cast<double>(after.tv_sec - before.tv_sec) * 1e9 +
            static_cast<double>(after.tv_nsec - before.tv_nsec)) /
           static_cast<double>(kBatch);
  }

  // Whether a batch of each kind is answered as binary search does.
  bool AnswersRight() {
    const absl::Span<const Key> keys = index_->run().template keys<Key>();
    for (const auto* all : {&hits_, &misses_, &far_}) {
      const auto queries = absl::MakeConstSpan(*all).first(kBatch);
      OrThrow(index_->Answer(Batch::FindFirst(queries, absl::MakeSpan(rows_))));
      OrThrow(index_->Answer(Batch::Count(RangeBatch::Equal(queries), absl::MakeSpan(counts_))));
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
void KeySets(benchmark::State& state, Set set) {
  const auto n = size_t{1} << state.range(0);
  Contender<Key> uniform(UniformKeys<Key>(n));
  Contender<Key> contender(MakeKeys<Key>(set, n));
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
  for (Set set : {Set::kLognormal, Set::kClustered, Set::kOutliers, Set::kTimestamps, Set::kTwoEnds,
                  Set::kPowers, Set::kNearUnique}) {
    benchmark::RegisterBenchmark(
        absl::StrFormat("KeySets/%s/%s", kSetNames[static_cast<size_t>(set)], key).c_str(),
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
}  // namespace cairn::bench
