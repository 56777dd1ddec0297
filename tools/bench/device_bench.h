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
//       return index.FindFirst(keys, rows, stream);
//     });
//     if (!seconds.ok()) return seconds.status();
//     …  // check the rows
//     Report(state, *seconds, {.queries = n, .bytes = index.memory_bytes(), .entries = size});
//     return absl::OkStatus();
//   }
//   const RegisterInMain registered([] { RegisterDeviceBenchmark("PointLookup/…", Lookup); });
namespace cairn::bench {

// Enqueues on the stream, of device 0, that it is given.
using DeviceBody = std::function<absl::Status(benchmark::State&, cudaStream_t)>;

// Registers a benchmark if there is a device. A status of its body that is not OK becomes the
// benchmark's error, so a structure that does not exist shows as skipped, with the reason. The body
// runs once for a repetition, and calls Report.
void RegisterDeviceBenchmark(const std::string& name, DeviceBody body);

// Each time is the median of this many runs, after the others, which are thrown away.
inline constexpr int kTimedRuns = 9;
inline constexpr int kWarmUpRuns = 2;

// The median seconds that the device takes for what `work` enqueues on `stream`, by CUDA events.
// `work` is called kWarmUpRuns + kTimedRuns times, and may take another input each time.
absl::StatusOr<double> MedianSeconds(cudaStream_t stream,
                                     const std::function<absl::Status()>& work);

// The same by the host's clock, from the call until `stream` is done: for work that waits itself.
absl::StatusOr<double> MedianWallSeconds(cudaStream_t stream,
                                         const std::function<absl::Status()>& work);

// What a benchmark did in the time it reports; zero where a figure has no meaning.
struct DeviceFigures {
  uint64_t queries = 0;      // counters queries_per_s, ns_per_query
  uint64_t bytes = 0;        // of the index, and …
  uint64_t entries = 0;      // … how many keys they hold: bytes_per_key
  double limit_seconds = 0;  // what the machine takes for such a work: ratio_to_limit, and …
  uint64_t moved_bytes = 0;  // read and written: bytes_per_s
};
void Report(benchmark::State& state, double seconds, const DeviceFigures& figures);

// Bytes that a device holds in its L2 cache, as it says.
size_t L2Bytes();

}  // namespace cairn::bench
