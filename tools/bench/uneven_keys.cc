#include "tools/bench/uneven_keys.h"

#include <tbb/parallel_sort.h>

#include <algorithm>
#include <cmath>

#include "tools/bench/data.h"

namespace cairn::bench {
namespace {

// Uniform in [0, 1).
double Unit(Random* random) {
  return static_cast<double>((*random)() >> 11) * 0x1p-53;
}
double Normal(Random* random) {
  return std::sqrt(-2 * std::log(1 - Unit(random))) * std::cos(2 * M_PI * Unit(random));
}

}  // namespace

const char* UnevenSetName(UnevenSet set) {
  constexpr const char* kNames[] = {"lognormal", "clustered", "outliers",   "timestamps",
                                    "two_ends",  "powers",    "near_unique"};
  return kNames[static_cast<size_t>(set)];
}

template <typename Key>
std::vector<Key> UnevenKeys(UnevenSet set, size_t n) {
  constexpr Key kGreatest = ~Key{0};
  constexpr int kBits = static_cast<int>(sizeof(Key)) * 8;
  Random random(kSeed);
  std::vector<Key> keys(n);
  switch (set) {
    case UnevenSet::kLognormal: {
      std::vector<double> values(n);
      for (double& value : values) value = std::exp(2 * Normal(&random));
      const double scale =
          std::ldexp(1.0, kBits - 1) / *std::max_element(values.begin(), values.end());
      for (size_t i = 0; i < n; ++i) keys[i] = static_cast<Key>(values[i] * scale);
      break;
    }
    case UnevenSet::kClustered: {
      constexpr size_t kClusters = 1000;
      const Key space = kGreatest / kClusters;
      for (size_t i = 0, cluster = 0; cluster < kClusters; ++cluster) {
        const size_t end = n * (cluster + 1) / kClusters;
        Key key = static_cast<Key>(space * cluster + random.Below(space - 2 * (end - i)));
        for (; i < end; ++i) keys[i] = key += static_cast<Key>(1 + random.Below(2));
      }
      break;
    }
    case UnevenSet::kOutliers:
      for (size_t i = 0; i < n; ++i) {
        // A 65,536th of the 32-bit keys would be only 65,536.
        const uint64_t width = std::max<uint64_t>(kGreatest >> 16, 4 * uint64_t{n});
        keys[i] = static_cast<Key>(i < 100 ? random() : kGreatest / 3 + random.Below(width));
      }
      break;
    case UnevenSet::kTimestamps: {
      const uint64_t gap = std::max<uint64_t>(1, (kGreatest >> 2) / n);
      uint64_t key = 0;
      for (size_t i = 0; i < n; ++i) {
        const bool pause = i % 1000 == 0;
        if (random.Below(10) != 0) key += 1 + random.Below(pause ? 1000 * gap : gap);
        keys[i] = static_cast<Key>(std::min<uint64_t>(key, kGreatest));
      }
      break;
    }
    case UnevenSet::kTwoEnds:
      for (size_t i = 0; i < n; ++i) {
        const Key key = static_cast<Key>(random()) >> 10;
        keys[i] = i % 2 == 0 ? key : static_cast<Key>(kGreatest - key);
      }
      break;
    case UnevenSet::kPowers:
      for (size_t i = 0; i < n; ++i) {
        const int k = kBits / 2 + static_cast<int>(random.Below(static_cast<uint64_t>(kBits / 2)));
        keys[i] = static_cast<Key>((Key{1} << k) + (static_cast<Key>(random()) >> (kBits - k)));
      }
      break;
    case UnevenSet::kNearUnique:
      keys = UniformKeys<Key>(n);
      for (size_t i = 0; i + 1 < n; ++i) {
        if (random.Below(1000) == 0) keys[i + 1] = keys[i];
      }
      break;
  }
  tbb::parallel_sort(keys.begin(), keys.end());
  return keys;
}

template <typename Key>
std::vector<Key> AbsentKeysBehind(const std::vector<Key>& keys) {
  std::vector<Key> absent(keys.size());
  for (size_t i = keys.size(); i-- > 0;) {
    const bool behind_is_there = i + 1 < keys.size() && keys[i + 1] - keys[i] <= 1;
    absent[i] = behind_is_there ? absent[i + 1] : static_cast<Key>(keys[i] + 1);
  }
  return absent;
}

template std::vector<uint32_t> AbsentKeysBehind(const std::vector<uint32_t>&);
template std::vector<uint64_t> AbsentKeysBehind(const std::vector<uint64_t>&);
template std::vector<uint32_t> UnevenKeys(UnevenSet, size_t);
template std::vector<uint64_t> UnevenKeys(UnevenSet, size_t);

}  // namespace cairn::bench
