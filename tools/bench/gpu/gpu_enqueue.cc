// Enqueue/<index>/<key>/n:<log2 n>/batch:<log2 b>[/threads:<t>]: the time that a call takes on the
// calling thread: FindFirst of 2^b keys in device memory, enqueued without waiting. The time per
// call is by the host's clock, the mean over the number of calls that a stream accepts without
// blocking the caller, median of kTimedRuns. With threads, each has its own stream.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/stream.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/device_data.h"

namespace cairn::bench::gpu_enqueue {
namespace {

// A stream accepts about a thousand operations before it blocks its caller.
constexpr int kCalls = 200;

// Seconds of a call.
absl::StatusOr<double> TimeCalls(const DeviceIndex& index, DeviceKeys keys, RowId* rows,
                                 const gpu::Stream& stream) {
  const auto start = std::chrono::steady_clock::now();
  for (int call = 0; call < kCalls; ++call) {
    const DeviceBatch batch = DeviceBatch::FindFirst(keys, rows);
    RETURN_IF_ERROR(index.Execute(batch, stream.get()));
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  RETURN_IF_ERROR(stream.Wait());
  return taken.count() / kCalls;
}

template <typename Key>
absl::Status Enqueue(benchmark::State& state, cudaStream_t stream, const std::string& factory,
                     int log2_n, int log2_batch, int threads) {
  const size_t batch = size_t{1} << log2_batch;
  ASSIGN_OR_RETURN(const auto index, GetIndex<Key>(factory, KeySet::kUniform, log2_n));
  ASSIGN_OR_RETURN(const auto queries,
                   GetQueries<Key>(KeySet::kUniform, log2_n, QueryMix::kHits, batch));
  ASSIGN_OR_RETURN(
      auto rows, gpu::DeviceBuffer<RowId>::Allocate(batch * static_cast<size_t>(threads), stream));
  std::vector<gpu::Stream> streams;
  for (int i = 0; i < threads; ++i) {
    ASSIGN_OR_RETURN(gpu::Stream made, gpu::Stream::Create());
    streams.push_back(std::move(made));
  }
  std::vector<double> runs;
  for (int run = 0; run < kWarmUpRuns + kTimedRuns; ++run) {
    std::vector<absl::StatusOr<double>> seconds(static_cast<size_t>(threads), 0.0);
    std::vector<std::thread> callers;
    for (size_t i = 0; i < seconds.size(); ++i) {
      callers.emplace_back([&, i] {
        seconds[i] = TimeCalls(*index, DeviceKeys(queries->keys.data(), batch),
                               rows.data() + i * batch, streams[i]);
      });
    }
    for (std::thread& caller : callers) caller.join();
    double most = 0;
    for (const absl::StatusOr<double>& taken : seconds) {
      if (!taken.ok()) return taken.status();
      most = std::max(most, *taken);
    }
    if (run >= kWarmUpRuns) runs.push_back(most);
  }
  std::nth_element(runs.begin(), runs.begin() + kTimedRuns / 2, runs.end());
  Report(state, runs[kTimedRuns / 2], {.queries = batch * static_cast<size_t>(threads)});
  return absl::OkStatus();
}

template <typename Key>
void RegisterCalls(const char* index, int log2_n, int log2_batch, int threads) {
  std::string name =
      absl::StrFormat("Enqueue/%s/u%d/n:%d/batch:%d", index, 8 * sizeof(Key), log2_n, log2_batch);
  if (threads > 1) absl::StrAppendFormat(&name, "/threads:%d", threads);
  RegisterDeviceBenchmark(name, [=](benchmark::State& state, cudaStream_t stream) {
    return Enqueue<Key>(state, stream, index, log2_n, log2_batch, threads);
  });
}

const RegisterInMain registered([] {
  for (const char* index :
       {"gpu:packed", "gpu:packed,directory=tree", "gpu:btree", "gpu:sorted_array"}) {
    for (int log2_batch : {0, 10, 17}) {
      for (int threads : {1, 4}) {
        RegisterCalls<uint32_t>(index, 20, log2_batch, threads);
        RegisterCalls<uint64_t>(index, 20, log2_batch, threads);
      }
    }
  }
});

}  // namespace
}  // namespace cairn::bench::gpu_enqueue
