#include "python/src/in/exact_integers.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "python/src/base/errors.h"
#include "python/src/in/buffer.h"

namespace cairn::python {
namespace {

// Sets `to` to the integer `from`; returns whether it is exact.
template <typename To, typename From>
bool Convert(From from, To* to) {
  *to = static_cast<To>(from);
  if constexpr (std::is_floating_point_v<To>) {
    // Above the last float below 2^63 or 2^64, the conversion back is undefined.
    constexpr int kBits = std::is_signed_v<From> ? 63 : 64;
    return *to < static_cast<To>(uint64_t{1} << (kBits - 1)) * 2 && static_cast<From>(*to) == from;
  } else {
    return std::in_range<To>(from);
  }
}

}  // namespace

ExactIntegers::ExactIntegers(const ColumnSpan& from, DataType to, const std::string& where)
    : numbers_(from.size()), part_(ColumnSpan::OfNumbers(to, numbers_.data(), from.size())) {
  part_.validity = from.validity;
  part_.first_bit = from.first_bit;
  std::visit(
      [&](const auto& into, const auto& values) {
        using To = std::remove_const_t<typename std::decay_t<decltype(into)>::element_type>;
        using From = std::remove_const_t<typename std::decay_t<decltype(values)>::element_type>;
        if constexpr (std::is_integral_v<From> && std::is_arithmetic_v<To>) {
          auto* const numbers = reinterpret_cast<To*>(numbers_.data());
          for (size_t i = 0; i < values.size(); ++i) {
            if (from.is_null(i) || Convert(values[i], &numbers[i])) continue;
            ThrowInvalid(where + ": value " + std::to_string(i) + ": expected an integer that " +
                         DtypeName(to) + " has, found " + std::to_string(values[i]));
          }
        }
      },
      part_.values, from.values);
}

}  // namespace cairn::python
