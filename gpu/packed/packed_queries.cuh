#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/packed/packed_search.h"
#include "index/layout/wide_key.h"

// How the packed search reads its queries: one lane per query, by whole warps.

namespace cairn::gpu {

// The key of lane `part` of the lane's quad; called by the whole warp.
template <typename Key>
__device__ inline Key KeyOfQuad(Key key, int part) {
  return __shfl_sync(0xffffffffu, key, part, 4);
}
template <>
__device__ inline WideKey KeyOfQuad(WideKey key, int part) {
  const uint64_t low = __shfl_sync(0xffffffffu, static_cast<uint64_t>(key), part, 4);
  const uint64_t high = __shfl_sync(0xffffffffu, static_cast<uint64_t>(key >> 64), part, 4);
  return WideKey{high} << 64 | low;
}

template <typename Queries>
class QueryReader;

template <typename Key>
class QueryReader<NumberQueries<Key>> {
 public:
  // Additional information about a warp's queries.
  struct Notes {};

  __host__ __device__ explicit QueryReader(const NumberQueries<Key>& queries) : queries_(queries) {}

  // Data that Load copies to shared memory.
  __host__ __device__ size_t shared_bytes() const { return 0; }
  __device__ void Load(void*) const {}

  // The first part of query i to read, or a placeholder if it is not `there`.
  using Start = Key;
  __device__ Start Begin(size_t i, bool there) const {
    return there ? __ldcs(queries_.keys + i) + queries_.add : Key{0};
  }
  // The query's key. With kStaged, `shared` must have been filled by Load.
  template <bool kStaged>
  __device__ Key Read(Start key, const void*, Notes*) const {
    return key;
  }
  // Whether the position of a lane's query with the given key is past all keys; whether a key of
  // the index may equal a lane's query.
  template <typename Part>
  __device__ bool IsPastAll(const Notes&, Part key, int) const {
    // The upper bound of the maximum key appears as key 0.
    return queries_.add != 0 && key == 0;
  }
  __device__ bool MayBeThere(const Notes&, int) const { return true; }

 private:
  NumberQueries<Key> queries_;
};

template <typename Key>
class QueryReader<TextQueries<Key>> {
 public:
  // One bit per lane.
  struct Notes {
    uint32_t exact, past_all;
  };

  __host__ __device__ explicit QueryReader(const TextQueries<Key>& queries) : queries_(queries) {}

  __host__ __device__ size_t shared_bytes() const {
    return queries_.plain ? 0 : queries_.share_words * sizeof(uint32_t);
  }
  __device__ void Load(void* shared) const {
    const auto* const from = reinterpret_cast<const uint2*>(queries_.shares);
    for (unsigned i = threadIdx.x; i < shared_bytes() / sizeof(uint2); i += blockDim.x) {
      static_cast<uint2*>(shared)[i] = from[i];
    }
  }

  // The location of its bytes.
  struct Start {
    uint32_t begin, end;
  };
  __device__ Start Begin(size_t i, bool there) const {
    if (!there) return {0, 0};
    return {__ldg(queries_.offsets + i), __ldg(queries_.offsets + i + 1)};
  }
  template <bool kStaged>
  __device__ Key Read(Start start, const void* shared, Notes* notes) const {
    // One byte more than the longest key has shows that a string is longer.
    const uint32_t length = min(start.end - start.begin, queries_.count + 1);
    const uintptr_t at = reinterpret_cast<uintptr_t>(queries_.bytes) + start.begin;
    TextNumber<Key> number;
    if (queries_.plain) {
      Words words(at, length);
      number = NumberOfBytes<Key>(queries_.count, length, queries_.edge,
                                  [&](uint32_t i) { return words(i); });
    } else if (!FindQuickly<kStaged>(at, length, shared, &number)) {
      Words words(at, length);
      number = NumberOfText<Key>(queries_.positions, queries_.count, length, queries_.edge,
                                 [&](uint32_t i) { return words(i); });
    }
    notes->exact = __ballot_sync(0xffffffffu, number.exact);
    notes->past_all = __ballot_sync(0xffffffffu, number.past_all);
    return number.number;
  }
  template <typename Part>
  __device__ bool IsPastAll(const Notes& notes, Part, int lane) const {
    return (notes.past_all >> lane & 1) != 0;
  }
  __device__ bool MayBeThere(const Notes& notes, int lane) const {
    return (notes.exact >> lane & 1) != 0;
  }

 private:
  // The words of a string in order. Reads whole words, and none without a byte of the string.
  class Words {
   public:
    __device__ Words(uintptr_t at, uint32_t length)
        : words_(reinterpret_cast<const uint32_t*>(at & ~uintptr_t{3})),
          skipped_(static_cast<uint32_t>(at & 3)),
          bytes_(skipped_ + length),
          next_(length != 0 ? __ldg(words_) : 0) {}
    __device__ uint32_t operator()(uint32_t word) {
      const uint32_t low = next_;
      next_ = 4 * word + 4 < bytes_ ? __ldg(words_ + word + 1) : 0;
      return __funnelshift_r(low, next_, 8 * skipped_);
    }

   private:
    const uint32_t* words_;
    uint32_t skipped_, bytes_, next_;
  };

  // Returns whether the string has a number and is not a prefix query; both hold for most queries.
  template <bool kStaged>
  __device__ bool FindQuickly(uintptr_t at, uint32_t length, const void* shared,
                              TextNumber<Key>* number) const {
    if (queries_.share_words == 0 || queries_.edge == TextEdge::kPrefixEnd ||
        length < queries_.shortest || length > queries_.count) {
      return false;
    }
    const uint32_t* const table = kStaged ? static_cast<const uint32_t*>(shared) : queries_.shares;
    const uint32_t product_words = (queries_.count + 3) / 4;
    Words words(at, length);
    if (!QuickNumberOfText(
            reinterpret_cast<const uint64_t*>(table), table + 2 * product_words, queries_.count,
            length, [&](uint32_t i) { return words(i); }, &number->number)) {
      return false;
    }
    const bool behind = queries_.edge == TextEdge::kUpper;
    number->number += behind ? 1 : 0;
    number->exact = true;
    number->past_all = behind && number->number == 0;
    return true;
  }

  TextQueries<Key> queries_;
};

}  // namespace cairn::gpu
