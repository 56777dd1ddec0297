#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>

#include "cairn/types.h"
#include "gpu/run/entry_array.h"

namespace cairn::gpu {

// Keys without row ids, in global or shared memory.
template <typename Key>
struct KeysView {
  const Key* keys;

  __device__ Key key(size_t i) const { return keys[i]; }
};

// How the first-level cache treats the lines that a load reads.
enum class CacheUse : uint8_t {
  kKeep,  // the default of the hardware
  kOnce,  // not kept, because the rest of the line is not needed
};

// Reads kCount words of 4 bytes with the widest loads that the number allows; `from` must be
// aligned to these loads.
template <int kCount, CacheUse kUse>
__device__ inline void LoadWords(const uint32_t* from, uint32_t (&words)[kCount]) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      uint4 four;
      if constexpr (kUse == CacheUse::kOnce) {
        asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
            : "=r"(four.x), "=r"(four.y), "=r"(four.z), "=r"(four.w)
            : "l"(from + i));
      } else {
        four = *reinterpret_cast<const uint4*>(from + i);
      }
      words[i] = four.x, words[i + 1] = four.y, words[i + 2] = four.z, words[i + 3] = four.w;
    }
  } else if constexpr (kCount % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const uint2 two = *reinterpret_cast<const uint2*>(from + i);
      words[i] = two.x, words[i + 1] = two.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) words[i] = from[i];
  }
}

// How the consecutive entries of a view are stored: the number of 4-byte words per entry, and how
// to extract a key and a row id from them.
template <typename View>
struct EntryWords;

template <typename Key>
struct EntryWords<KeysView<Key>> {
  static constexpr int kWords = sizeof(Key) / 4;
  static constexpr bool kHasRow = false;
  __device__ static const uint32_t* At(const KeysView<Key>& view, size_t i) {
    return reinterpret_cast<const uint32_t*>(view.keys + i);
  }
};
template <typename Key>
struct EntryWords<EntryView<Key, EntryLayout::kSoA>> : EntryWords<KeysView<Key>> {
  __device__ static const uint32_t* At(const EntryView<Key, EntryLayout::kSoA>& view, size_t i) {
    return reinterpret_cast<const uint32_t*>(view.keys + i);
  }
};
template <typename Key>
struct EntryWords<EntryView<Key, EntryLayout::kAoS>> {
  static constexpr int kWords = EntryView<Key, EntryLayout::kAoS>::kStride;
  static constexpr bool kHasRow = true;
  __device__ static const uint32_t* At(const EntryView<Key, EntryLayout::kAoS>& view, size_t i) {
    return view.words + i * kWords;
  }
};

// Lanes for nodes of kFanOut - 1 keys, with or without row ids: four for nodes of up to two cache
// lines, more for larger ones. Of 2, 4 and 8 lanes, four were fastest for 8 and 16 32-bit keys on
// an H200, with two queries of a group in flight (cairn_bench, Lightweight/AO+PB+KS and EO+KS).
template <typename Key>
constexpr int LanesOfNode(int fan_out) {
  return fan_out == 2 ? 1 : fan_out * sizeof(Key) <= 160 ? 4 : 8;
}

// Compares queries with nodes of kKeys keys, using kLanes lanes: section 3.4 of Henneberg and
// Schuhknecht (2025), where each lane takes one key. Wider loads and fewer lanes process more
// queries at a time.
template <typename Key, int kKeys, int kLanes>
struct NodeSearch {
  static_assert(kKeys % kLanes == 0 && 32 % kLanes == 0);
  static constexpr int kPerLane = kKeys / kLanes;

  // A lane's part of a node, read through a View: chunks of kChunk keys of up to 16 bytes,
  // interleaved with those of the other lanes, so that each load of the group reads consecutive
  // bytes.
  template <typename View>
  struct Part {
    static constexpr int kWords = EntryWords<View>::kWords;
    static constexpr int kChunk = std::gcd(kPerLane, kWords <= 2 ? 4 / kWords : 1);

    Key keys[kPerLane];
    RowId row_ids[EntryWords<View>::kHasRow ? kPerLane : 1];

    // The position in the node of key i of this lane.
    __device__ static int Place(int i) {
      return (i / kChunk * kLanes + static_cast<int>(threadIdx.x) % kLanes) * kChunk + i % kChunk;
    }
    // The lane that has a position.
    __device__ static int LaneOf(int place) { return place / kChunk % kLanes; }

    // Reads the node that starts at entry `first`, a multiple of kKeys. Entries at or after `end`
    // count as the maximum key.
    template <CacheUse kUse = CacheUse::kKeep>
    __device__ void Load(const View& view, size_t first, size_t end = SIZE_MAX) {
#pragma unroll
      for (int i = 0; i < kPerLane; i += kChunk) {
        const size_t at = first + Place(i);
        uint32_t words[kChunk * kWords];
        if (at + kChunk <= end) {
          LoadWords<kChunk * kWords, kUse>(EntryWords<View>::At(view, at), words);
        } else {
#pragma unroll
          for (int w = 0; w < kChunk * kWords; ++w) {
            words[w] = at + w / kWords < end ? EntryWords<View>::At(view, at)[w] : UINT32_MAX;
          }
        }
#pragma unroll
        for (int j = 0; j < kChunk; ++j) {
          const uint32_t* entry = words + j * kWords;
          if constexpr (sizeof(Key) == 4) {
            keys[i + j] = entry[0];
          } else {
            keys[i + j] = uint64_t{entry[1]} << 32 | entry[0];
          }
          if constexpr (EntryWords<View>::kHasRow) row_ids[i + j] = entry[kWords - 1];
        }
      }
    }

    // Sets all keys to the same value.
    __device__ void Fill(Key key) {
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) keys[i] = key;
    }

    // The row id (without kHasRow: 0) of the entry at a position if it has this key, otherwise or
    // if there is no such position kNoRow. All lanes get the result. Must be called by whole warps.
    __device__ RowId RowAt(uint32_t place, Key key) const {
      RowId row_id = kNoRow;
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) {
        if (static_cast<uint32_t>(Place(i)) == place && keys[i] == key) {
          row_id = EntryWords<View>::kHasRow ? row_ids[i] : 0;
        }
      }
      return __shfl_sync(0xffffffffu, row_id, LaneOf(static_cast<int>(place)), kLanes);
    }
  };

  // less[i] = the number of keys of a node that are less than queries[i], given the lanes' parts of
  // it. All lanes get the counts. Must be called by whole warps.
  template <int kQueries, typename View>
  __device__ static void CountLess(const Key (&queries)[kQueries],
                                   const Part<View> (&parts)[kQueries],
                                   uint32_t (&less)[kQueries]) {
    // Four counts of at most 32 share one word in the shuffles between lanes.
    uint32_t counts[(kQueries + 3) / 4] = {};
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      uint32_t count = 0;
#pragma unroll
      for (int j = 0; j < kPerLane; ++j) count += parts[i].keys[j] < queries[i] ? 1 : 0;
      counts[i / 4] |= count << (8 * (i % 4));
    }
#pragma unroll
    for (int i = 0; i < (kQueries + 3) / 4; ++i) {
#pragma unroll
      for (int step = kLanes / 2; step > 0; step /= 2) {
        counts[i] += __shfl_xor_sync(0xffffffffu, counts[i], step);
      }
    }
#pragma unroll
    for (int i = 0; i < kQueries; ++i) less[i] = counts[i / 4] >> (8 * (i % 4)) & 0xff;
  }
};

}  // namespace cairn::gpu
