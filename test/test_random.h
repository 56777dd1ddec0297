#pragma once

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdlib>
#include <random>

namespace cairn {

// The seed of this run's random data: CAIRN_TEST_SEED, or a fixed one. Printed when a test fails.
inline uint64_t TestSeed() {
  const char* seed = std::getenv("CAIRN_TEST_SEED");
  return seed != nullptr ? std::strtoull(seed, nullptr, 0) : 20261121;
}

// A generator for one test case; `salt` distinguishes those of one case.
inline std::mt19937_64 TestRandom(uint64_t salt = 0) {
  BOOST_TEST_MESSAGE("CAIRN_TEST_SEED=" << TestSeed());
  return std::mt19937_64(TestSeed() * 0x9E3779B97F4A7C15ull + salt);
}

}  // namespace cairn
