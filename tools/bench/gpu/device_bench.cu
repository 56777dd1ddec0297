#include "tools/bench/gpu/device_bench.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "cairn/device.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/stream.h"
#include "index/machine/status_macros.h"

namespace cairn::bench {
namespace {

// The first device, or null; determined once.
const Device* FirstDevice() {
  static const Device* device = []() -> const Device* {
    const auto devices = ListDevices();
    if (!devices.ok()) return nullptr;
    benchmark::AddCustomContext("device", devices->front().name);
    return new Device(devices->front());
  }();
  return device;
}

absl::Status RunBody(const DeviceBody& body, benchmark::State& state) {
  const gpu::OnDevice on_device(FirstDevice()->ordinal);
  ASSIGN_OR_RETURN(const gpu::Stream stream, gpu::Stream::Create());
  const absl::Status status = body(state, stream.get());
  const absl::Status done = stream.Wait();
  return status.ok() ? done : status;
}

template <typename Run>
absl::StatusOr<double> Median(Run run) {
  double warm_up = 0;
  for (int i = 0; i < kWarmUpRuns || warm_up < kWarmUpSeconds; ++i) {
    ASSIGN_OR_RETURN(const double taken, run());
    warm_up += taken;
  }
  std::array<double, kTimedRuns> seconds;
  for (double& timed : seconds) {
    ASSIGN_OR_RETURN(timed, run());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kTimedRuns / 2, seconds.end());
  return seconds[kTimedRuns / 2];
}

struct EventPair {
  EventPair() {
    (void)cudaEventCreate(&start);
    (void)cudaEventCreate(&stop);
  }
  ~EventPair() {
    (void)cudaEventDestroy(start);
    (void)cudaEventDestroy(stop);
  }
  cudaEvent_t start = nullptr, stop = nullptr;
};

}  // namespace

void RegisterDeviceBenchmark(const std::string& name, DeviceBody body) {
  if (FirstDevice() == nullptr) return;
  benchmark::RegisterBenchmark(name.c_str(),
                               [body = std::move(body)](benchmark::State& state) {
                                 const absl::Status status = RunBody(body, state);
                                 if (!status.ok())
                                   state.SkipWithError(std::string(status.message()).c_str());
                               })
      ->Unit(benchmark::kMillisecond)
      ->UseManualTime()
      ->Iterations(1);
}

absl::StatusOr<double> MedianSeconds(cudaStream_t stream,
                                     const std::function<absl::Status()>& work) {
  const EventPair events;
  return Median([&]() -> absl::StatusOr<double> {
    CAIRN_RETURN_IF_CUDA_FAILS(cudaEventRecord(events.start, stream));
    RETURN_IF_ERROR(work());
    CAIRN_RETURN_IF_CUDA_FAILS(cudaEventRecord(events.stop, stream));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaEventSynchronize(events.stop));
    float ms = 0;
    CAIRN_RETURN_IF_CUDA_FAILS(cudaEventElapsedTime(&ms, events.start, events.stop));
    return ms * 1e-3;
  });
}

absl::StatusOr<double> MedianWallSeconds(cudaStream_t stream,
                                         const std::function<absl::Status()>& work) {
  using Clock = std::chrono::steady_clock;
  return Median([&]() -> absl::StatusOr<double> {
    const Clock::time_point start = Clock::now();
    RETURN_IF_ERROR(work());
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
    return std::chrono::duration<double>(Clock::now() - start).count();
  });
}

void Report(benchmark::State& state, double seconds, const DeviceFigures& figures) {
  for (auto _ : state) state.SetIterationTime(seconds);
  const auto queries = static_cast<double>(figures.queries);
  if (figures.queries != 0) {
    state.counters["queries_per_s"] = queries / seconds;
    state.counters["ns_per_query"] = seconds * 1e9 / queries;
  }
  if (figures.entries != 0) {
    state.counters["bytes_per_key"] =
        static_cast<double>(figures.bytes) / static_cast<double>(figures.entries);
  }
  if (figures.rows != 0) {
    state.counters["rows_per_s"] = static_cast<double>(figures.rows) / seconds;
  }
  if (figures.moved_bytes != 0) {
    state.counters["bytes_per_s"] = static_cast<double>(figures.moved_bytes) / seconds;
  }
  if (figures.limit_seconds != 0) {
    state.counters["ratio_to_limit"] = figures.limit_seconds / seconds;
    if (figures.queries != 0) state.counters["limit_per_s"] = queries / figures.limit_seconds;
  }
}

}  // namespace cairn::bench
