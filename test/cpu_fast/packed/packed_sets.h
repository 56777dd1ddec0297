#pragma once

#include <string>
#include <utility>
#include <vector>

#include "test/oracle_catalogue.h"
#include "test/test_random.h"

// Sets of keys for tests of packed leaves and their directories, in addition to the catalogue's.
namespace cairn {

// The set of key(0) … key(size - 1).
template <typename Key, typename KeyOf>
OracleData<Key> IntegerSet(const std::string& name, size_t size, KeyOf key) {
  std::vector<Key> keys(size);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<Key>(key(i));
  return oracle::FinishIntegers(name, std::move(keys));
}

// Sets that a cell directory takes, and is exact for, or not quite.
template <typename Key>
std::vector<OracleData<Key>> EvenSets() {
  std::vector<OracleData<Key>> sets;
  auto random = TestRandom(11);
  const auto add = [&](const std::string& name, size_t size, auto key) {
    sets.push_back(IntegerSet<Key>(name + ", " + std::to_string(size), size, key));
  };
  for (size_t size : {400u, 5000u, 150000u}) {
    add("even random", size, [&](size_t) { return random(); });
    add("even dense", size, [&](size_t i) { return i + 1000; });
    add("even 20 bits", size, [&](size_t) { return 12345 + random() % (1 << 20); });
    add("even, 16 of each", size, [&](size_t i) { return i / 16 * 1000; });
    add("even to the greatest", size, [&](size_t i) { return ~(i * 13); });
  }
  return sets;
}

// Sets that take several groups of cells: few, many, and more than a directory has.
template <typename Key>
std::vector<OracleData<Key>> UnevenSets() {
  std::vector<OracleData<Key>> sets;
  auto random = TestRandom(12);
  const auto add = [&](const std::string& name, size_t size, auto key) {
    sets.push_back(IntegerSet<Key>(name, size, key));
  };
  add("two ends", 5000, [&](size_t i) { return i < 2500 ? i : ~i; });
  add("powers", 30000, [&](size_t) { return random() >> random() % 24; });
  const auto clusters = [&](const std::string& name, size_t size, size_t count) {
    const Key apart = ~Key{0} / static_cast<Key>(count);
    add(name, size, [=](size_t i) { return apart * (i % count) + i / count * 3; });
  };
  clusters("70 clusters", 150000, 70);
  clusters("700 clusters", 70000, 700);
  return sets;
}

}  // namespace cairn
