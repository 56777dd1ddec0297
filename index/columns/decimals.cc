#include "index/columns/decimals.h"

#include <bit>
#include <type_traits>

#include "index/columns/column_format.h"

namespace cairn {
namespace {

static_assert(std::size(kPowersOfTen) == kMaxDecimalExponent + 1);

// Integers below this are exact as doubles.
constexpr double kExactIntegers = 0x1p53;

template <typename Float>
bool ToDecimal(Float number, double power, int64_t* digits) {
  using Bits = std::conditional_t<sizeof(Float) == 4, uint32_t, uint64_t>;
  const double scaled = static_cast<double>(number) * power;
  if (!(scaled > -kExactIntegers && scaled < kExactIntegers)) return false;
  *digits = static_cast<int64_t>(scaled + (scaled < 0 ? -0.5 : 0.5));
  return std::bit_cast<Bits>(FromDecimal<Float>(*digits, power)) == std::bit_cast<Bits>(number);
}

}  // namespace

template <typename Float>
bool ToDecimals(const Float* numbers, size_t count, int64_t* digits, uint32_t* exponent) {
  // Numbers with k decimals mostly also have an exact form with k + 1 decimals. If one has not, the
  // second pass finds that.
  *exponent = 0;
  for (size_t i = 0; i < count; ++i) {
    while (!ToDecimal(numbers[i], kPowersOfTen[*exponent], &digits[i])) {
      if (++*exponent > kMaxDecimalExponent) return false;
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (!ToDecimal(numbers[i], kPowersOfTen[*exponent], &digits[i])) return false;
  }
  return true;
}

template bool ToDecimals(const float* numbers, size_t count, int64_t* digits, uint32_t* exponent);
template bool ToDecimals(const double* numbers, size_t count, int64_t* digits, uint32_t* exponent);

}  // namespace cairn
