#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define CAIRN_BENCH_DEVICE __host__ __device__
#else
#define CAIRN_BENCH_DEVICE
#endif

namespace cairn::bench {

// Ranks 0 … n - 1 from a Zipf distribution, the smallest most often (Gray et al., Quickly
// generating billion-record synthetic databases, 1994).
class Zipf {
 public:
  explicit Zipf(size_t n) : n_(static_cast<double>(n)) {
    for (size_t i = 1; i <= n && i < kSummed; ++i) zeta_ += std::pow(i, -kTheta);
    // The rest of the sum, by its integral.
    if (n >= kSummed) {
      zeta_ += (std::pow(n_, 1 - kTheta) - std::pow(kSummed, 1 - kTheta)) / (1 - kTheta);
    }
    eta_ = (1 - std::pow(2 / n_, 1 - kTheta)) / (1 - (1 + std::pow(0.5, kTheta)) / zeta_);
  }

  // The rank for a uniform random number.
  CAIRN_BENCH_DEVICE size_t Rank(uint64_t random) const {
    const double u = static_cast<double>(random >> 11) * 0x1p-53, uz = u * zeta_;
    if (uz < 1) return 0;
    if (uz < 1 + pow(0.5, kTheta)) return 1;
    const double rank = n_ * pow(eta_ * u - eta_ + 1, 1 / (1 - kTheta));
    return static_cast<size_t>(rank < n_ - 1 ? rank : n_ - 1);
  }

 private:
  static constexpr double kTheta = 0.99;
  static constexpr size_t kSummed = 10000;
  double n_;
  double zeta_ = 0;
  double eta_;
};

}  // namespace cairn::bench
