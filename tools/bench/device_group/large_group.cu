// DeviceGroup/large/<key>/n:33/members:<m>/<question>: one index of 2^33 entries, in shards over
// all devices of the host. A single device must hold all shards, which requires 120 GB of memory.
// Batches of 2^27 queries in device 0's memory: half are keys of the index, half one above;
// queries_per_s by the host's clock. Entries are made by a rule that can be inverted, so every
// answer is checked by arithmetic. Questions: find_first, lower_bound, count (of ranges
// with up to 2^32 entries).
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/device/group.h"
#include "cairn/query.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/stream.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"
#include "tools/bench/gpu/check_each.cuh"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/key_rule.cuh"

namespace cairn::bench::large_group {
namespace {

using gpu::DeviceBuffer;
using gpu::OnDevice;
using gpu::Stream;

constexpr uint64_t kLargeEntries = uint64_t{1} << 33;
constexpr uint64_t kLargeSeed = 33;
constexpr int kNoiseBits = 31;  // of a 64-bit key; the other bits are the counter

// Entry i of 2^33, in order of keys. 64-bit keys are distinct: i and noise below it. 32-bit keys
// have 0 to 3 entries each, two on average.
template <typename Key>
struct LargeRule {
  uint64_t entries_per_member;

  static constexpr bool kWide = sizeof(Key) == 8;

  __host__ __device__ Key KeyOf(uint64_t i) const {
    const uint64_t noise = DrawRandom(kLargeSeed, i);
    if constexpr (kWide) return i << kNoiseBits | noise >> (64 - kNoiseBits);
    const uint64_t key = (2 * i + (noise & 3)) / 4;
    return static_cast<Key>(key <= UINT32_MAX ? key : UINT32_MAX);
  }
  // The least i whose key is at least `key`; 2^33 if there is none.
  __host__ __device__ uint64_t RankOf(Key key) const {
    if constexpr (kWide) {
      const uint64_t i = key >> kNoiseBits;
      return KeyOf(i) >= key ? i : i + 1;
    }
    // 2 i + {0 … 3} reaches 4 key at the last odd i before 2 key, or there.
    const uint64_t i = 2 * uint64_t{key};
    return i > 0 && KeyOf(i - 1) == key ? i - 1 : i;
  }
  // Rows of equal keys ascend; those of distinct keys are unordered.
  __host__ __device__ RowId RowOf(uint64_t i) const {
    const uint64_t within = i % entries_per_member;
    if constexpr (!kWide) return static_cast<RowId>(within);
    return static_cast<RowId>(within * 0x9E3779B1u % entries_per_member);
  }
  __host__ __device__ GlobalRowId FirstRow(Key key) const {
    const uint64_t i = RankOf(key);
    if (i >= kLargeEntries || KeyOf(i) != key) return kNoGlobalRow;
    return MakeGlobalRowId(static_cast<uint32_t>(i / entries_per_member), RowOf(i));
  }
  // Query q: an entry's key, or one more.
  __host__ __device__ Key Query(uint64_t q) const {
    const Key key = KeyOf(DrawRandom(kLargeSeed + 1, q) % kLargeEntries);
    return q % 2 == 1 && key != static_cast<Key>(~Key{0}) ? key + 1 : key;
  }
  // The end of range q: up to 2^32 entries after its start.
  __host__ __device__ Key UpperOf(uint64_t q) const {
    const uint64_t i = RankOf(Query(q)) + (DrawRandom(kLargeSeed + 2, q) >> 32);
    return KeyOf(i < kLargeEntries ? i : kLargeEntries - 1);
  }
};

template <typename Key>
__global__ void FillEntries(LargeRule<Key> rule, uint64_t first, uint64_t count, Key* keys,
                            RowId* rows) {
  gpu::ForEachIndex(count, [=](size_t i) {
    keys[i] = rule.KeyOf(first + i);
    rows[i] = rule.RowOf(first + i);
  });
}

template <typename Key>
__global__ void FillQueries(LargeRule<Key> rule, uint64_t count, Key* lower, Key* upper) {
  gpu::ForEachIndex(count, [=](size_t i) {
    lower[i] = rule.Query(i);
    upper[i] = rule.UpperOf(i);
  });
}

template <typename Key>
absl::StatusOr<std::unique_ptr<const DeviceIndex>> MakeMember(const LargeRule<Key>& rule,
                                                              size_t member, int device) {
  const OnDevice on_device(device);
  ASSIGN_OR_RETURN(const Stream stream, Stream::Create());
  const uint64_t count = rule.entries_per_member;
  ASSIGN_OR_RETURN(const auto keys, DeviceBuffer<Key>::Allocate(count, stream.get()));
  ASSIGN_OR_RETURN(const auto rows, DeviceBuffer<RowId>::Allocate(count, stream.get()));
  FillEntries<<<gpu::SimpleBlocks(count), gpu::kSimpleThreads, 0, stream.get()>>>(
      rule, member * count, count, keys.data(), rows.data());
  CAIRN_RETURN_IF_LAUNCH_FAILED("FillEntries");
  ASSIGN_OR_RETURN(auto index, MakeDeviceIndex("gpu:auto", DeviceKeys(keys.data(), count),
                                               rows.data(), stream.get()));
  return std::unique_ptr<const DeviceIndex>(std::move(index));
}

std::shared_ptr<const DeviceGroup>& LastLargeGroup() {
  static std::shared_ptr<const DeviceGroup> last;
  return last;
}

// The group of `members` members, in blocks over the devices. Only the last group is kept, whatever
// its key type, since memory has no room for two.
template <typename Key>
absl::StatusOr<std::shared_ptr<const DeviceGroup>> GetLargeGroup(const LargeRule<Key>& rule,
                                                                 size_t members) {
  std::shared_ptr<const DeviceGroup>& last = LastLargeGroup();
  if (last != nullptr && last->kind() == kKindOf<Key> && last->members() == members) {
    return last;
  }
  last = nullptr;
  ASSIGN_OR_RETURN(const auto devices, ListDevices());
  std::vector<std::unique_ptr<const DeviceIndex>> indexes;
  for (size_t i = 0; i < members; ++i) {
    const int device = devices[i * devices.size() / members].ordinal;
    ASSIGN_OR_RETURN(auto index, MakeMember(rule, i, device));
    indexes.push_back(std::move(index));
  }
  ASSIGN_OR_RETURN(auto group, DeviceGroup::OfShards(std::move(indexes)));
  last = std::move(group);
  return last;
}

template <typename Key>
absl::Status AskLargeGroup(benchmark::State& state, size_t members, Operation operation,
                           cudaStream_t stream) {
  const LargeRule<Key> rule{kLargeEntries / members};
  ASSIGN_OR_RETURN(const auto group, GetLargeGroup(rule, members));
  ASSIGN_OR_RETURN(const auto lower, DeviceBuffer<Key>::Allocate(kDeviceQueries, stream));
  ASSIGN_OR_RETURN(const auto upper, DeviceBuffer<Key>::Allocate(kDeviceQueries, stream));
  ASSIGN_OR_RETURN(const auto answers, DeviceBuffer<uint64_t>::Allocate(kDeviceQueries, stream));
  FillQueries<<<gpu::SimpleBlocks(kDeviceQueries), gpu::kSimpleThreads, 0, stream>>>(
      rule, kDeviceQueries, lower.data(), upper.data());
  CAIRN_RETURN_IF_LAUNCH_FAILED("FillQueries");
  const DeviceKeys keys(lower.data(), kDeviceQueries);
  const DeviceRanges ranges{keys, DeviceKeys(upper.data(), kDeviceQueries)};
  const WideDeviceBatch batch =
      operation == Operation::kFindFirst    ? WideDeviceBatch::FindFirst(keys, answers.data())
      : operation == Operation::kLowerBound ? WideDeviceBatch::LowerBound(keys, answers.data())
                                            : WideDeviceBatch::Count(ranges, answers.data());
  ASSIGN_OR_RETURN(const double seconds,
                   MedianWallSeconds(stream, [&] { return group->Execute(batch, stream); }));
  RETURN_IF_ERROR(CheckEach(kDeviceQueries, stream,
                            [rule, operation, lower = lower.data(), upper = upper.data(),
                             answers = answers.data()] __device__(size_t i) {
                              if (operation == Operation::kFindFirst)
                                return answers[i] != rule.FirstRow(lower[i]);
                              const uint64_t begin = rule.RankOf(lower[i]);
                              if (operation == Operation::kLowerBound) return answers[i] != begin;
                              const uint64_t end = rule.RankOf(upper[i]);
                              return answers[i] != (end > begin ? end - begin : 0);
                            }));
  Report(state, seconds,
         {.queries = kDeviceQueries, .bytes = group->memory_bytes(), .entries = group->size()});
  return absl::OkStatus();
}

template <typename Key>
void RegisterLargeGroup(size_t members) {
  for (const auto& [operation, question] :
       {std::pair(Operation::kFindFirst, "find_first"),
        std::pair(Operation::kLowerBound, "lower_bound"), std::pair(Operation::kCount, "count")}) {
    RegisterDeviceBenchmark(
        absl::StrFormat("DeviceGroup/large/u%d/n:33/members:%d/%s", 8 * sizeof(Key), members,
                        question),
        [members, operation = operation](benchmark::State& state, cudaStream_t stream) {
          return AskLargeGroup<Key>(state, members, operation, stream);
        });
  }
}

// The largest number of members that leaves enough memory to build one of them after the others.
const RegisterInMain registered([] {
  RegisterLargeGroup<uint32_t>(4);
  RegisterLargeGroup<uint64_t>(16);
});

}  // namespace
}  // namespace cairn::bench::large_group
