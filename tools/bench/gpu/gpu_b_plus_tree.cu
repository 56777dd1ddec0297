// The experiments of Kaczmarek, "B+-Tree Optimized for GPGPU" (2012), on a current device, with all
// data in its memory. <f> is the fill of created pages, 0.5 or 1; u32 keys, distinct and uniform.
//
// Figure 3, creation:
//   BPlusTree/create/fill:<f>/n:<log2 n>             all pages, from a sorted run;
//   BPlusTree/insert_all/n:<log2 n>                  n entries one by one, 64 per call, into an
//                                                    empty tree;
//   BPlusTree/bulk_insert/added:<log2 m>/n:<log2 n>  m unsorted entries into n;
//   BPlusTree/insert/added:<m>/n:<log2 n>            m entries into n, one by one if they are few.
// (Build/gpu:btree is bulk creation with the sort.) create reports device time, the others wall
// time.
// Figure 4, search, with 1 key and with 10,000:
//   BPlusTree/search/<method>/queries:<q>/n:<log2 n>
// Figure 5, traversal: an arithmetic operation on every entry, whose result is written.
//   BPlusTree/traverse/fill:<f>, flat or in_order/n:<log2 n>
// See also PointLookup/gpu:btree,… for orders, fills and methods (gpu_point_lookup.cu).
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/btree/b_plus_tree.h"
#include "gpu/btree/b_plus_tree_visit.cuh"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_algorithms.cuh"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/device_data.h"
#include "tools/bench/gpu/gpu_point_lookup.h"
#include "tools/bench/gpu/launch_check.h"

namespace cairn::bench::gpu_b_plus_tree {
namespace {

using gpu::BPlusTree;
using gpu::BPlusTreeMethod;
using gpu::BPlusTreeOptions;
using gpu::DeviceBuffer;
using gpu::ForEachIndex;
using gpu::kSimpleThreads;
using gpu::SimpleBlocks;

using Key = uint32_t;
constexpr KeySet kSet = KeySet::kUniform;

absl::StatusOr<std::unique_ptr<BPlusTree<Key>>> MakeTree(const EntrySet<Key>& entries,
                                                         const BPlusTreeOptions& options,
                                                         cudaStream_t stream) {
  ASSIGN_OR_RETURN(auto run, gpu::SortToRun(entries.keys.data(), entries.row_ids.data(),
                                            entries.size(), stream));
  return gpu::BuildBPlusTree(std::move(run), options, stream);
}

absl::Status Create(benchmark::State& state, cudaStream_t stream, double fill, int log2_n) {
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(kSet, log2_n));
  const gpu::DeviceRun<Key>& run = entries->run;
  const BPlusTreeOptions options{.fill = fill};
  const BPlusTreeLayout layout(run.size(), options.order,
                               static_cast<int>(options.order * options.fill));
  uint64_t bytes = 0;
  const auto seconds = MedianSeconds(stream, [&]() -> absl::Status {
    const auto pages = gpu::CreatePages(run.keys.data(), run.row_ids.data(), layout, stream);
    if (pages.ok()) bytes = pages->bytes();
    return pages.status();
  });
  if (!seconds.ok()) return seconds.status();
  Report(state, *seconds,
         {.rows = run.size(),
          .moved_bytes = bytes + run.keys.bytes() + run.row_ids.bytes(),
          .bytes = bytes,
          .entries = run.size()});
  return absl::OkStatus();
}

// Fails unless the tree finds a row of each of the first entries' keys.
absl::Status CheckTree(const BPlusTree<Key>& tree, int log2_n, size_t size, cudaStream_t stream) {
  if (tree.size() != size) {
    return absl::InternalError(absl::StrFormat("%d entries, not %d", tree.size(), size));
  }
  constexpr size_t kQueries = size_t{1} << 16;
  ASSIGN_OR_RETURN(const auto queries, GetQueries<Key>(kSet, log2_n, QueryMix::kHits, kQueries));
  ASSIGN_OR_RETURN(const auto rows, DeviceBuffer<RowId>::Allocate(kQueries, stream));
  const DeviceKeys keys(queries->keys.data(), kQueries);
  RETURN_IF_ERROR(tree.Execute(DeviceBatch::FindFirst(keys, rows.data()), stream));
  return CheckFirstRows(*queries, 0, kQueries, rows.data(), stream);
}

absl::Status InsertAll(benchmark::State& state, cudaStream_t stream, int log2_n) {
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(kSet, log2_n));
  std::unique_ptr<BPlusTree<Key>> tree;
  const auto seconds = MedianWallSeconds(stream, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(tree, gpu::BuildBPlusTree(gpu::DeviceRun<Key>(), {}, stream));
    const EntrySet<Key>& e = *entries;
    for (size_t i = 0; i < e.size(); i += 64) {
      const auto done =
          tree->Insert(DeviceKeys(e.keys.data() + i, 64), e.row_ids.data() + i, stream);
      if (!done.ok()) return done.status();
    }
    return absl::OkStatus();
  });
  if (!seconds.ok()) return seconds.status();
  Report(state, *seconds, {.rows = entries->size()});
  return CheckTree(*tree, log2_n, entries->size(), stream);
}

// rows[i] = first + i.
__global__ void CountUp(RowId* rows, RowId first, size_t size) {
  ForEachIndex(size, [=](size_t i) { rows[i] = first + static_cast<RowId>(i); });
}

// Inserts the keys of the first `size` entries again, with new row ids, by the host's clock. Each
// run uses a new tree; if `linked`, one with earlier insertions.
template <typename Insert>
absl::Status InsertMore(benchmark::State& state, cudaStream_t stream, int log2_n, size_t size,
                        bool linked, Insert insert) {
  using Clock = std::chrono::steady_clock;
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(kSet, log2_n));
  const EntrySet<Key>& e = *entries;
  ASSIGN_OR_RETURN(const auto rows, DeviceBuffer<RowId>::Allocate(size + 1, stream));
  CountUp<<<SimpleBlocks(rows.size()), kSimpleThreads, 0, stream>>>(
      rows.data(), static_cast<RowId>(e.size()), rows.size());
  CAIRN_RETURN_IF_LAUNCH_FAILED("CountUp");
  std::array<double, kTimedRuns> seconds;
  std::unique_ptr<BPlusTree<Key>> tree;
  for (int run = -kWarmUpRuns; run < kTimedRuns; ++run) {
    tree = nullptr;
    ASSIGN_OR_RETURN(tree, MakeTree(e, {}, stream));
    if (linked) {
      const auto linking = tree->Insert(DeviceKeys(e.keys.data(), 1), rows.data() + size, stream);
      if (!linking.ok()) return linking.status();
    }
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
    const Clock::time_point start = Clock::now();
    RETURN_IF_ERROR(insert(*tree, e.keys.data(), rows.data(), size));
    if (run >= 0) {
      seconds[static_cast<size_t>(run)] =
          std::chrono::duration<double>(Clock::now() - start).count();
    }
  }
  std::nth_element(seconds.begin(), seconds.begin() + kTimedRuns / 2, seconds.end());
  Report(state, seconds[kTimedRuns / 2],
         {.rows = size, .bytes = tree->memory_bytes(), .entries = tree->size()});
  return CheckTree(*tree, log2_n, e.size() + size + (linked ? 1 : 0), stream);
}

absl::Status Search(benchmark::State& state, cudaStream_t stream, BPlusTreeMethod method,
                    size_t size, int log2_n) {
  ASSIGN_OR_RETURN(
      const auto index,
      GetIndex<Key>(absl::StrFormat("gpu:btree,method=%s", gpu::BPlusTreeMethodName(method)), kSet,
                    log2_n));
  ASSIGN_OR_RETURN(const auto queries, GetQueries<Key>(kSet, log2_n, QueryMix::kHits, size));
  ASSIGN_OR_RETURN(const auto rows, DeviceBuffer<RowId>::Allocate(size, stream));
  const DeviceBatch batch =
      DeviceBatch::FindFirst(DeviceKeys(queries->keys.data(), size), rows.data());
  ASSIGN_OR_RETURN(const auto seconds,
                   MedianSeconds(stream, [&] { return index->Execute(batch, stream); }));
  Report(state, seconds, {.queries = size});
  return CheckFirstRows(*queries, 0, size, rows.data(), stream);
}

// The operation of a traversal on an entry.
struct Combine {
  uint32_t* out;

  __device__ static uint32_t Of(Key key, RowId row_id) { return key * 3 + row_id; }
  __device__ void operator()(Position position, Key key, RowId row_id) const {
    out[position] = Of(key, row_id);
  }
};

__global__ void VisitColumns(const Key* keys, const RowId* row_ids, size_t size, Combine visit) {
  ForEachIndex(size / 4, [=](size_t i) {
    const uint4 k = __ldcs(reinterpret_cast<const uint4*>(keys) + i);
    const uint4 r = __ldcs(reinterpret_cast<const uint4*>(row_ids) + i);
    const auto position = static_cast<Position>(4 * i);
    visit(position, k.x, r.x);
    visit(position + 1, k.y, r.y);
    visit(position + 2, k.z, r.z);
    visit(position + 3, k.w, r.w);
  });
}

__global__ void CountWrong(const Key* keys, const RowId* row_ids, size_t size, const uint32_t* out,
                           uint32_t* wrong) {
  ForEachIndex(size, [=](size_t i) {
    if (out[i] != Combine::Of(keys[i], row_ids[i])) atomicAdd(wrong, 1u);
  });
}

enum class Traversal : uint8_t { kParallel, kFlat, kInOrder };

absl::Status Traverse(benchmark::State& state, cudaStream_t stream, Traversal traversal,
                      double fill, int log2_n) {
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(kSet, log2_n));
  const gpu::DeviceRun<Key>& run = entries->run;
  const size_t size = run.size();
  ASSIGN_OR_RETURN(auto tree, MakeTree(*entries, {.fill = fill}, stream));
  ASSIGN_OR_RETURN(const auto out, DeviceBuffer<uint32_t>::Allocate(size, stream));
  const Combine visit{out.data()};
  const auto seconds = MedianSeconds(stream, [&]() -> absl::Status {
    if (traversal == Traversal::kParallel) return ForEachEntry(*tree, visit, stream);
    if (traversal == Traversal::kInOrder) return ForEachEntryInOrder(*tree, visit, stream);
    VisitColumns<<<SimpleBlocks(size / 4), kSimpleThreads, 0, stream>>>(
        run.keys.data(), run.row_ids.data(), size, visit);
    CAIRN_RETURN_IF_LAUNCH_FAILED("VisitColumns");
    return absl::OkStatus();
  });
  if (!seconds.ok()) return seconds.status();
  Report(state, *seconds,
         {.rows = size, .moved_bytes = size * (sizeof(Key) + 2 * sizeof(uint32_t))});
  ASSIGN_OR_RETURN(const auto wrong, DeviceBuffer<uint32_t>::Allocate(1, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(wrong.data(), 0, sizeof(uint32_t), stream));
  CountWrong<<<SimpleBlocks(size), kSimpleThreads, 0, stream>>>(run.keys.data(), run.row_ids.data(),
                                                                size, out.data(), wrong.data());
  CAIRN_RETURN_IF_LAUNCH_FAILED("CountWrong");
  ASSIGN_OR_RETURN(const auto count, gpu::ReadBack(wrong.data(), stream));
  if (count == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrFormat("%d of %d entries are wrong", count, size));
}

void RegisterCreation(int log2_n) {
  for (double fill : {0.5, 1.0}) {
    RegisterDeviceBenchmark(absl::StrFormat("BPlusTree/create/fill:%g/n:%d", fill, log2_n),
                            [=](benchmark::State& state, cudaStream_t stream) {
                              return Create(state, stream, fill, log2_n);
                            });
  }
  if (log2_n <= 16) {
    RegisterDeviceBenchmark(absl::StrFormat("BPlusTree/insert_all/n:%d", log2_n),
                            [=](benchmark::State& state, cudaStream_t stream) {
                              return InsertAll(state, stream, log2_n);
                            });
  }
  for (int log2_added : {10, 16, 20, 24}) {
    if (log2_added > log2_n) continue;
    RegisterDeviceBenchmark(
        absl::StrFormat("BPlusTree/bulk_insert/added:%d/n:%d", log2_added, log2_n),
        [=](benchmark::State& state, cudaStream_t stream) {
          return InsertMore(state, stream, log2_n, size_t{1} << log2_added, false,
                            [=](auto& tree, const Key* keys, const RowId* rows, size_t size) {
                              return tree.BulkInsert(DeviceKeys(keys, size), rows,
                                                     EqualKeys::kKeepRows, stream);
                            });
        });
  }
  for (size_t added : {1, 64, 1000, 100000}) {
    if (added > size_t{1} << log2_n) continue;
    RegisterDeviceBenchmark(
        absl::StrFormat("BPlusTree/insert/added:%d/n:%d", added, log2_n),
        [=](benchmark::State& state, cudaStream_t stream) {
          return InsertMore(state, stream, log2_n, added, true,
                            [=](auto& tree, const Key* keys, const RowId* rows, size_t size) {
                              return tree.Insert(DeviceKeys(keys, size), rows, stream).status();
                            });
        });
  }
}

void RegisterSearches(int log2_n) {
  for (size_t size : {1, 10000}) {
    for (BPlusTreeMethod method : {BPlusTreeMethod::kBinary, BPlusTreeMethod::kCombined,
                                   BPlusTreeMethod::kBrute, BPlusTreeMethod::kMultiple}) {
      // 10,000 keys compared with all of 2^28 take seconds.
      if (method == BPlusTreeMethod::kBrute && size > 1 && log2_n > 24) continue;
      RegisterDeviceBenchmark(absl::StrFormat("BPlusTree/search/%s/queries:%d/n:%d",
                                              gpu::BPlusTreeMethodName(method), size, log2_n),
                              [=](benchmark::State& state, cudaStream_t stream) {
                                return Search(state, stream, method, size, log2_n);
                              });
    }
  }
}

void RegisterTraversals(int log2_n) {
  const auto add = [=](const char* name, Traversal traversal, double fill) {
    RegisterDeviceBenchmark(absl::StrFormat("BPlusTree/traverse/%s/n:%d", name, log2_n),
                            [=](benchmark::State& state, cudaStream_t stream) {
                              return Traverse(state, stream, traversal, fill, log2_n);
                            });
  };
  add("fill:0.5", Traversal::kParallel, 0.5);
  add("fill:1", Traversal::kParallel, 1);
  add("flat", Traversal::kFlat, 1);
  if (log2_n <= 20) add("in_order", Traversal::kInOrder, 1);
}

template <typename K>
void RegisterLookups(int log2_n) {
  for (const char* options : {"fill=0.5", "method=binary", "method=multiple"}) {
    RegisterDeviceLookup<K>({absl::StrFormat("gpu:btree,%s", options), log2_n});
  }
  if (log2_n < 24) return;
  for (int order : {8, 32, 64}) {
    RegisterDeviceLookup<K>({absl::StrFormat("gpu:btree,order=%d", order), log2_n});
  }
}

const RegisterInMain registered([] {
  for (int log2_n : {16, 20, 24, 28}) {
    RegisterCreation(log2_n);
    RegisterSearches(log2_n);
    RegisterTraversals(log2_n);
  }
  for (int log2_n : {16, 18, 20, 22, 24, 26, 28}) {
    RegisterLookups<uint32_t>(log2_n);
    RegisterLookups<uint64_t>(log2_n);
  }
});

}  // namespace
}  // namespace cairn::bench::gpu_b_plus_tree
