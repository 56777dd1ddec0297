// Where/<key>/n:<log2 n>/<predicate>:<share>/<count or rows>/<strategy>: rows of 2^n that satisfy a
// predicate over three columns of a DeviceIndexGroup, counted or listed in device memory. Keys are
// uniform, independent and distinct, except with `few`, where a column has sixteen keys.
//   and:<share>   three ranges of keys, each of <share> percent of the rows, that must all hold;
//   or:<share>    the same, but any of them must hold;
//   in:<share>    as `and`, but each of 100 ranges;
//   few:<share>   as `and`.
// queries_per_s counts the rows of the columns, rows_per_s the rows found. Time is the device's,
// from before the call until it is done, so it includes planning and launches. ratio_to_limit is to
// a bound of the same process: the smaller of the times to copy the bytes of the three codes of all
// rows and to read random lines of one column's codes, one line per row of a range. The time to
// copy the list of rows is added. Counts and rows are checked against the rule that makes the keys.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/device/index_group.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_algorithms.cuh"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/check_each.cuh"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/gpu_limit.h"
#include "tools/bench/gpu/launch_check.h"

namespace cairn::bench::gpu_where {
namespace {

using gpu::DeviceBuffer;

constexpr int kColumns = 3;
constexpr int kLists = 100;  // ranges of `in`

// A permutation of 32-bit numbers.
__host__ __device__ uint32_t Mixed(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7FEB352Du;
  x ^= x >> 15;
  x *= 0x846CA68Bu;
  return x ^ x >> 16;
}

// Computes a row's key in a column, and whether a range contains it.
struct WhereRule {
  bool few;
  bool wide;
  bool any;        // any of the columns' ranges must hold, not all
  uint32_t lists;  // ranges of a column
  uint32_t width;  // numbers per range
  uint32_t first[kColumns];

  // A key's number, before it is widened.
  __host__ __device__ uint32_t Number(uint32_t row, int column) const {
    constexpr uint32_t kOdd[] = {2654435761u, 2246822519u, 3266489917u};
    const uint32_t number = Mixed(row * kOdd[column] + 0x3C6EF372u * column);
    return few ? number >> 28 : number;
  }
  // Ranges repeat at equal distances over all numbers.
  __host__ __device__ uint32_t Distance() const { return few ? 16 : UINT32_MAX / lists; }
  __host__ __device__ bool Has(uint32_t number, int column) const {
    const uint32_t from = number - first[column];
    return number >= first[column] && from / Distance() < lists && from % Distance() < width;
  }
  __device__ bool Satisfies(uint32_t row) const {
    bool all = true, some = false;
    for (int column = 0; column < kColumns; ++column) {
      const bool has = Has(Number(row, column), column);
      all = all && has;
      some = some || has;
    }
    return any ? some : all;
  }
  uint64_t Key(uint64_t number) const { return wide ? number << 20 : number; }
};

template <typename Key>
__global__ void MakeKeys(WhereRule rule, int column, size_t size, Key* keys) {
  gpu::ForEachIndex(size, [=](size_t row) {
    const uint64_t number = rule.Number(static_cast<uint32_t>(row), column);
    keys[row] = static_cast<Key>(rule.wide ? number << 20 : number);
  });
}

__global__ void CountTruth(WhereRule rule, size_t size, unsigned long long* count) {
  gpu::ForEachIndex(size, [=](size_t row) {
    const unsigned active = __activemask();
    const unsigned found = __ballot_sync(active, rule.Satisfies(static_cast<uint32_t>(row)));
    if (found != 0 && threadIdx.x % 32 == __ffs(static_cast<int>(active)) - 1) {
      atomicAdd(count, static_cast<unsigned long long>(__popc(found)));
    }
  });
}

struct WhereCase {
  bool wide = false;
  int log2_n = 28;
  std::string predicate;
  double share = 1;  // percent
  bool rows = false;
  DeviceWhereStrategy strategy = DeviceWhereStrategy::kAuto;

  WhereRule rule() const {
    WhereRule rule = {};
    rule.few = predicate == "few";
    rule.wide = wide;
    rule.any = predicate == "or";
    rule.lists = predicate == "in" ? kLists : 1;
    const double numbers = rule.few ? 16 : 4294967296.0;
    rule.width = static_cast<uint32_t>(share / 100 * numbers / rule.lists);
    const double first[] = {0.20, 0.31, 0.07};
    for (int i = 0; i < kColumns; ++i) {
      rule.first[i] = static_cast<uint32_t>(first[i] * numbers / rule.lists);
    }
    return rule;
  }
  DevicePredicate where() const {
    const WhereRule of = rule();
    std::vector<DevicePredicate> columns;
    for (int i = 0; i < kColumns; ++i) {
      std::vector<DeviceKeyRange> ranges;
      for (uint64_t list = 0; list < of.lists; ++list) {
        const uint64_t first = of.first[i] + list * of.Distance();
        ranges.push_back({of.Key(first), of.Key(first + of.width - 1)});
      }
      columns.push_back(DevicePredicate::InRanges(i, std::move(ranges)));
    }
    return of.any ? DevicePredicate::Any(std::move(columns))
                  : DevicePredicate::All(std::move(columns));
  }
};

template <typename Key>
absl::StatusOr<std::shared_ptr<const DeviceIndexGroup>> MakeGroup(const WhereRule& rule,
                                                                  size_t size,
                                                                  cudaStream_t stream) {
  std::vector<DeviceBuffer<Key>> keys;
  std::vector<DeviceIndexGroup::Column> columns;
  for (int column = 0; column < kColumns; ++column) {
    ASSIGN_OR_RETURN(auto made, DeviceBuffer<Key>::Allocate(size, stream));
    MakeKeys<<<gpu::SimpleBlocks(size), gpu::kSimpleThreads, 0, stream>>>(rule, column, size,
                                                                          made.data());
    CAIRN_RETURN_IF_LAUNCH_FAILED("MakeKeys");
    columns.push_back({DeviceKeys(made.data(), size)});
    keys.push_back(std::move(made));
  }
  return DeviceIndexGroup::Create(size, columns, stream);
}

// The group of the last case, if it has the same columns.
absl::StatusOr<std::shared_ptr<const DeviceIndexGroup>> GetGroup(const WhereCase& of,
                                                                 cudaStream_t stream) {
  static std::shared_ptr<const DeviceIndexGroup> kept;
  static std::string kept_name;
  const WhereRule rule = of.rule();
  const std::string name = absl::StrFormat("%d %d %d", rule.few, rule.wide, of.log2_n);
  if (kept_name == name) return kept;
  kept_name.clear();
  kept.reset();
  const size_t size = size_t{1} << of.log2_n;
  if (of.wide) {
    ASSIGN_OR_RETURN(kept, MakeGroup<uint64_t>(rule, size, stream));
  } else {
    ASSIGN_OR_RETURN(kept, MakeGroup<uint32_t>(rule, size, stream));
  }
  kept_name = name;
  return kept;
}

absl::StatusOr<double> LimitSeconds(const WhereCase& of, uint64_t found, cudaStream_t stream) {
  const double rows = static_cast<double>(uint64_t{1} << of.log2_n);
  ASSIGN_OR_RETURN(const double copied, CopySeconds(stream));
  const double bytes_per_s = 2.0 * kCopiedBytes / copied;
  double seconds = kColumns * rows / bytes_per_s;
  if (of.share <= 5) {
    ASSIGN_OR_RETURN(const double random,
                     RandomReadSeconds(static_cast<size_t>(rows),
                                       static_cast<size_t>(rows * of.share / 100), stream));
    seconds = std::min(seconds, random);
  }
  return seconds + (of.rows ? 4.0 * static_cast<double>(found) / bytes_per_s : 0);
}

absl::Status Where(benchmark::State& state, cudaStream_t stream, const WhereCase& of) {
  ASSIGN_OR_RETURN(const auto group, GetGroup(of, stream));
  const size_t size = size_t{1} << of.log2_n;
  const WhereRule rule = of.rule();
  ASSIGN_OR_RETURN(const auto counts, DeviceBuffer<unsigned long long>::Allocate(2, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(counts.data(), 0, counts.bytes(), stream));
  CountTruth<<<gpu::SimpleBlocks(size), gpu::kSimpleThreads, 0, stream>>>(rule, size,
                                                                          counts.data());
  CAIRN_RETURN_IF_LAUNCH_FAILED("CountTruth");
  ASSIGN_OR_RETURN(const uint64_t truth, gpu::ReadBack(counts.data(), stream));
  auto* const total = reinterpret_cast<uint64_t*>(counts.data() + 1);
  ASSIGN_OR_RETURN(const auto rows, DeviceBuffer<RowId>::Allocate(of.rows ? truth : 0, stream));

  const DevicePredicate where = of.where();
  ASSIGN_OR_RETURN(const double seconds, MedianSeconds(stream, [&] {
                     return of.rows
                                ? group->Find(where, rows.data(), truth, total, stream, of.strategy)
                                : group->Count(where, total, stream, of.strategy);
                   }));
  ASSIGN_OR_RETURN(const double limit, LimitSeconds(of, truth, stream));
  Report(state, seconds,
         {.queries = size,
          .rows = truth,
          .bytes = group->memory_bytes() / kColumns,
          .entries = size,
          .limit_seconds = limit});
  ASSIGN_OR_RETURN(const DeviceWherePlan plan, group->Explain(where, !of.rows, of.strategy));
  state.SetLabel(std::string(DeviceWhereStrategyName(plan.strategy)));
  ASSIGN_OR_RETURN(const uint64_t found, gpu::ReadBack(total, stream));
  if (found != truth) {
    return absl::InternalError(absl::StrFormat("%d rows, but there are %d", found, truth));
  }
  // The rows are complete if each satisfies the predicate and no two are equal, since their number
  // is right.
  if (!of.rows) return absl::OkStatus();
  return CheckEach(truth, stream, [rule, rows = rows.data()] __device__(uint64_t i) {
    return !rule.Satisfies(rows[i]) || (i > 0 && rows[i] <= rows[i - 1]);
  });
}

void Register(const WhereCase& of) {
  RegisterDeviceBenchmark(
      absl::StrFormat("Where/u%d/n:%d/%s:%g/%s/%s", of.wide ? 64 : 32, of.log2_n, of.predicate,
                      of.share, of.rows ? "rows" : "count", DeviceWhereStrategyName(of.strategy)),
      [of](benchmark::State& state, cudaStream_t stream) { return Where(state, stream, of); });
}

const RegisterInMain registered([] {
  using Strategy = DeviceWhereStrategy;
  for (const int log2_n : {24, 28}) {
    for (const bool wide : {false, true}) {
      for (const char* predicate : {"and", "or", "in", "few"}) {
        const bool few = predicate[0] == 'f';
        for (const double share : {0.1, 1.0, 3.0, 10.0, 25.0, 50.0}) {
          if (few && share < 10) continue;
          for (const bool rows : {false, true}) {
            for (const Strategy strategy :
                 {Strategy::kAuto, Strategy::kGather, Strategy::kBitmap, Strategy::kScan}) {
              Register({wide, log2_n, predicate, share, rows, strategy});
            }
          }
        }
      }
    }
  }
});

}  // namespace
}  // namespace cairn::bench::gpu_where
