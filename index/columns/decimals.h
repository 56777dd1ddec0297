#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn {

// 10^0 … 10^kMaxDecimalExponent, all of them exact.
inline constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
                                          1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};

// The float that a decimal stands for. Of a decimal of up to 15 digits that is the one nearest to
// it, which a parser makes of its text: one division of two exact numbers (compare A. Afroozeh et
// al., ALP: Adaptive Lossless floating-Point Compression, SIGMOD 2023, which multiplies and has
// exceptions).
template <typename Float>
Float FromDecimal(int64_t digits, double power) {
  return static_cast<Float>(static_cast<double>(digits) / power);
}

// Sets digits[i] so that FromDecimal(digits[i], 10^*exponent) is numbers[i] to the bit, with the
// least exponent that does for all. False where none does, as for a NaN, an infinity or -0.0.
template <typename Float>
bool ToDecimals(const Float* numbers, size_t count, int64_t* digits, uint32_t* exponent);

}  // namespace cairn
