// DeviceGroup/<way>/<key>/n:<k>/devices:<ordinals>/<memory>: first rows of random keys of the
// index, by a group over the listed devices (cairn/device/group.h); a device may be listed twice.
// <memory> is
//   device  one batch of 2^27 keys in the memory of each listed device, all at once;
//   first   the same batches, all in the memory of the first device;
//   host    one batch of 2^24 keys in pinned host memory.
// queries_per_s is the total, by the host's clock. <way> is
//   alone       one index, without a group: the baseline;
//   replicated  2^k entries, on every member; each batch is split over all;
//   unsplit     the same, but each device's batch is answered by its own replica;
//   sharded     2^k entries per member; rows are (shard, row), of 64 bits.
// The device lists are 0 and 0,0,0,0, and, if there are enough devices, 0,1 and 0,1,2,3 and all.
// k is CAIRN_BENCH_LOG2_N, 26 by default; for batches in host memory k is 24.
//
// DeviceGroupParts/<key>/shards:<s>/<part>: the work of the batch's own device for 2^27 queries,
// except searching, in a group's chunks. <part> is partition (queries to their shards), return
// (answers of 32 bits back to the caller's order) or return_wide (rows of 64 bits).
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cairn/device/group.h"
#include "gpu/group/query_partition.h"
#include "gpu/group/shard_cuts.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/pinned_memory.h"
#include "gpu/runtime/stream.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/check_each.cuh"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/device_data.h"

namespace cairn::bench::device_group {
namespace {

using gpu::DeviceBuffer;
using gpu::OnDevice;
using gpu::Stream;

constexpr size_t kGroupHostQueries = size_t{1} << 24;
constexpr int kGroupHostLog2 = 24;

enum class GroupWay : uint8_t { kAlone, kReplicated, kUnsplit, kSharded };

struct GroupCase {
  GroupWay way;
  int log2_n;
  std::vector<int> devices;
  int log2_chunk = 0;       // 0: the group's default
  bool only_first = false;  // of the devices has a batch
};

// Entries [first, first + count) of a run in device 0's memory, as an index on another.
template <typename Key>
absl::StatusOr<std::unique_ptr<const DeviceIndex>> IndexOn(int device, const EntrySet<Key>& entries,
                                                           size_t first, size_t count) {
  const OnDevice on_device(device);
  ASSIGN_OR_RETURN(const Stream stream, Stream::Create());
  const Key* keys = entries.run.keys.data() + first;
  const RowId* row_ids = entries.run.row_ids.data() + first;
  DeviceBuffer<Key> own_keys;
  DeviceBuffer<RowId> own_rows;
  if (device != 0) {
    RETURN_IF_ERROR(gpu::Resize(&own_keys, count, stream.get()));
    RETURN_IF_ERROR(gpu::Resize(&own_rows, count, stream.get()));
    CAIRN_RETURN_IF_CUDA_FAILS(
        cudaMemcpyPeerAsync(own_keys.data(), device, keys, 0, count * sizeof(Key), stream.get()));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyPeerAsync(own_rows.data(), device, row_ids, 0,
                                                   count * sizeof(RowId), stream.get()));
    keys = own_keys.data();
    row_ids = own_rows.data();
  }
  ASSIGN_OR_RETURN(auto index,
                   MakeDeviceIndex("gpu:auto", DeviceKeys(keys, count), row_ids, stream.get()));
  return std::unique_ptr<const DeviceIndex>(std::move(index));
}

int Log2OfAll(const GroupCase& group) {
  int log2_n = group.log2_n;
  while (group.way == GroupWay::kSharded &&
         size_t{1} << (log2_n - group.log2_n) < group.devices.size()) {
    ++log2_n;
  }
  return log2_n;
}

template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceGroup>> MakeGroup(const GroupCase& group) {
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(KeySet::kUniform, Log2OfAll(group)));
  std::vector<std::unique_ptr<const DeviceIndex>> indexes;
  const size_t shards = group.way == GroupWay::kSharded ? group.devices.size() : 1;
  for (size_t i = 0; i < group.devices.size(); ++i) {
    const size_t shard = group.way == GroupWay::kSharded ? i : 0;
    const size_t first = gpu::CutOf(entries->size(), shards, shard, 1);
    const size_t count = gpu::CutOf(entries->size(), shards, shard + 1, 1) - first;
    ASSIGN_OR_RETURN(auto index, IndexOn(group.devices[i], *entries, first, count));
    indexes.push_back(std::move(index));
  }
  DeviceGroupOptions options;
  if (group.way == GroupWay::kUnsplit) options.min_split = SIZE_MAX;
  if (group.log2_chunk > 0) options.chunk_queries = size_t{1} << group.log2_chunk;
  return group.way == GroupWay::kSharded ? DeviceGroup::OfShards(std::move(indexes), options)
                                         : DeviceGroup::OfReplicas(std::move(indexes), options);
}

// The buffers of one device's batch.
template <typename Key>
struct OneBatch {
  int device = 0;
  std::unique_ptr<Stream> stream;
  DeviceBuffer<Key> own_keys;
  const Key* keys = nullptr;
  DeviceBuffer<GlobalRowId> wide;
  DeviceBuffer<RowId> rows;
  absl::Status status;
};

template <typename Key>
absl::Status Prepare(int device, const QuerySet<Key>& queries, bool wide, OneBatch<Key>* batch) {
  const OnDevice on_device(device);
  batch->device = device;
  ASSIGN_OR_RETURN(Stream stream, Stream::Create());
  batch->stream = std::make_unique<Stream>(std::move(stream));
  batch->keys = queries.keys.data();
  if (device != 0) {
    RETURN_IF_ERROR(gpu::Resize(&batch->own_keys, queries.size(), nullptr));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyPeer(batch->own_keys.data(), device, batch->keys, 0,
                                              queries.size() * sizeof(Key)));
    batch->keys = batch->own_keys.data();
  }
  return wide ? gpu::Resize(&batch->wide, queries.size(), nullptr)
              : gpu::Resize(&batch->rows, queries.size(), nullptr);
}

template <typename Key>
absl::Status AskBatch(const DeviceGroup& group, const OneBatch<Key>& batch, size_t size) {
  const DeviceKeys keys(batch.keys, size);
  if (batch.wide.data() != nullptr) {
    return group.Execute(WideDeviceBatch::FindFirst(keys, batch.wide.data()), batch.stream->get());
  }
  ASSIGN_OR_RETURN(const DeviceIndex* const index, group.On(batch.device));
  return index->Execute(DeviceBatch::FindFirst(keys, batch.rows.data()), batch.stream->get());
}

// Whether rows within shards are those from which the queries were made.
template <typename Key>
absl::Status CheckWideRows(const QuerySet<Key>& queries, const OneBatch<Key>& batch) {
  if (batch.device != 0) return absl::OkStatus();  // the expected rows are in device 0's memory
  const GlobalRowId* const wide = batch.wide.data();
  const RowId* const expected = queries.row_ids.data();
  return CheckEach(queries.size(), batch.stream->get(),
                   [=] __device__(size_t i) { return RowInShard(wide[i]) != expected[i]; });
}

template <typename Key>
absl::Status AskInDeviceMemory(benchmark::State& state, const GroupCase& parameters) {
  const bool wide = parameters.way == GroupWay::kSharded;
  ASSIGN_OR_RETURN(const auto group, MakeGroup<Key>(parameters));
  ASSIGN_OR_RETURN(const auto queries,
                   GetQueries<Key>(KeySet::kUniform, Log2OfAll(parameters), QueryMix::kHits));
  std::vector<int> devices = parameters.devices;
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  if (parameters.only_first) devices.resize(1);
  std::vector<OneBatch<Key>> batches(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    RETURN_IF_ERROR(Prepare(devices[i], *queries, wide, &batches[i]));
  }
  const auto ask_all = [&]() -> absl::Status {
    std::vector<std::thread> threads;
    for (OneBatch<Key>& batch : batches) {
      threads.emplace_back([&] { batch.status = AskBatch(*group, batch, queries->size()); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const OneBatch<Key>& batch : batches) RETURN_IF_ERROR(batch.status);
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(const double seconds, MedianWallSeconds(batches[0].stream->get(), ask_all));
  RETURN_IF_ERROR(wide ? CheckWideRows(*queries, batches[0])
                       : CheckFirstRows(*queries, 0, queries->size(), batches[0].rows.data(),
                                        batches[0].stream->get()));
  Report(state, seconds,
         {.queries = batches.size() * queries->size(),
          .bytes = group->memory_bytes(),
          .entries = group->size()});
  return absl::OkStatus();
}

template <typename Key>
absl::Status AskAlone(benchmark::State& state, int log2_n, cudaStream_t stream) {
  ASSIGN_OR_RETURN(const auto index, GetIndex<Key>("gpu:auto", KeySet::kUniform, log2_n));
  ASSIGN_OR_RETURN(const auto queries, GetQueries<Key>(KeySet::kUniform, log2_n, QueryMix::kHits));
  ASSIGN_OR_RETURN(const auto rows, DeviceBuffer<RowId>::Allocate(queries->size(), stream));
  const auto ask = [&] {
    return index->Execute(
        DeviceBatch::FindFirst(DeviceKeys(queries->keys.data(), queries->size()), rows.data()),
        stream);
  };
  ASSIGN_OR_RETURN(const double seconds, MedianWallSeconds(stream, ask));
  Report(state, seconds,
         {.queries = queries->size(), .bytes = index->memory_bytes(), .entries = index->size()});
  return CheckFirstRows(*queries, 0, queries->size(), rows.data(), stream);
}

// The entries as a run in host memory.
template <typename Key>
absl::StatusOr<SortedRun> RunOnHost(const EntrySet<Key>& entries) {
  std::vector<Key> keys(entries.size());
  std::vector<RowId> row_ids(entries.size());
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpy(keys.data(), entries.run.keys.data(),
                                        entries.run.keys.bytes(), cudaMemcpyDeviceToHost));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpy(row_ids.data(), entries.run.row_ids.data(),
                                        entries.run.row_ids.bytes(), cudaMemcpyDeviceToHost));
  return SortedRun::FromSorted(keys, row_ids);
}

template <typename Key>
absl::Status AskOnHost(benchmark::State& state, const GroupCase& parameters, cudaStream_t stream) {
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(KeySet::kUniform, kGroupHostLog2));
  ASSIGN_OR_RETURN(SortedRun run, RunOnHost(*entries));
  ASSIGN_OR_RETURN(const auto group,
                   parameters.way == GroupWay::kSharded
                       ? DeviceGroup::Shard("gpu:auto", std::move(run), parameters.devices)
                       : DeviceGroup::Replicate("gpu:auto", std::move(run), parameters.devices));
  ASSIGN_OR_RETURN(const auto queries, GetQueries<Key>(KeySet::kUniform, kGroupHostLog2,
                                                       QueryMix::kHits, kGroupHostQueries));
  ASSIGN_OR_RETURN(const auto keys, gpu::PinnedMemory::Allocate(kGroupHostQueries * sizeof(Key)));
  ASSIGN_OR_RETURN(const auto rows, gpu::PinnedMemory::Allocate(kGroupHostQueries * sizeof(RowId)));
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemcpy(keys.data(), queries->keys.data(), queries->keys.bytes(), cudaMemcpyDeviceToHost));
  const absl::Span<const Key> asked(reinterpret_cast<const Key*>(keys.data()), kGroupHostQueries);
  const absl::Span<RowId> found(reinterpret_cast<RowId*>(rows.data()), kGroupHostQueries);
  ASSIGN_OR_RETURN(const double seconds, MedianWallSeconds(stream, [&] {
                     return group->Execute(Batch::FindFirst(asked, found));
                   }));
  std::vector<RowId> expected(kGroupHostQueries);
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpy(expected.data(), queries->row_ids.data(),
                                        queries->row_ids.bytes(), cudaMemcpyDeviceToHost));
  if (found != absl::MakeConstSpan(expected)) return absl::InternalError("wrong row ids");
  Report(state, seconds,
         {.queries = kGroupHostQueries, .bytes = group->memory_bytes(), .entries = group->size()});
  return absl::OkStatus();
}

enum class GroupPart : uint8_t { kPartition, kReturn, kReturnWide };

template <typename Key>
absl::Status TimePart(benchmark::State& state, int shards, int log2_chunk, GroupPart part,
                      cudaStream_t stream) {
  const size_t chunk_size = size_t{1} << log2_chunk;
  const uint32_t tiles = gpu::TilesOf(static_cast<uint32_t>(chunk_size));
  ASSIGN_OR_RETURN(const auto queries, GetQueries<Key>(KeySet::kUniform, 26, QueryMix::kHits));
  gpu::ShardBounds<Key> bounds;
  for (int i = 1; i < shards; ++i) {
    bounds.bounds[bounds.size++] = static_cast<Key>(~Key{0} / static_cast<Key>(shards) * i);
  }
  const size_t chunks = queries->size() / chunk_size;
  ASSIGN_OR_RETURN(const auto keys, DeviceBuffer<Key>::Allocate(chunk_size * shards, stream));
  ASSIGN_OR_RETURN(const auto answers,
                   DeviceBuffer<uint32_t>::Allocate(chunk_size * shards, stream));
  ASSIGN_OR_RETURN(const auto places, DeviceBuffer<uint16_t>::Allocate(queries->size(), stream));
  ASSIGN_OR_RETURN(const auto parts,
                   DeviceBuffer<gpu::TilePart>::Allocate(chunks * tiles * shards, stream));
  ASSIGN_OR_RETURN(const auto counts, DeviceBuffer<uint32_t>::Allocate(shards, stream));
  ASSIGN_OR_RETURN(const auto out, DeviceBuffer<uint64_t>::Allocate(queries->size(), stream));
  gpu::ShardArrays keys_of, answers_of;
  for (int s = 0; s < shards; ++s) {
    keys_of.of[s] = keys.data() + chunk_size * s;
    answers_of.of[s] = answers.data() + chunk_size * s;
  }
  const auto notes = [&](size_t chunk) {
    return gpu::PartitionNotes{places.data() + chunk * chunk_size,
                               parts.data() + chunk * tiles * shards, counts.data()};
  };
  const auto partition = [&]() -> absl::Status {
    for (size_t chunk = 0; chunk < chunks; ++chunk) {
      CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(counts.data(), 0, counts.bytes(), stream));
      RETURN_IF_ERROR(gpu::EnqueuePartition(queries->keys.data() + chunk * chunk_size,
                                            static_cast<uint32_t>(chunk_size), bounds, shards,
                                            keys_of, notes(chunk), stream));
    }
    return absl::OkStatus();
  };
  const auto bring_back = [&]() -> absl::Status {
    const bool wide = part == GroupPart::kReturnWide;
    for (size_t chunk = 0; chunk < chunks; ++chunk) {
      const gpu::AnswerColumn to =
          gpu::From({out.data(), wide}, Operation::kFindFirst, chunk * chunk_size);
      RETURN_IF_ERROR(gpu::EnqueueReturn(Operation::kFindFirst, answers_of,
                                         static_cast<uint32_t>(chunk_size), shards, {},
                                         notes(chunk), to, stream));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(partition());
  ASSIGN_OR_RETURN(const double seconds, part == GroupPart::kPartition
                                             ? MedianSeconds(stream, partition)
                                             : MedianSeconds(stream, bring_back));
  const size_t bytes = part == GroupPart::kPartition ? 2 * sizeof(Key) + sizeof(uint16_t)
                       : part == GroupPart::kReturn  ? 10
                                                     : 14;
  Report(state, seconds, {.queries = queries->size(), .moved_bytes = queries->size() * bytes});
  return absl::OkStatus();
}

template <typename Key>
void RegisterGroup(const GroupCase& group) {
  const char* const way = group.way == GroupWay::kAlone        ? "alone"
                          : group.way == GroupWay::kReplicated ? "replicated"
                          : group.way == GroupWay::kUnsplit    ? "unsplit"
                                                               : "sharded";
  const auto named = [&](int log2_n, const char* memory) {
    std::string name =
        absl::StrFormat("DeviceGroup/%s/u%d/n:%d/devices:%s/%s", way, 8 * sizeof(Key), log2_n,
                        absl::StrJoin(group.devices, ","), memory);
    if (group.log2_chunk > 0) absl::StrAppendFormat(&name, "/chunk:%d", group.log2_chunk);
    return name;
  };
  RegisterDeviceBenchmark(named(group.log2_n, group.only_first ? "first" : "device"),
                          [group](benchmark::State& state, cudaStream_t stream) {
                            return group.way == GroupWay::kAlone
                                       ? AskAlone<Key>(state, group.log2_n, stream)
                                       : AskInDeviceMemory<Key>(state, group);
                          });
  const bool only_device = group.way == GroupWay::kAlone || group.way == GroupWay::kUnsplit;
  if (only_device || group.log2_chunk > 0 || group.only_first) return;
  RegisterDeviceBenchmark(named(kGroupHostLog2, "host"),
                          [group](benchmark::State& state, cudaStream_t stream) {
                            return AskOnHost<Key>(state, group, stream);
                          });
}

template <typename Key>
void RegisterParts(int shards, int log2_chunk) {
  for (const auto& [part, name] :
       {std::pair(GroupPart::kPartition, "partition"), std::pair(GroupPart::kReturn, "return"),
        std::pair(GroupPart::kReturnWide, "return_wide")}) {
    RegisterDeviceBenchmark(absl::StrFormat("DeviceGroupParts/u%d/shards:%d/chunk:%d/%s",
                                            8 * sizeof(Key), shards, log2_chunk, name),
                            [=, part = part](benchmark::State& state, cudaStream_t stream) {
                              return TimePart<Key>(state, shards, log2_chunk, part, stream);
                            });
  }
}

const RegisterInMain registered([] {
  const auto devices = ListDevices();
  if (!devices.ok()) return;
  const char* const n = std::getenv("CAIRN_BENCH_LOG2_N");
  const int log2_n = n != nullptr ? std::atoi(n) : 26;
  std::vector<std::vector<int>> lists = {{0}, {0, 0, 0, 0}};
  for (const size_t count : {size_t{2}, size_t{4}, devices->size()}) {
    if (count < 2 || count > devices->size()) continue;
    std::vector<int> list;
    for (size_t i = 0; i < count; ++i) list.push_back((*devices)[i].ordinal);
    if (list != lists.back()) lists.push_back(std::move(list));
  }
  for (const int log2_chunk : {23, 25, 27}) {
    for (const int shards : {2, 4, 8}) {
      RegisterParts<uint32_t>(shards, log2_chunk);
      RegisterParts<uint64_t>(shards, log2_chunk);
    }
  }
  const auto add = [](const GroupCase& group) {
    RegisterGroup<uint32_t>(group);
    RegisterGroup<uint64_t>(group);
  };
  add({GroupWay::kAlone, log2_n, {0}});
  for (const auto& list : lists) {
    add({GroupWay::kUnsplit, log2_n, list});
    for (const GroupWay way : {GroupWay::kReplicated, GroupWay::kSharded}) {
      for (const int chunk : {0, 21, 22, 23, 24, 25, 26, 27}) add({way, log2_n, list, chunk});
      if (list.front() == list.back()) continue;
      for (const int chunk : {0, 23, 24, 25, 26}) add({way, log2_n, list, chunk, true});
    }
  }
});

}  // namespace
}  // namespace cairn::bench::device_group
