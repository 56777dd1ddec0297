// KeySets/gpu:auto/<set>/<key>/n:<log2 n>: sets of unevenly distributed keys (uneven_keys.h)
// compared with uniform keys of the same number, batches of 2^24 queries in device memory.
// Queries: hit (keys of the index), miss (keys just above these), far (keys anywhere, most of them
// absent) and count (ranges of one key). Counters: billions of queries per second and, as `_ratio`,
// the time divided by that of uniform keys. Also bytes per entry of device memory, with its ratio.
// n is 22, 24 and 26.
#include <tbb/parallel_for.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "cairn/device.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "index/machine/status_macros.h"
#include "tools/bench/data.h"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/uneven_keys.h"

namespace cairn::bench::gpu_key_sets {
namespace {

using gpu::DeviceBuffer;

constexpr size_t kQueries = size_t{1} << 24;

enum class Asked : uint8_t { kHit, kMiss, kFar, kCount };
constexpr Asked kAsked[] = {Asked::kHit, Asked::kMiss, Asked::kFar, Asked::kCount};
constexpr const char* kAskedNames[] = {"hit", "miss", "far", "count"};

template <typename Key>
DeviceKeys KeysOf(const DeviceBuffer<Key>& keys) {
  return {keys.data(), keys.size()};
}

// A set with gpu:auto, and queries.
template <typename Key>
class Contender {
 public:
  static absl::StatusOr<std::unique_ptr<Contender>> Make(std::vector<Key> keys,
                                                         cudaStream_t stream) {
    auto made = std::make_unique<Contender>();
    made->keys_ = std::move(keys);
    const std::vector<Key>& all = made->keys_;
    std::vector<RowId> rows(all.size());
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<RowId>(i);
    ASSIGN_OR_RETURN(const SortedRun run, SortedRun::FromSorted(absl::MakeConstSpan(all), rows));
    ASSIGN_OR_RETURN(made->index_, MakeDeviceIndex("gpu:auto", run));
    std::vector<Key>* const queries = made->queries_;
    for (size_t a = 0; a < 3; ++a) queries[a].resize(kQueries);
    const std::vector<Key> absent = AbsentKeysBehind(all);
    tbb::parallel_for(size_t{0}, kQueries, [&](size_t i) {
      Random random(kSeed + (i << 32));
      const size_t p = random.Below(all.size());
      queries[0][i] = all[p];
      queries[1][i] = absent[p];
      queries[2][i] = static_cast<Key>(random());
    });
    for (size_t a = 0; a < 3; ++a) {
      RETURN_IF_ERROR(gpu::Upload(absl::MakeConstSpan(queries[a]), &made->on_device_[a], stream));
    }
    RETURN_IF_ERROR(gpu::Resize(&made->rows_, kQueries, stream));
    RETURN_IF_ERROR(gpu::Resize(&made->counts_, kQueries, stream));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
    return made;
  }

  const DeviceIndex& index() const { return *index_; }

  absl::Status Ask(Asked asked, cudaStream_t stream) const {
    const DeviceKeys keys =
        KeysOf(on_device_[asked == Asked::kCount ? 0 : static_cast<size_t>(asked)]);
    if (asked != Asked::kCount) {
      return index_->Execute(DeviceBatch::FindFirst(keys, rows_.data()), stream);
    }
    const DeviceRanges ranges{keys, keys, Bound::kInclusive, Bound::kInclusive};
    return index_->Execute(DeviceBatch::Count(ranges, counts_.data()), stream);
  }

  // Internal if the answers of Ask differ from those of binary search; checks every 16th query.
  absl::Status Check(Asked asked, cudaStream_t stream) const {
    std::vector<RowId> rows(kQueries);
    std::vector<uint64_t> counts(kQueries);
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
    CAIRN_RETURN_IF_CUDA_FAILS(
        cudaMemcpy(rows.data(), rows_.data(), rows_.bytes(), cudaMemcpyDeviceToHost));
    CAIRN_RETURN_IF_CUDA_FAILS(
        cudaMemcpy(counts.data(), counts_.data(), counts_.bytes(), cudaMemcpyDeviceToHost));
    const std::vector<Key>& queries =
        queries_[asked == Asked::kCount ? 0 : static_cast<size_t>(asked)];
    for (size_t i = 0; i < kQueries; i += 16) {
      const auto [begin, end] = std::equal_range(keys_.begin(), keys_.end(), queries[i]);
      const auto row = begin == end ? kNoRow : static_cast<RowId>(begin - keys_.begin());
      const bool right =
          asked == Asked::kCount ? counts[i] == static_cast<uint64_t>(end - begin) : rows[i] == row;
      if (!right) return absl::InternalError(absl::StrFormat("query %d is answered wrongly", i));
    }
    return absl::OkStatus();
  }

 private:
  std::vector<Key> keys_;
  std::unique_ptr<DeviceIndex> index_;
  std::vector<Key> queries_[3];
  DeviceBuffer<Key> on_device_[3];
  DeviceBuffer<RowId> rows_;
  DeviceBuffer<uint64_t> counts_;
};

// Seconds of each kind of queries, alternately; checks the answers.
template <typename Key>
absl::StatusOr<std::vector<double>> TimeAll(const Contender<Key>& contender, cudaStream_t stream) {
  std::vector<double> seconds;
  for (const Asked asked : kAsked) {
    ASSIGN_OR_RETURN(const double taken,
                     MedianSeconds(stream, [&] { return contender.Ask(asked, stream); }));
    RETURN_IF_ERROR(contender.Check(asked, stream));
    seconds.push_back(taken);
  }
  return seconds;
}

struct Uniform {
  std::vector<double> seconds;
  double bytes = 0;
};

template <typename Key>
absl::StatusOr<Uniform> TimeUniform(int log2_n, cudaStream_t stream) {
  static int made_n = 0;
  static Uniform made;
  if (made_n == log2_n) return made;
  ASSIGN_OR_RETURN(const auto contender,
                   Contender<Key>::Make(UniformKeys<Key>(size_t{1} << log2_n), stream));
  ASSIGN_OR_RETURN(made.seconds, TimeAll(*contender, stream));
  made.bytes = static_cast<double>(contender->index().memory_bytes());
  made_n = log2_n;
  return made;
}

template <typename Key>
absl::Status KeySets(benchmark::State& state, UnevenSet set, int log2_n, cudaStream_t stream) {
  const size_t n = size_t{1} << log2_n;
  ASSIGN_OR_RETURN(const Uniform uniform, TimeUniform<Key>(log2_n, stream));
  ASSIGN_OR_RETURN(const auto contender, Contender<Key>::Make(UnevenKeys<Key>(set, n), stream));
  ASSIGN_OR_RETURN(const std::vector<double> seconds, TimeAll(*contender, stream));
  const uint64_t bytes = contender->index().memory_bytes();
  Report(state, seconds[0], {.queries = kQueries, .bytes = bytes, .entries = n});
  for (const Asked asked : kAsked) {
    const auto a = static_cast<size_t>(asked);
    state.counters[kAskedNames[a]] = static_cast<double>(kQueries) / seconds[a] * 1e-9;
    state.counters[absl::StrFormat("%s_ratio", kAskedNames[a])] = seconds[a] / uniform.seconds[a];
  }
  state.counters["bytes_ratio"] = static_cast<double>(bytes) / uniform.bytes;
  state.SetLabel(contender->index().description());
  return absl::OkStatus();
}

template <typename Key>
void Register(int log2_n) {
  for (const UnevenSet set : kUnevenSets) {
    RegisterDeviceBenchmark(absl::StrFormat("KeySets/gpu:auto/%s/u%d/n:%d", UnevenSetName(set),
                                            8 * sizeof(Key), log2_n),
                            [=](benchmark::State& state, cudaStream_t stream) {
                              return KeySets<Key>(state, set, log2_n, stream);
                            });
  }
}

const RegisterInMain registered([] {
  for (const int log2_n : {22, 24, 26}) {
    Register<uint32_t>(log2_n);
    Register<uint64_t>(log2_n);
  }
});

}  // namespace
}  // namespace cairn::bench::gpu_key_sets
