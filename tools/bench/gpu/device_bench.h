#pragma once

#include <benchmark/benchmark.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/bench/registration.h"

// The frame of the benchmarks on a GPU: registration, time, and counters. device_data.h has entries
// and queries in device memory, and checks answers there.
//
//   absl::Status Lookup(benchmark::State& state, cudaStream_t stream) {
//     …  // get the entries, the queries and the index
//     absl::StatusOr<double> seconds = MedianSeconds(stream, [&] {
//       return index.Execute(DeviceBatch::FindFirst(keys, rows), stream);
//     });
//     if (!seconds.ok()) return seconds.status();
//     …  // check the rows
//     Report(state, *seconds, {.queries = n, .bytes = index.memory_bytes(), .entries = size});
//     return absl::OkStatus();
//   }
//   const RegisterInMain registered([] { RegisterDeviceBenchmark("PointLookup/…", Lookup); });
namespace cairn::bench {

// Enqueues work on the given stream, of device 0.
using DeviceBody = std::function<absl::Status(benchmark::State&, cudaStream_t)>;

// Registers a benchmark if there is a device. A status of its body that is not OK becomes the
// benchmark's error, so a structure that does not exist is reported as skipped, with the reason.
// The body runs once per repetition, and must call Report.
void RegisterDeviceBenchmark(const std::string& name, DeviceBody body);

// Each time is the median of kTimedRuns runs. At least kWarmUpRuns runs and kWarmUpSeconds precede
// them untimed, since an idle device raises its clocks only under load.
inline constexpr int kTimedRuns = 9;
inline constexpr int kWarmUpRuns = 2;
inline constexpr double kWarmUpSeconds = 0.01;

// The median seconds that the device takes for the work that `work` enqueues on `stream`, by CUDA
// events. `work` may use another input each time.
absl::StatusOr<double> MedianSeconds(cudaStream_t stream,
                                     const std::function<absl::Status()>& work);

// The same by the host's clock, from the call until `stream` is done: for work that itself waits.
absl::StatusOr<double> MedianWallSeconds(cudaStream_t stream,
                                         const std::function<absl::Status()>& work);

// The work that a benchmark did in the time that it reports, and the resulting counters. 0 if a
// counter does not apply.
struct DeviceFigures {
  uint64_t queries = 0;      // queries_per_s and ns_per_query
  uint64_t rows = 0;         // rows_per_s: sorted, indexed or copied
  uint64_t moved_bytes = 0;  // bytes_per_s: read and written
  // bytes_per_key: an index's bytes, divided by its number of entries.
  uint64_t bytes = 0;
  uint64_t entries = 0;
  // ratio_to_limit: the machine's limit for the same work, divided by the measured time.
  double limit_seconds = 0;
};
void Report(benchmark::State& state, double seconds, const DeviceFigures& figures);

}  // namespace cairn::bench
