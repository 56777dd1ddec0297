#pragma once

#include <algorithm>
#include <cstdint>

#include "cairn/device.h"
#include "cairn/types.h"
#include "gpu/strings/string_records.h"
#include "gpu/strings/string_search.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {

// A byte-string query, searched by four lanes of a warp that all hold it, its *group*. The groups
// of a warp run in lockstep, so all functions documented as "called by a warp" must be called by
// all of its lanes.
inline constexpr int kGroupLanes = 4;
inline constexpr int kStringThreads = 256;  // per block
inline constexpr unsigned kAllLanes = 0xffffffffu;

// Chunks of 32 bytes of a record, including row id and length, that are read at once.
inline constexpr int kFewChunks = 1, kMaxChunks = 3;
inline constexpr size_t kFewChunkBytes = kFewChunks * 32 - 8;  // of the key
inline constexpr size_t kMaxChunkBytes = kMaxChunks * 32 - 8;

// The bits of a ballot that belong to the group, which starts at `shift`.
__device__ inline uint32_t OfGroup(uint32_t ballot, int shift) {
  return ballot >> shift & 0xF;
}

// As the first bit at which two keys differ: there is none.
inline constexpr uint32_t kSameBits = UINT32_MAX;
// Represents all bits from there on: no node tests any of them, and no key has any of them set.
inline constexpr uint32_t kFarBit = UINT32_MAX - 1;

struct StringQuery {
  const uint8_t* bytes;
  uint32_t length;
  // The value of bits past the end: 0, or 1 for the position after all keys that start with the
  // query.
  uint32_t behind;

  // A unit past the end.
  __device__ uint64_t Filler() const { return behind != 0 ? ~uint64_t{0} : 0; }
  __device__ uint32_t Bit(uint32_t bit) const {
    const uint32_t byte = bit >> 3;
    return byte < length ? __ldg(bytes + byte) >> (7 - (bit & 7)) & 1 : behind;
  }

  // Bytes 8 unit to 8 unit + 7, as a native integer. Reads whole words of four bytes, but only
  // words with a byte of the query.
  __device__ uint64_t Unit(uint32_t unit) const {
    const uint64_t filler = Filler();
    const uint64_t first = uint64_t{unit} * 8;
    if (first >= length) return filler;
    const uint32_t left = min(length - static_cast<uint32_t>(first), 8u);
    const uintptr_t at = reinterpret_cast<uintptr_t>(bytes) + first;
    const uint32_t* const words = reinterpret_cast<const uint32_t*>(at & ~uintptr_t{3});
    const uint32_t skipped = static_cast<uint32_t>(at & 3), shift = 8 * skipped;
    const uint32_t a = __ldg(words), b = skipped + left > 4 ? __ldg(words + 1) : 0,
                   c = skipped + left > 8 ? __ldg(words + 2) : 0;
    const uint64_t unit_bytes =
        uint64_t{__funnelshift_r(b, c, shift)} << 32 | __funnelshift_r(a, b, shift);
    if (left == 8) return unit_bytes;
    const uint64_t taken = (uint64_t{1} << (8 * left)) - 1;
    return (unit_bytes & taken) | (filler & ~taken);
  }

  // Units of a record with this key; the first one holds row id and length.
  __device__ uint32_t Units() const {
    return 1 + static_cast<uint32_t>((uint64_t{length} + 7) / 8);
  }
};

// A batch of queries, in device memory.
struct StringQueries {
  const char* bytes;
  const uint32_t* offsets;
  uint32_t size;
  StringAnswer answer;
  void* results;
  Position* ends;  // for kRange

  // The value of bits past the queries' ends.
  __device__ uint32_t BitsBehind() const { return answer == StringAnswer::kPrefixEnd ? 1 : 0; }
  // The location of a query's bytes; queries past the last have those of the last.
  struct Extent {
    uint32_t begin, end;
  };
  __device__ Extent ExtentOf(uint32_t i) const {
    i = min(i, size - 1);
    return {__ldg(offsets + i), __ldg(offsets + i + 1)};
  }
  __device__ StringQuery At(const Extent& extent, uint32_t bits_behind) const {
    return {reinterpret_cast<const uint8_t*>(bytes) + extent.begin, extent.end - extent.begin,
            bits_behind};
  }
  // Prefetches a query's first bytes to the first-level cache; called by a group.
  __device__ void Prefetch(const Extent& extent, int lane) const {
    const uint32_t at = extent.begin + 32 * static_cast<uint32_t>(lane);
    if (at < extent.end) asm volatile("prefetch.global.L1 [%0];" ::"l"(bytes + at));
  }
  // Writes the result of a point query: whether the key exists, or its row id.
  __device__ void Write(uint32_t i, bool found, RowId row) const {
    if (answer == StringAnswer::kRow) {
      __stcs(static_cast<RowId*>(results) + i, found ? row : kNoRow);
    } else {
      static_cast<bool*>(results)[i] = found;
    }
  }
};

// Calls search(some) for parts of a batch, small enough that query numbers, and those of some
// queries past the last one, fit 32 bits.
template <typename Search>
absl::Status SearchInParts(DeviceKeys keys, StringAnswer answer, void* results, Position* ends,
                           Search search) {
  constexpr size_t kMaxAtOnce = size_t{1} << 30;
  const size_t result_bytes = answer == StringAnswer::kFound ? sizeof(bool) : sizeof(uint32_t);
  for (size_t first = 0; first < keys.size(); first += kMaxAtOnce) {
    const auto size = static_cast<uint32_t>(std::min(kMaxAtOnce, keys.size() - first));
    RETURN_IF_ERROR(search(StringQueries{keys.bytes(), keys.offsets() + first, size, answer,
                                         static_cast<char*>(results) + first * result_bytes,
                                         ends == nullptr ? nullptr : ends + first}));
  }
  return absl::OkStatus();
}

// How data that only one query in many reads is loaded: without using the first-level cache. For
// the tree, whose nodes should stay in the second-level cache, it also leaves that cache first: 6%
// faster for URLs on an H200. For the hash, that would be 4 to 9% slower.
enum class RecordLoad : uint8_t { kStays, kLeavesFirst };

template <RecordLoad kLoad>
__device__ uint64_t LoadRecordUnit(const uint64_t* unit) {
  uint64_t value;
  if constexpr (kLoad == RecordLoad::kLeavesFirst) {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm("ld.global.nc.L1::no_allocate.L2::cache_hint.u64 %0, [%1], %2;"
        : "=l"(value)
        : "l"(unit), "l"(policy));
  } else {
    asm("ld.global.nc.L1::no_allocate.u64 %0, [%1];" : "=l"(value) : "l"(unit));
  }
  return value;
}

__device__ inline const uint64_t* RecordOf(const StringRecordsView& records, uint32_t key) {
  const size_t at = records.at != nullptr ? __ldg(records.at + key) : size_t{key} * records.stride;
  return records.units + at;
}

__device__ inline uint64_t BigEndian(uint64_t unit) {
  const uint32_t low = static_cast<uint32_t>(unit), high = static_cast<uint32_t>(unit >> 32);
  return uint64_t{__byte_perm(low, 0, 0x0123)} << 32 | __byte_perm(high, 0, 0x0123);
}

// A lane's units of the first kChunks * 32 bytes of a query's record; the first unit stays 0. Also
// records how many units there are.
template <int kChunks>
struct QueryUnits {
  uint64_t units[kChunks];
  uint32_t size;

  __device__ QueryUnits(const StringQuery& query, int lane) : size(query.Units()) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const uint32_t j = static_cast<uint32_t>(c * kGroupLanes + lane);
      units[c] = j > 0 && j < size ? query.Unit(j - 1) : 0;
    }
  }
};

// A lane's units of the same part of a record.
template <int kChunks, RecordLoad kLoad>
struct RecordUnits {
  uint64_t units[kChunks];

  __device__ RecordUnits(const uint64_t* record, uint32_t size, int lane) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const uint32_t j = static_cast<uint32_t>(c * kGroupLanes + lane);
      units[c] = j < size ? LoadRecordUnit<kLoad>(record + j) : 0;
    }
  }
};

// Whether a record, whose `key` has been read, has the query's key. Called by a warp. Reads more
// units if the first ones agree.
template <int kChunks, RecordLoad kLoad>
__device__ bool IsQuery(const StringQuery& query, const QueryUnits<kChunks>& wanted,
                        const uint64_t* record, const RecordUnits<kChunks, kLoad>& key, int lane,
                        int shift) {
  bool same = lane == 0 ? key.units[0] >> 32 == query.length : key.units[0] == wanted.units[0];
#pragma unroll
  for (int c = 1; c < kChunks; ++c) same &= key.units[c] == wanted.units[c];
  same = OfGroup(__ballot_sync(kAllLanes, same), shift) == 0xF;
  for (uint32_t next = kChunks * kGroupLanes; __any_sync(kAllLanes, same && next < wanted.size);
       next += kGroupLanes) {
    const uint32_t j = next + static_cast<uint32_t>(lane);
    const bool differs =
        same && j < wanted.size && LoadRecordUnit<kLoad>(record + j) != query.Unit(j - 1);
    same &= OfGroup(__ballot_sync(kAllLanes, differs), shift) == 0;
  }
  return same;
}

// The first difference between a query and a record's key.
struct StringDifference {
  uint32_t bit;     // kSameBits if all bits agree
  uint32_t length;  // of the key

  // Whether the query equals the key.
  __device__ bool None(const StringQuery& query) const {
    return bit == kSameBits && length == query.length;
  }
  // Whether the query is after the key. The two must differ.
  __device__ bool QueryIsBehind(const StringQuery& query) const {
    if (bit == kSameBits) return query.length > length;
    return bit == kFarBit || query.Bit(bit) != 0;
  }
};

// For the tree. Called by a warp; the same in all lanes of a group.
template <int kChunks>
__device__ StringDifference DifferenceFrom(const StringQuery& query,
                                           const QueryUnits<kChunks>& wanted,
                                           const uint64_t* record, int lane, int shift) {
  constexpr RecordLoad kLoad = RecordLoad::kLeavesFirst;
  const RecordUnits<kChunks, kLoad> key(record, wanted.size, lane);
  StringDifference found;
  found.length = __shfl_sync(kAllLanes, static_cast<uint32_t>(key.units[0] >> 32), 0, kGroupLanes);
  found.bit = kSameBits;
  const uint32_t key_units = 1 + (found.length + 7) / 8;

  // The first units, from `unit` on, in which some lane finds a difference, and this lane's
  // difference.
  uint32_t unit = 0, lanes = 0;
  uint64_t differing = 0;
  const auto look = [&](uint64_t bits, uint32_t first_unit) {
    const uint32_t now = OfGroup(__ballot_sync(kAllLanes, bits != 0), shift);
    if (lanes != 0 || now == 0) return;
    lanes = now;
    unit = first_unit;
    differing = bits;
  };
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const uint32_t first = static_cast<uint32_t>(c * kGroupLanes);
    const uint32_t j = first + static_cast<uint32_t>(lane);
    uint64_t bits = 0;
    if (j > 0 && j < wanted.size) bits = (j < key_units ? key.units[c] : 0) ^ wanted.units[c];
    look(bits, first);
  }
  // Continues past the end of the query, if that is shorter, and past the units that were read at
  // once. Ones past the query's end differ from the zeros past the key's end.
  const uint32_t units = max(wanted.size, key_units + query.behind);
  for (uint32_t next = min(static_cast<uint32_t>(kChunks * kGroupLanes), wanted.size);
       __any_sync(kAllLanes, lanes == 0 && next < units); next += kGroupLanes) {
    const uint32_t j = next + static_cast<uint32_t>(lane);
    uint64_t bits = 0;
    if (lanes == 0 && j < units) {
      bits = (j < key_units ? LoadRecordUnit<kLoad>(record + j) : 0) ^ query.Unit(j - 1);
    }
    look(bits, next);
  }
  const uint32_t first_lane = lanes != 0 ? __ffs(static_cast<int>(lanes)) - 1 : 0;
  const uint64_t of_first =
      __shfl_sync(kAllLanes, BigEndian(differing), static_cast<int>(first_lane), kGroupLanes);
  if (lanes != 0) {
    const uint64_t bit = uint64_t{unit + first_lane - 1} * 64 +
                         static_cast<uint64_t>(__clzll(static_cast<long long>(of_first)));
    found.bit = static_cast<uint32_t>(min(bit, uint64_t{kFarBit}));
  }
  return found;
}

}  // namespace cairn::gpu
