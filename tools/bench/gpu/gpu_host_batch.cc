// Response/<index>/<key>/n:<log2 n>/batch:<log2 b>[/pageable][/threads:<t>]: row ids of batches of
// 2^b random keys of the index, from and to host memory, which is pinned unless the name contains
// "pageable". The time is the median of a batch by the host's clock; p99_us is its 99th percentile.
// With threads, all run their own batches at once; queries_per_s is the total. n is
// CAIRN_BENCH_LOG2_N, 24 by default. A first batch of each size is not counted, since it may
// allocate.
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "gpu/runtime/cuda_status.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/device_data.h"

namespace cairn::bench::gpu_host_batch {
namespace {

constexpr size_t kQueries = size_t{1} << 24;  // used in turn, in batches
constexpr size_t kMaxRuns = 2001;             // of a small batch; a large one has at least kMinRuns
constexpr size_t kMinRuns = 15;

// An array in host memory, pinned or not.
template <typename T>
class HostArray {
 public:
  static absl::StatusOr<std::unique_ptr<HostArray>> Make(size_t size, bool pinned) {
    auto array = std::make_unique<HostArray>();
    if (pinned) {
      void* memory = nullptr;
      CAIRN_RETURN_IF_CUDA_FAILS(cudaMallocHost(&memory, size * sizeof(T)));
      array->pinned_.reset(static_cast<T*>(memory));
      array->span_ = {array->pinned_.get(), size};
    } else {
      array->pageable_.resize(size);
      array->span_ = absl::MakeSpan(array->pageable_);
    }
    return array;
  }
  absl::Span<T> span() const { return span_; }

 private:
  struct Free {
    void operator()(T* memory) const { (void)cudaFreeHost(memory); }
  };
  std::unique_ptr<T, Free> pinned_;
  std::vector<T> pageable_;
  absl::Span<T> span_;
};

// Copies from device memory.
template <typename T>
absl::Status Download(const gpu::DeviceBuffer<T>& from, absl::Span<T> to) {
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemcpy(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToHost));
  return absl::OkStatus();
}

// An index over 2^log2_n uniform keys, queries with the rows that answer them.
template <typename Key>
struct Subject {
  std::shared_ptr<const OrderedIndex> index;
  std::unique_ptr<HostArray<Key>> pinned_keys, pageable_keys;
  std::vector<RowId> row_ids;
};

template <typename Key>
absl::StatusOr<std::shared_ptr<const OrderedIndex>> MakeHostIndex(const std::string& factory,
                                                                  int log2_n) {
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(KeySet::kUniform, log2_n));
  struct Columns {
    std::vector<Key> keys;
    std::vector<RowId> row_ids;
  };
  const auto columns = std::make_shared<Columns>();
  // Whole cache lines, like a run's columns.
  columns->keys.resize(entries->size() + 64);
  columns->row_ids.resize(entries->size() + 64);
  absl::Status s = Download(entries->run.keys, absl::MakeSpan(columns->keys));
  if (s.ok()) s = Download(entries->run.row_ids, absl::MakeSpan(columns->row_ids));
  if (!s.ok()) return s;
  ASSIGN_OR_RETURN(
      auto made,
      MakeOrderedIndex(
          factory,
          SortedRun::Wrap(absl::MakeConstSpan(columns->keys).first(entries->size()),
                          absl::MakeConstSpan(columns->row_ids).first(entries->size()), columns)));
  return std::shared_ptr<const OrderedIndex>(std::move(made));
}

template <typename Key>
absl::StatusOr<std::shared_ptr<const Subject<Key>>> GetSubject(const std::string& factory,
                                                               int log2_n) {
  static std::shared_ptr<Subject<Key>> kept;
  static std::string kept_factory;
  if (kept != nullptr && kept_factory == factory) return kept;
  kept.reset();
  auto subject = std::make_shared<Subject<Key>>();
  ASSIGN_OR_RETURN(auto index, MakeHostIndex<Key>(factory, log2_n));
  subject->index = std::move(index);
  ASSIGN_OR_RETURN(const auto queries,
                   GetQueries<Key>(KeySet::kUniform, log2_n, QueryMix::kHits, kQueries));
  for (const bool pinned : {true, false}) {
    ASSIGN_OR_RETURN(auto keys, HostArray<Key>::Make(kQueries, pinned));
    RETURN_IF_ERROR(Download(queries->keys, keys->span()));
    (pinned ? subject->pinned_keys : subject->pageable_keys) = std::move(keys);
  }
  subject->row_ids.resize(kQueries);
  RETURN_IF_ERROR(Download(queries->row_ids, absl::MakeSpan(subject->row_ids)));
  kept = subject;
  kept_factory = factory;
  return subject;
}

struct HostLookup {
  std::string index;
  int log2_n;
  int log2_batch;
  bool pageable = false;
  int threads = 1;
};

// Runs batches one after the other, starting with those of `thread`; returns the seconds of each.
template <typename Key>
absl::StatusOr<std::vector<double>> AskInTurn(const Subject<Key>& subject, const HostLookup& lookup,
                                              int thread) {
  using Clock = std::chrono::steady_clock;
  const size_t size = size_t{1} << lookup.log2_batch;
  ASSIGN_OR_RETURN(const auto out, HostArray<RowId>::Make(size, !lookup.pageable));
  const absl::Span<RowId> rows = out->span();
  const absl::Span<const Key> keys =
      (lookup.pageable ? subject.pageable_keys : subject.pinned_keys)->span();
  size_t first = kQueries / static_cast<size_t>(lookup.threads) * static_cast<size_t>(thread);
  std::vector<double> seconds;
  const size_t runs = std::clamp(4 * kQueries / size, kMinRuns, kMaxRuns);
  for (size_t run = 0; run < runs + 1; ++run) {
    first = first + 2 * size <= kQueries ? first + size : 0;
    const Clock::time_point start = Clock::now();
    const absl::Status s =
        subject.index->Execute(Batch::FindFirst(keys.subspan(first, size), rows));
    const double taken = std::chrono::duration<double>(Clock::now() - start).count();
    if (!s.ok()) return s;
    if (run > 0) seconds.push_back(taken);
    if (rows != absl::MakeConstSpan(subject.row_ids).subspan(first, size)) {
      return absl::InternalError("wrong row ids");
    }
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

template <typename Key>
absl::Status Response(benchmark::State& state, const HostLookup& lookup) {
  ASSIGN_OR_RETURN(const auto subject, GetSubject<Key>(lookup.index, lookup.log2_n));
  std::vector<absl::StatusOr<std::vector<double>>> taken(static_cast<size_t>(lookup.threads));
  std::vector<std::thread> threads;
  for (int t = 0; t < lookup.threads; ++t) {
    threads.emplace_back(
        [&, t] { taken[static_cast<size_t>(t)] = AskInTurn(*subject, lookup, t); });
  }
  for (std::thread& thread : threads) thread.join();
  double median = 0, p99 = 0;  // of the slowest thread
  for (const auto& seconds : taken) {
    if (!seconds.ok()) return seconds.status();
    median = std::max(median, (*seconds)[seconds->size() / 2]);
    p99 = std::max(p99, (*seconds)[seconds->size() * 99 / 100]);
  }
  Report(state, median,
         {.queries = static_cast<uint64_t>(lookup.threads) << lookup.log2_batch,
          .bytes = subject->index->memory_bytes(),
          .entries = subject->index->run().size()});
  state.counters["response_us"] = median * 1e6;
  state.counters["p99_us"] = p99 * 1e6;
  return absl::OkStatus();
}

template <typename Key>
void Register(const HostLookup& lookup) {
  std::string name = absl::StrFormat("Response/%s/u%d/n:%d/batch:%d", lookup.index, 8 * sizeof(Key),
                                     lookup.log2_n, lookup.log2_batch);
  if (lookup.pageable) name += "/pageable";
  if (lookup.threads > 1) absl::StrAppendFormat(&name, "/threads:%d", lookup.threads);
  RegisterDeviceBenchmark(name, [lookup](benchmark::State& state, cudaStream_t) {
    return Response<Key>(state, lookup);
  });
}

const RegisterInMain registered([] {
  const char* n = std::getenv("CAIRN_BENCH_LOG2_N");
  const int log2_n = n != nullptr ? std::atoi(n) : 24;
  for (const char* index : {"gpu:auto", "gpu:sorted_array"}) {
    for (int log2_batch : {0, 4, 8, 10, 12, 14, 16, 18, 20, 22, 24}) {
      for (bool pageable : {false, true}) {
        Register<uint32_t>({index, log2_n, log2_batch, pageable});
        Register<uint64_t>({index, log2_n, log2_batch, pageable});
      }
    }
    for (int log2_batch : {0, 8, 12, 20}) {
      Register<uint32_t>({index, log2_n, log2_batch, false, 8});
    }
  }
});

}  // namespace
}  // namespace cairn::bench::gpu_host_batch
