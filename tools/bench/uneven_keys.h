#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// Sets of unevenly distributed keys:
//   lognormal      e^(2 z) for normally distributed z, the max at the end of the key space;
//   clustered      dense in a thousand places, each somewhere in its thousandth of the key space;
//   outliers       uniform in a 65,536th of the key space, and a hundred keys anywhere;
//   timestamps     bursts: a thousand short gaps, then a long one; one in ten gaps is zero;
//   two_ends       half in the first, half in the last 1,024th of the key space;
//   powers         the same number between 2^k and 2^(k + 1) for every k from half the bits on;
//   near_unique    uniform, one in a thousand twice
namespace cairn::bench {

enum class UnevenSet : uint8_t {
  kLognormal,
  kClustered,
  kOutliers,
  kTimestamps,
  kTwoEnds,
  kPowers,
  kNearUnique
};
inline constexpr UnevenSet kUnevenSets[] = {
    UnevenSet::kLognormal, UnevenSet::kClustered, UnevenSet::kOutliers,  UnevenSet::kTimestamps,
    UnevenSet::kTwoEnds,   UnevenSet::kPowers,    UnevenSet::kNearUnique};
// "lognormal", …
const char* UnevenSetName(UnevenSet set);

// `n` keys of the set, ascending; uint32_t and uint64_t.
template <typename Key>
std::vector<Key> UnevenKeys(UnevenSet set, size_t n);

// For each of some ascending keys, the least greater key that is not one of them. After the
// greatest representable key, key 0 takes its place.
template <typename Key>
std::vector<Key> AbsentKeysBehind(const std::vector<Key>& keys);

}  // namespace cairn::bench
