#pragma once

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cub/block/block_radix_sort.cuh>
#include <limits>
#include <type_traits>

#include "absl/status/status.h"
#include "cairn/device.h"
#include "cairn/types.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"
#include "gpu/runtime/shared_memory.h"
#include "index/machine/status_macros.h"

// The kernel that executes a batch of point queries with any structure that one thread, or a group
// of lanes, can search. A structure provides a searcher, a plain struct that the kernel takes by
// value:
//
//   template <typename Key> struct XSearcher {
//     using DataType = Key;
//     using Slot = uint32_t;  // a position in the structure
//     // Number of lanes, a power of two up to 32, that execute a query together.
//     static constexpr int kLanes = 1;
//     // Bytes of shared memory that Pin fills, called by the whole block; 0: none.
//     __host__ __device__ size_t pinned_bytes() const;
//     __device__ void Pin(void* shared) const;
//     // The slots of the lower bounds of several queries, whose loads should be in flight
//     // together: the loop over levels is outside, the one over queries inside. Called by whole
//     // warps; the lanes of a group have the same queries and all get the slots. `pinned` was
//     // filled by Pin, or is null.
//     template <int kQueries>
//     __device__ void LowerBound(const Key (&queries)[kQueries], Slot (&slots)[kQueries],
//                                const void* pinned) const;
//     __device__ Position position(Slot) const;  // rank among all entries; their number at the end
//     __device__ bool Equals(Slot, Key) const;   // whether the slot has an entry with this key
//     __device__ RowId row_id(Slot) const;       // requires Equals
//     // Optional, for searchers that read row ids together with keys: the first rows, or kNoRow.
//     template <int kQueries>
//     __device__ void FirstRows(const Key (&queries)[kQueries], RowId (&row_ids)[kQueries],
//                               const void* pinned) const;
//   };
//
// The optimizations are those of Henneberg and Schuhknecht, "Is Binary Search Really All You Need?"
// (2025), section 4: scheduling and block shapes (4.1), pinning (4.2), reordering (4.3).

namespace cairn::gpu {

// The data that stays in shared memory while a block searches (section 4.2). The searcher
// determines how much fits. Without pinning, LowerBound is compiled for a null `pinned`.
enum class Pinning : uint8_t {
  kNone,
  kSteps,  // the data that the first steps read
  kFull,   // in addition, part of the data that the next step reads
};

// How a block orders the queries that it has in registers (section 4.3).
enum class Reorder : uint8_t {
  kNone,     // in the caller's order
  kLookups,  // by key; results are scattered to their positions
  kDouble,   // by key; results are restored to the caller's order in shared memory
};

// Compile-time parameters: threads per block, a multiple of 32; queries per thread, kept in
// registers (at most 65536 per block); and how many queries of a thread, or of a group if kLanes >
// 1, are in flight at once.
template <int kThreadsOfBlock, int kQueriesOfThread = 1, int kAtOnce = kQueriesOfThread,
          Reorder kOrder = Reorder::kNone, Pinning kPins = Pinning::kNone>
struct SearchPolicy {
  static constexpr int kThreads = kThreadsOfBlock;
  static constexpr int kQueries = kQueriesOfThread;
  static constexpr int kInFlight = kAtOnce;
  static constexpr Reorder kReorder = kOrder;
  static constexpr Pinning kPinning = kPins;
};

// Static scheduling (section 4.1): this many blocks per multiprocessor share the batch. 0: dynamic
// scheduling, with one block per `threads * queries` queries of the batch.
struct SearchSchedule {
  int blocks_per_multiprocessor = 0;
};

#ifdef __CUDACC__

// The queries that a block has in registers: query r of thread t is number t + r * threads among
// them, in the caller's order or by key.
template <typename Key, typename Policy>
class QueryTile {
  static constexpr int kThreads = Policy::kThreads, kQueries = Policy::kQueries;
  static constexpr bool kSorted = Policy::kReorder != Reorder::kNone;
  using Sort = cub::BlockRadixSort<Key, kThreads, kQueries, uint16_t>;
  union SortStorage {
    typename Sort::TempStorage sort;
    uint32_t answers[kThreads * kQueries];
  };
  struct NoStorage {};

 public:
  static constexpr int kSize = kThreads * kQueries;
  static_assert(kThreads % 32 == 0 && kQueries % Policy::kInFlight == 0 && kSize <= 65536);
  using Storage = std::conditional_t<kSorted, SortStorage, NoStorage>;

  // Loads the first `size` of the tile's queries; the others get the maximum key.
  __device__ void Load(const Key* queries, int size, Storage& storage) {
#pragma unroll
    for (int r = 0; r < kQueries; ++r) {
      const int i = r * kThreads + static_cast<int>(threadIdx.x);
      keys_[r] = i < size ? __ldcs(queries + i) : std::numeric_limits<Key>::max();
    }
    if constexpr (kSorted) {
#pragma unroll
      for (int r = 0; r < kQueries; ++r) {
        places_[r] = static_cast<uint16_t>(r * kThreads + static_cast<int>(threadIdx.x));
      }
      __syncthreads();  // the previous tile may still use the storage
      Sort(storage.sort).SortBlockedToStriped(keys_, places_);
    }
  }

  __device__ Key key(int r) const {
    return keys_[r];
  }

  // Calls emit(position, result) for each result of the first `size` queries.
  template <typename Emit>
  __device__ void Store(const uint32_t (&answers)[kQueries], int size, Storage& storage,
                        Emit emit) const {
    if constexpr (Policy::kReorder == Reorder::kDouble) {
      __syncthreads();
#pragma unroll
      for (int r = 0; r < kQueries; ++r) storage.answers[places_[r]] = answers[r];
      __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < kQueries; ++r) {
      int place = r * kThreads + static_cast<int>(threadIdx.x);
      uint32_t answer = answers[r];
      if constexpr (Policy::kReorder == Reorder::kDouble) answer = storage.answers[place];
      if constexpr (Policy::kReorder == Reorder::kLookups) place = places_[r];
      if (place < size) emit(place, answer);
    }
  }

 private:
  Key keys_[kQueries];
  uint16_t places_[kSorted ? kQueries : 1];
};

template <typename Searcher>
concept FindsRows = requires(const Searcher& searcher, const typename Searcher::DataType (&keys)[1],
                             RowId (&row_ids)[1]) {
  searcher.template FirstRows<1>(keys, row_ids, nullptr);
};

// The positions of lower bounds, or of upper bounds if `upper`.
template <typename Searcher, int kQueries>
__device__ inline void FindPositions(const Searcher& searcher, uint32_t entries, bool upper,
                                     const typename Searcher::DataType (&keys)[kQueries],
                                     uint32_t (&positions)[kQueries], const void* pinned) {
  using Key = typename Searcher::DataType;
  constexpr Key kGreatest = std::numeric_limits<Key>::max();
  Key bounds[kQueries];  // an upper bound is the lower bound of the next key
#pragma unroll
  for (int i = 0; i < kQueries; ++i) bounds[i] = keys[i] + (upper && keys[i] != kGreatest ? 1 : 0);
  typename Searcher::Slot slots[kQueries];
  searcher.template LowerBound<kQueries>(bounds, slots, pinned);
#pragma unroll
  for (int i = 0; i < kQueries; ++i) {
    positions[i] = upper && keys[i] == kGreatest ? entries : searcher.position(slots[i]);
  }
}

// The first row ids of keys, or kNoRow. With `any`, which only asks whether there is a row, the row
// id may be 0.
template <typename Searcher, int kQueries>
__device__ inline void FindRows(const Searcher& searcher, bool any,
                                const typename Searcher::DataType (&keys)[kQueries],
                                RowId (&row_ids)[kQueries], const void* pinned) {
  if constexpr (FindsRows<Searcher>) {
    searcher.template FirstRows<kQueries>(keys, row_ids, pinned);
  } else {
    typename Searcher::Slot slots[kQueries];
    searcher.template LowerBound<kQueries>(keys, slots, pinned);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) row_ids[i] = searcher.Equals(slots[i], keys[i]) ? 0 : kNoRow;
    if (any) return;
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      if (row_ids[i] != kNoRow) row_ids[i] = searcher.row_id(slots[i]);
    }
  }
}

// The results, as 32-bit integers, of queries that all lanes of a group have.
template <typename Searcher, int kQueries>
__device__ inline void AnswerTogether(const Searcher& searcher, uint32_t entries, Operation query,
                                      const typename Searcher::DataType (&keys)[kQueries],
                                      uint32_t (&answers)[kQueries], const void* pinned) {
  if (query == Operation::kLowerBound || query == Operation::kUpperBound) {
    FindPositions<Searcher, kQueries>(searcher, entries, query == Operation::kUpperBound, keys,
                                      answers, pinned);
    return;
  }
  const bool any = query == Operation::kContains;
  FindRows<Searcher, kQueries>(searcher, any, keys, answers, pinned);
#pragma unroll
  for (int i = 0; i < kQueries; ++i) {
    if (any) answers[i] = answers[i] != kNoRow;
  }
}

// The results of each thread's queries. A group executes the queries of one lane after another, and
// completes each query while the data that it read is still in the cache.
template <typename Searcher, int kQueries>
__device__ inline void AnswerQueries(const Searcher& searcher, uint32_t entries, Operation query,
                                     const typename Searcher::DataType (&keys)[kQueries],
                                     uint32_t (&answers)[kQueries], const void* pinned) {
  if constexpr (Searcher::kLanes == 1) {
    AnswerTogether<Searcher, kQueries>(searcher, entries, query, keys, answers, pinned);
  } else {
    constexpr int kLanes = Searcher::kLanes;
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
#pragma unroll 1
    for (int owner = 0; owner < kLanes; ++owner) {
      typename Searcher::DataType shared_keys[kQueries];
      uint32_t found[kQueries];
#pragma unroll
      for (int i = 0; i < kQueries; ++i) {
        shared_keys[i] = __shfl_sync(0xffffffffu, keys[i], owner, kLanes);
      }
      AnswerTogether<Searcher, kQueries>(searcher, entries, query, shared_keys, found, pinned);
#pragma unroll
      for (int i = 0; i < kQueries; ++i) {
        if (lane == owner) answers[i] = found[i];
      }
    }
  }
}

template <typename Searcher, typename Policy>
__global__ void __launch_bounds__(Policy::kThreads)
    SearchKernel(const __grid_constant__ Searcher searcher, uint32_t entries, Operation query,
                 const typename Searcher::DataType* queries, size_t size, void* results) {
  using Key = typename Searcher::DataType;
  using Tile = QueryTile<Key, Policy>;
  constexpr int kInFlight = Policy::kInFlight;
  extern __shared__ __align__(16) unsigned char pinned_memory[];
  __shared__ typename Tile::Storage storage;
  const void* pinned = nullptr;
  if constexpr (Policy::kPinning != Pinning::kNone) {
    searcher.Pin(pinned_memory);
    __syncthreads();
    pinned = pinned_memory;
  }
  const size_t stride = size_t{gridDim.x} * Tile::kSize;
  for (size_t begin = size_t{blockIdx.x} * Tile::kSize; begin < size; begin += stride) {
    const int tile_size = static_cast<int>(min(size_t{Tile::kSize}, size - begin));
    Tile tile;
    tile.Load(queries + begin, tile_size, storage);
    uint32_t answers[Policy::kQueries];
#pragma unroll
    for (int r = 0; r < Policy::kQueries; r += kInFlight) {
      Key keys[kInFlight];
      uint32_t some[kInFlight];
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) keys[i] = tile.key(r + i);
      AnswerQueries<Searcher, kInFlight>(searcher, entries, query, keys, some, pinned);
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) answers[r + i] = some[i];
    }
    tile.Store(answers, tile_size, storage, [&](int place, uint32_t answer) {
      if (query == Operation::kContains) {
        static_cast<bool*>(results)[begin + place] = answer != 0;
      } else {
        __stcs(static_cast<uint32_t*>(results) + begin + place, answer);
      }
    });
  }
}

// Executes a non-empty batch over `entries` entries, with `keys` of the searcher's type; results
// are those of DeviceIndex::Search. Enqueues one kernel.
template <typename Policy, typename Searcher>
absl::Status SearchBatch(const Searcher& searcher, size_t entries, Operation query, DeviceKeys keys,
                         void* results, cudaStream_t stream, SearchSchedule schedule = {}) {
  constexpr size_t kTile = static_cast<size_t>(Policy::kThreads) * Policy::kQueries;
  size_t blocks = std::min<size_t>((keys.size() + kTile - 1) / kTile, INT_MAX);
  if (schedule.blocks_per_multiprocessor > 0) {
    int device = 0, multiprocessors = 0;
    CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
    CAIRN_RETURN_IF_CUDA_FAILS(
        cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    blocks = std::min(blocks, size_t{static_cast<unsigned>(multiprocessors)} *
                                  static_cast<unsigned>(schedule.blocks_per_multiprocessor));
  }
  size_t pinned_bytes = 0;
  if constexpr (Policy::kPinning != Pinning::kNone) {
    pinned_bytes = searcher.pinned_bytes();
    static SharedMemoryOfKernel shared_memory;
    RETURN_IF_ERROR(
        shared_memory.AllowMost(reinterpret_cast<const void*>(SearchKernel<Searcher, Policy>)));
  }
  CAIRN_RETURN_IF_LAUNCH_FAILS(
      "SearchKernel", LaunchShape{static_cast<unsigned>(blocks), Policy::kThreads, pinned_bytes},
      stream, SearchKernel<Searcher, Policy>, searcher, static_cast<uint32_t>(entries), query,
      static_cast<const typename Searcher::DataType*>(keys.data()), keys.size(), results);
  return absl::OkStatus();
}

#endif  // __CUDACC__

}  // namespace cairn::gpu
