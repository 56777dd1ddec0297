#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn {

// 10^0 … 10^kMaxDecimalExponent, all exact.
inline constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
                                          1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};

// The float with this decimal value. For a decimal of up to 15 digits it is the nearest float, as a
// parser of the decimal's text returns. It is one division of two exact numbers. Compare A.
// Afroozeh et al., ALP: Adaptive Lossless floating-Point Compression, SIGMOD 2023, which multiplies
// and has exceptions.
template <typename Float>
Float FromDecimal(int64_t digits, double power) {
  return static_cast<Float>(static_cast<double>(digits) / power);
}

// Sets digits[i] so that FromDecimal(digits[i], 10^*exponent) is numbers[i] to the bit, with the
// lowest exponent that works for all numbers. Returns false if none does, as for a NaN, an infinity
// or -0.0.
template <typename Float>
bool ToDecimals(const Float* numbers, size_t count, int64_t* digits, uint32_t* exponent);

}  // namespace cairn
