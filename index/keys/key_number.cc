#include "index/keys/key_number.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "absl/strings/str_format.h"
#include "index/keys/escaped_text.h"

namespace cairn {
namespace {

// From here on, doubles round to a float's infinity: halfway between the largest float and 2^128.
constexpr double kFloatLimit = 0x1.ffffffp127;

uint64_t UnsignedMax(size_t width) {
  return UINT64_MAX >> (64 - 8 * width);
}
int64_t SignedMax(size_t width) {
  return static_cast<int64_t>(UnsignedMax(width) >> 1);
}

// "a whole number from -128 to 127", "an f32".
std::string Expected(DataType type) {
  const size_t width = FixedWidth(type);
  if (IsUnsigned(type)) {
    return absl::StrFormat("a whole number from 0 to %d", UnsignedMax(width));
  }
  if (IsSigned(type)) {
    const int64_t max = SignedMax(width);
    return absl::StrFormat("a whole number from %d to %d", -max - 1, max);
  }
  return absl::StrFormat("an %s number", DataTypeName(type));
}

absl::Status Unreadable(std::string_view text, DataType type) {
  return absl::InvalidArgumentError(
      absl::StrFormat("expected %s in decimal%s, found %s", Expected(type),
                      IsFloat(type) ? ", or nan, inf or -inf" : "", Quoted(text)));
}

absl::Status Unfit(const DataValue& value, DataType type) {
  return absl::InvalidArgumentError(
      absl::StrFormat("expected %s, found %s", Expected(type), Described(value)));
}

template <typename Integer>
absl::Status ParseInteger(std::string_view text, DataType type, Integer min, Integer max,
                          DataValue* value) {
  Integer number;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < min || number > max) {
    return Unreadable(text, type);
  }
  *value = number;
  return absl::OkStatus();
}

// Whether the digits before any exponent are all zeros.
bool SpellsZero(std::string_view text) {
  return text.substr(0, text.find_first_of("eE")).find_first_of("123456789") ==
         std::string_view::npos;
}

template <typename Float>
absl::Status ParseFloat(std::string_view text, DataType type, DataValue* value) {
  if (text == "nan") {
    *value = std::numeric_limits<double>::quiet_NaN();
  } else if (text == "inf") {
    *value = std::numeric_limits<double>::infinity();
  } else if (text == "-inf") {
    *value = -std::numeric_limits<double>::infinity();
  } else {
    // from_chars accepts more names for infinity and NaN; reject them.
    if (text.find_first_not_of("0123456789+-.eE") != std::string_view::npos) {
      return Unreadable(text, type);
    }
    Float number;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc::result_out_of_range ||
        (error == std::errc() && stop == end && number == 0 && !SpellsZero(text))) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "expected a number in the range of %s, found %s", DataTypeName(type), Quoted(text)));
    }
    if (error != std::errc() || stop != end) return Unreadable(text, type);
    *value = static_cast<double>(number);
  }
  return absl::OkStatus();
}

// An integer as a float, if that is exact.
template <typename Float, typename Integer>
bool ExactFloat(Integer number, Float* result) {
  *result = static_cast<Float>(number);
  // A cast back would overflow at the integers' upper end itself, a power of two.
  const Float end = std::ldexp(Float{1}, std::numeric_limits<Integer>::digits);
  return *result < end && static_cast<Integer>(*result) == number;
}

template <typename Float>
bool ToFloat(const DataValue& value, Float* result) {
  if (const uint64_t* number = std::get_if<uint64_t>(&value)) return ExactFloat(*number, result);
  if (const int64_t* number = std::get_if<int64_t>(&value)) return ExactFloat(*number, result);
  const double* number = std::get_if<double>(&value);
  if (number == nullptr) return false;
  if constexpr (sizeof(Float) == sizeof(float)) {
    const bool finite = std::isfinite(*number);
    if (finite && std::abs(*number) >= kFloatLimit) return false;
    *result = static_cast<Float>(*number);
    return *result != 0 || *number == 0;
  } else {
    *result = *number;
    return true;
  }
}

// A value as an integer of 64 bits, if it is exactly one.
template <typename Integer>
bool ToInteger(const DataValue& value, Integer* result) {
  if (const uint64_t* number = std::get_if<uint64_t>(&value)) {
    *result = static_cast<Integer>(*number);
    return *number <= static_cast<uint64_t>(std::numeric_limits<Integer>::max());
  }
  if (const int64_t* number = std::get_if<int64_t>(&value)) {
    *result = static_cast<Integer>(*number);
    return *number >= 0 || std::numeric_limits<Integer>::is_signed;
  }
  const double* number = std::get_if<double>(&value);
  if (number == nullptr) return false;
  const double end = std::ldexp(1.0, std::numeric_limits<Integer>::digits);
  const double begin = std::numeric_limits<Integer>::is_signed ? -end : 0.0;
  if (!(*number >= begin && *number < end) || std::trunc(*number) != *number) return false;
  *result = static_cast<Integer>(*number);
  return true;
}

}  // namespace

absl::Status ParseNumber(std::string_view text, DataType type, DataValue* value) {
  const size_t width = FixedWidth(type);
  if (IsUnsigned(type)) {
    return ParseInteger<uint64_t>(text, type, 0, UnsignedMax(width), value);
  }
  if (IsSigned(type)) {
    const int64_t max = SignedMax(width);
    return ParseInteger<int64_t>(text, type, -max - 1, max, value);
  }
  return type == DataType::kF32 ? ParseFloat<float>(text, type, value)
                                : ParseFloat<double>(text, type, value);
}

void AppendNumber(const DataValue& value, DataType type, std::string* text) {
  char digits[32];
  std::to_chars_result result{};
  if (IsUnsigned(type)) {
    result = std::to_chars(digits, digits + sizeof(digits), std::get<uint64_t>(value));
  } else if (IsSigned(type)) {
    result = std::to_chars(digits, digits + sizeof(digits), std::get<int64_t>(value));
  } else if (const double number = std::get<double>(value); std::isnan(number)) {
    text->append("nan");  // with either sign
    return;
  } else if (type == DataType::kF32) {
    result = std::to_chars(digits, digits + sizeof(digits), static_cast<float>(number));
  } else {
    result = std::to_chars(digits, digits + sizeof(digits), number);
  }
  text->append(digits, result.ptr);
}

absl::Status NumberBits(const DataValue& value, DataType type, uint64_t* bits) {
  const size_t width = FixedWidth(type);
  bool fits;
  if (IsUnsigned(type)) {
    fits = ToInteger<uint64_t>(value, bits) && *bits <= UnsignedMax(width);
  } else if (IsSigned(type)) {
    int64_t number = 0;
    const int64_t max = SignedMax(width);
    fits = ToInteger<int64_t>(value, &number) && number >= -max - 1 && number <= max;
    *bits = static_cast<uint64_t>(number) & UnsignedMax(width);
  } else if (type == DataType::kF32) {
    float number = 0;
    fits = ToFloat(value, &number);
    *bits = std::bit_cast<uint32_t>(number);
  } else {
    double number = 0;
    fits = ToFloat(value, &number);
    *bits = std::bit_cast<uint64_t>(number);
  }
  return fits ? absl::OkStatus() : Unfit(value, type);
}

absl::Status TextBytes(const DataValue& value, DataType type, std::string_view* bytes) {
  const std::string_view* text = std::get_if<std::string_view>(&value);
  if (text == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected %s, found the number %s", DataTypeName(type), Described(value)));
  }
  *bytes = *text;
  return absl::OkStatus();
}

std::string Described(const DataValue& value) {
  if (const uint64_t* number = std::get_if<uint64_t>(&value)) {
    return absl::StrFormat("%d", *number);
  }
  if (const int64_t* number = std::get_if<int64_t>(&value)) return absl::StrFormat("%d", *number);
  if (std::holds_alternative<double>(value)) {
    std::string text;
    AppendNumber(value, DataType::kF64, &text);
    return text;
  }
  if (const std::string_view* text = std::get_if<std::string_view>(&value)) {
    return text->empty() ? "''" : Quoted(*text);
  }
  return "null";
}

}  // namespace cairn
