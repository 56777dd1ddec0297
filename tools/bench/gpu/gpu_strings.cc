// Strings/<data set>/<index>/<point|lower_bound>[_half_miss]/device: batches of 2^24 random strings
// in device memory over ten million keys, or 2^20 of the hard data sets; gpu:packed for those that
// it supports. point returns row ids, lower_bound positions. With half_miss every second key is
// absent: a key with its last byte changed. /host: from and to host memory, by the host's clock;
// with chunk:<k>, in chunks of 2^k. CAIRN_BENCH_STRINGS sets another number of keys. Counters:
// build_s, the seconds of the index's build; bytes_per_key, device memory including the keys.
#include <cuda_runtime.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "cairn/ordered_index.h"
#include "gpu/host/gpu_index.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "index/machine/status_macros.h"
#include "tools/bench/data.h"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/string_sets.h"

namespace cairn::bench::gpu_strings {
namespace {

constexpr size_t kQueries = size_t{1} << 24;

size_t KeyCount() {
  const char* count = std::getenv("CAIRN_BENCH_STRINGS");
  return count != nullptr ? std::strtoull(count, nullptr, 10) : 10'000'000;
}

// Row ids ascend with the position, as equal keys require.
RowId RowOf(size_t position) {
  return static_cast<RowId>(2 * position + 1);
}

// Concatenated queries, in a device's format, and the expected answers.
struct StringQueries {
  std::string heap;
  std::vector<uint32_t> offsets = {0};
  std::vector<std::string_view> keys;
  std::vector<Position> positions;  // lower bounds
  std::vector<RowId> row_ids;       // first rows, or kNoRow

  StringQueries(const std::vector<std::string_view>& run, bool half_miss) {
    Random random(kSeed + 1);
    positions.resize(kQueries);
    row_ids.resize(kQueries);
    for (size_t i = 0; i < kQueries; ++i) {
      const std::string_view key = run[random.Below(run.size())];
      heap += key;
      if (half_miss && i % 2 == 1 && !key.empty()) ++heap.back();
      offsets.push_back(static_cast<uint32_t>(heap.size()));
    }
    heap.resize((heap.size() + 7) / 4 * 4);
    for (size_t i = 0; i < kQueries; ++i) {
      keys.emplace_back(heap.data() + offsets[i], offsets[i + 1] - offsets[i]);
    }
    tbb::parallel_for(size_t{0}, kQueries, [&](size_t i) {
      const auto at = std::lower_bound(run.begin(), run.end(), keys[i]);
      positions[i] = static_cast<Position>(at - run.begin());
      row_ids[i] = at != run.end() && *at == keys[i] ? RowOf(positions[i]) : kNoRow;
    });
  }
};

// Keeps the last queries, since benchmarks of one data set follow each other.
const StringQueries& GetQueries(const std::string& data, bool half_miss) {
  static std::string made;
  static std::unique_ptr<StringQueries> queries[2];
  if (made != data) {
    made = data;
    for (auto& of_mix : queries) of_mix.reset();
  }
  auto& wanted = queries[half_miss ? 1 : 0];
  if (wanted == nullptr) {
    wanted = std::make_unique<StringQueries>(StringSet(data, KeyCount()).keys, half_miss);
  }
  return *wanted;
}

struct Subject {
  SortedRun run;
  std::unique_ptr<DeviceIndex> device;
  std::unique_ptr<OrderedIndex> host;
  double build_seconds = 0;
};

// Uses the default batch policy, except for the queries per chunk; 0 keeps its default.
absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeHostIndex(const std::string& factory,
                                                            const SortedRun& run, int log2_chunk) {
  ASSIGN_OR_RETURN(auto index, MakeDeviceIndex(factory, run));
  gpu::HostBatchPolicy policy;
  if (log2_chunk != 0) {
    policy.max_string_chunk = size_t{1} << log2_chunk;
    policy.min_chunk = std::min(policy.min_chunk, policy.max_string_chunk);
  }
  return std::make_unique<gpu::GpuIndex>(run, std::move(index), policy);
}

absl::StatusOr<const Subject*> GetSubject(const std::string& data, const std::string& factory,
                                          bool host, int log2_chunk) {
  static std::string made;
  static std::unique_ptr<Subject> subject;
  const std::string wanted = absl::StrFormat("%s/%s/%d/%d", data, factory, host, log2_chunk);
  if (made == wanted) return subject.get();
  made.clear();
  subject = std::make_unique<Subject>();
  const std::vector<std::string_view>& keys = StringSet(data, KeyCount()).keys;
  std::vector<RowId> rows(keys.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = RowOf(i);
  ASSIGN_OR_RETURN(subject->run, SortedRun::FromSorted(absl::MakeConstSpan(keys), rows));
  const auto start = std::chrono::steady_clock::now();
  if (host) {
    ASSIGN_OR_RETURN(subject->host, MakeHostIndex(factory, subject->run, log2_chunk));
  } else {
    ASSIGN_OR_RETURN(subject->device, MakeDeviceIndex(factory, subject->run));
  }
  subject->build_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  made = wanted;
  return subject.get();
}

struct StringLookup {
  std::string data, factory;
  bool rows;
  bool half_miss;
  bool host;
  int log2_chunk = 0;
};

// Internal if an answer is wrong.
absl::Status CheckAnswers(const StringLookup& lookup, const StringQueries& queries,
                          const std::vector<uint32_t>& answers) {
  const std::vector<uint32_t>& right = lookup.rows ? queries.row_ids : queries.positions;
  const auto wrong = std::mismatch(answers.begin(), answers.end(), right.begin());
  if (wrong.first == answers.end()) return absl::OkStatus();
  return absl::InternalError(absl::StrFormat("query %d: %d, not %d", wrong.first - answers.begin(),
                                             *wrong.first, *wrong.second));
}

absl::Status RunLookup(benchmark::State& state, const StringLookup& lookup, cudaStream_t stream) {
  const StringQueries& queries = GetQueries(lookup.data, lookup.half_miss);
  ASSIGN_OR_RETURN(const Subject* const subject,
                   GetSubject(lookup.data, lookup.factory, lookup.host, lookup.log2_chunk));
  std::vector<uint32_t> answers(kQueries);
  double seconds = 0;
  if (lookup.host) {
    const Batch batch = lookup.rows ? Batch::FindFirst(queries.keys, absl::MakeSpan(answers))
                                    : Batch::LowerBound(queries.keys, absl::MakeSpan(answers));
    ASSIGN_OR_RETURN(seconds,
                     MedianWallSeconds(stream, [&] { return subject->host->Execute(batch); }));
  } else {
    gpu::DeviceBuffer<char> heap;
    gpu::DeviceBuffer<uint32_t> offsets, out;
    RETURN_IF_ERROR(gpu::Upload(absl::MakeConstSpan(queries.heap), &heap, stream));
    RETURN_IF_ERROR(gpu::Upload(absl::MakeConstSpan(queries.offsets), &offsets, stream));
    RETURN_IF_ERROR(gpu::Resize(&out, kQueries, stream));
    const DeviceKeys keys(heap.data(), offsets.data(), kQueries);
    const DeviceBatch batch = lookup.rows ? DeviceBatch::FindFirst(keys, out.data())
                                          : DeviceBatch::LowerBound(keys, out.data());
    ASSIGN_OR_RETURN(
        seconds, MedianSeconds(stream, [&] { return subject->device->Execute(batch, stream); }));
    CAIRN_RETURN_IF_CUDA_FAILS(
        cudaMemcpyAsync(answers.data(), out.data(), out.bytes(), cudaMemcpyDeviceToHost, stream));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  }
  RETURN_IF_ERROR(CheckAnswers(lookup, queries, answers));
  const uint64_t bytes =
      lookup.host ? subject->host->memory_bytes() : subject->device->memory_bytes();
  Report(state, seconds, {.queries = kQueries, .bytes = bytes, .entries = subject->run.size()});
  state.counters["build_s"] = subject->build_seconds;
  return absl::OkStatus();
}

void Register(const StringLookup& lookup) {
  std::string name = absl::StrFormat(
      "Strings/%s/%s/%s%s/%s", lookup.data, lookup.factory, lookup.rows ? "point" : "lower_bound",
      lookup.half_miss ? "_half_miss" : "", lookup.host ? "host" : "device");
  if (lookup.log2_chunk != 0) absl::StrAppendFormat(&name, "/chunk:%d", lookup.log2_chunk);
  RegisterDeviceBenchmark(name, [=](benchmark::State& state, cudaStream_t stream) {
    return RunLookup(state, lookup, stream);
  });
}

void RegisterSet(const std::string& data) {
  for (const bool host : {false, true}) {
    for (const char* factory :
         {"gpu:partial_key", "gpu:partial_key,hash", "gpu:packed", "gpu:packed,directory=tree"}) {
      const std::string_view structure = factory;
      // These cannot be encoded in 128 bits.
      const bool is_long = data == "email" || data == "url" || data == "d64" || data == "d128" ||
                           data.starts_with("prefix") || data == "chains" || data == "sparse";
      if (is_long && structure.starts_with("gpu:packed")) continue;
      for (const bool rows : {true, false}) {
        if (!rows && structure == "gpu:partial_key,hash") continue;
        for (const bool half_miss : {false, true}) {
          Register({data, factory, rows, half_miss, host});
        }
      }
    }
  }
  for (int log2_chunk : {16, 17, 18, 20, 21}) {
    Register({data, "gpu:partial_key", true, false, true, log2_chunk});
  }
}

const RegisterInMain registered([] {
  for (std::string_view data : kStringSets) RegisterSet(std::string(data));
  for (std::string_view data : kHardStringSets) RegisterSet(std::string(data));
  for (std::string_view data : kShortStringSets) RegisterSet(std::string(data));
});

}  // namespace
}  // namespace cairn::bench::gpu_strings
