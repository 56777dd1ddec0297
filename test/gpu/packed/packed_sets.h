#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "test/ordered_index_oracle.h"
#include "test/test_random.h"

namespace cairn::gpu {

// Keys whose numbers are drawn by `draw`, distinct.
template <typename Key, typename Draw>
OracleData<Key> Distinct(const std::string& name, size_t size, Draw draw) {
  std::set<Key> keys;
  while (keys.size() < size) keys.insert(static_cast<Key>(draw()));
  return oracle::FinishIntegers(name, std::vector<Key>(keys.begin(), keys.end()));
}

// Sets that are hard for a bitmap of cells: the contents of regions are uneven in different ways.
template <typename Key>
std::vector<OracleData<Key>> UnevenSets(size_t size) {
  auto random = TestRandom(11);
  constexpr Key kMax = std::numeric_limits<Key>::max();
  constexpr int kBits = static_cast<int>(sizeof(Key)) * 8;
  std::vector<OracleData<Key>> sets;
  sets.push_back(Distinct<Key>("runs of ten", size, [&, start = uint64_t{0}, i = 0]() mutable {
    if (i++ % 10 == 0) start = random();
    return start + static_cast<uint64_t>(i % 10);
  }));
  sets.push_back(Distinct<Key>("logarithmic", std::min<size_t>(size, 20000), [&] {
    return (random() >> (64 - kBits)) >> (random() % (kBits - 8));
  }));
  sets.push_back(Distinct<Key>("dense at both ends", size, [&] {
    const uint64_t offset = random() % (2 * size);
    return random() % 2 == 0 ? offset : kMax - offset;
  }));
  sets.push_back(Distinct<Key>("one dense run in a sparse space", size, [&] {
    return random() % 4 == 0 ? random() : (uint64_t{kMax} / 3) + random() % (2 * size);
  }));
  sets.push_back(Distinct<Key>("the middle of the space", size,
                               [&] { return uint64_t{kMax} / 2 + random() % (16 * size); }));
  return sets;
}

// Sets in which few keys repeat, so that leaves may hold all entries: at all places of leaves, with
// and without zeros in the stored bits.
template <typename Key>
std::vector<OracleData<Key>> NearUniqueSets(size_t size) {
  auto random = TestRandom(16);
  constexpr Key kMax = std::numeric_limits<Key>::max();
  const auto repeating = [&](const char* name, std::vector<Key> keys, auto repeat) {
    const size_t distinct = keys.size();
    for (size_t i = 0; i < distinct; ++i) {
      for (size_t again = repeat(i); again > 0; --again) keys.push_back(keys[i]);
    }
    return oracle::FinishIntegers(name, std::move(keys));
  };
  std::vector<Key> even(size), dense(size), thousands(size);
  for (size_t i = 0; i < size; ++i) {
    even[i] = static_cast<Key>(random());
    dense[i] = static_cast<Key>(i);
    thousands[i] = static_cast<Key>(i << 16);
  }
  std::vector<OracleData<Key>> sets;
  sets.push_back(
      repeating("every twentieth twice", even, [](size_t i) { return i % 20 == 0 ? 1 : 0; }));
  sets.push_back(repeating("dense, some twice", dense, [&](size_t) { return random() % 20 == 0; }));
  sets.push_back(repeating("a few up to 25 times", even,
                           [&](size_t) { return random() % 300 == 0 ? random() % 25 : 0; }));
  sets.push_back(repeating("zeros in the low bits, up to 12 times", thousands,
                           [&](size_t) { return random() % 100 == 0 ? random() % 12 : 0; }));
  for (const size_t zeros : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 19, 20, 31, 32, 33, 40}) {
    sets.push_back(repeating("the least and the greatest key several times", dense,
                             [&](size_t i) { return i == 0 ? zeros : 0; }));
    sets.back().keys.insert(sets.back().keys.end(), zeros, kMax);
    for (size_t i = 0; i < zeros; ++i) sets.back().row_ids.push_back(static_cast<RowId>(i));
  }
  // Too long a chain for that.
  sets.push_back(repeating("one key a thousand times", even, [&](size_t i) {
    return i == size / 2 ? std::min<size_t>(1000, size / 10) : 0;
  }));
  return sets;
}

}  // namespace cairn::gpu
