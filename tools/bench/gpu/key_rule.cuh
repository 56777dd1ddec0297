#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/types.h"
#include "tools/bench/gpu/device_data.h"

namespace cairn::bench {

// A bijection of the numbers of `bits` bits that looks random: rounds of a multiplication by an odd
// number and of a shifted xor, as in the finalizers of hash functions.
__host__ __device__ inline uint64_t Scramble(uint64_t x, int bits) {
  const uint64_t mask = ~uint64_t{0} >> (64 - bits);
  const int half = (bits + 1) / 2;
  x = (x + 0x632BE59BD9B4E019ull) & mask;
  x ^= x >> half;
  x = (x * 0xBF58476D1CE4E5B9ull) & mask;
  x ^= x >> half;
  x = (x * 0x94D049BB133111EBull) & mask;
  x ^= x >> half;
  x = (x * 0xD6E8FEB86659FD93ull) & mask;
  return x ^ (x >> half);
}

// Random number i of a sequence (splitmix64).
__host__ __device__ inline uint64_t DrawRandom(uint64_t seed, uint64_t i) {
  uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// A random number of [0, n).
__device__ inline uint64_t Below(uint64_t random, uint64_t n) {
  return __umul64hi(random, n);
}

// The key of entry i, computed by arithmetic, so that data needs no copies, and checks no search.
template <typename Key>
struct KeyRule {
  KeySet set;
  int log2_n;

  static constexpr int kBits = 8 * sizeof(Key);
  static constexpr int kDuplicateBits = 4, kClusterBits = 4;
  static constexpr size_t kNearUnique = 128;  // one of kNearUnique entries repeats a key
  static constexpr uint64_t kRunLength = 10;
  static constexpr int kRunBits = 4;  // a run's part of the key space: 16 keys, 6 of them absent

  __host__ __device__ size_t entries() const { return size_t{1} << log2_n; }
  __host__ __device__ size_t distinct() const {
    switch (set) {
      case KeySet::kDuplicates:
        return entries() >> kDuplicateBits;
      case KeySet::kNearUnique:
        return entries() - entries() / kNearUnique;
      default:
        return entries();
    }
  }
  // The first row of key number k < distinct().
  __host__ __device__ RowId FirstRow(size_t k) const { return static_cast<RowId>(k); }

  __host__ __device__ Key KeyOf(RowId row) const {
    switch (set) {
      case KeySet::kClustered:
        return ClusterKey(Scramble(row, log2_n) >> (log2_n - kClusterBits),
                          Scramble(row, log2_n) & (cluster_size() - 1));
      case KeySet::kRuns: {
        const uint64_t at = Scramble(row, log2_n);
        return RunKey(at / kRunLength, at % kRunLength);
      }
      default:
        return static_cast<Key>(Scramble(row % distinct(), kBits));
    }
  }

  // A key without an entry.
  __device__ Key AbsentKey(uint64_t random) const {
    switch (set) {
      case KeySet::kClustered: {
        // Draws from a quarter of the cluster's part of the key space, right after the cluster.
        const uint64_t quarter = uint64_t{1} << (kBits - kClusterBits - 2);
        return ClusterKey(random & 15, cluster_size() + Below(random, quarter));
      }
      case KeySet::kRuns: {
        constexpr uint64_t kGap = (1 << kRunBits) - kRunLength;
        return RunKey(Below(random, entries() / kRunLength), kRunLength + random % kGap);
      }
      default: {
        // The keys of the rule after those of the entries.
        const uint64_t all = ~uint64_t{0} >> (64 - kBits);
        return static_cast<Key>(Scramble(distinct() + Below(random, all - distinct()), kBits));
      }
    }
  }

 private:
  __host__ __device__ uint64_t cluster_size() const { return entries() >> kClusterBits; }
  // Clusters begin somewhere in the first half of their part of the key space.
  __host__ __device__ Key ClusterKey(uint64_t cluster, uint64_t offset) const {
    const int part_bits = kBits - kClusterBits;
    const uint64_t start = Scramble(cluster, part_bits - 1);
    return static_cast<Key>((cluster << part_bits) + start + offset);
  }
  __host__ __device__ static Key RunKey(uint64_t run, uint64_t offset) {
    return static_cast<Key>((Scramble(run, kBits - kRunBits) << kRunBits) + offset);
  }
};

}  // namespace cairn::bench
