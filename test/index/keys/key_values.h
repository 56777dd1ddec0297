#pragma once

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <compare>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "cairn/key_codec.h"
#include "test/require_ok.h"

namespace cairn {

using std::string_view_literals::operator""sv;

inline constexpr DataType kAllTypes[] = {DataType::kU8,  DataType::kU16,  DataType::kU32,
                                         DataType::kU64, DataType::kI8,   DataType::kI16,
                                         DataType::kI32, DataType::kI64,  DataType::kF32,
                                         DataType::kF64, DataType::kText, DataType::kBytes};
constexpr NullPolicy kAllNulls[] = {NullPolicy::kSkip, NullPolicy::kFirst, NullPolicy::kLast};

inline KeyCodec Codec(absl::Span<const DataType> parts, NullPolicy nulls = NullPolicy::kSkip) {
  return RequireOk(KeyCodec::Create(parts, nulls));
}

inline bool Mentions(const absl::Status& status, std::string_view what) {
  const bool found = std::string(status.message()).find(what) != std::string::npos;
  if (!found) BOOST_TEST_MESSAGE("'" << what << "' is not in: " << status.message());
  return found;
}

inline bool IsNull(const DataValue& value) {
  return std::holds_alternative<std::monostate>(value);
}

// The order that keys promise, by definition and without any encoding.
inline std::strong_ordering Compare(const DataValue& a, const DataValue& b, NullPolicy nulls) {
  if (IsNull(a) || IsNull(b)) {
    const auto order = IsNull(b) <=> IsNull(a);
    return nulls == NullPolicy::kFirst ? order : 0 <=> order;
  }
  if (const auto* x = std::get_if<uint64_t>(&a)) return *x <=> std::get<uint64_t>(b);
  if (const auto* x = std::get_if<int64_t>(&a)) return *x <=> std::get<int64_t>(b);
  if (const auto* x = std::get_if<std::string_view>(&a)) {
    return x->compare(std::get<std::string_view>(b)) <=> 0;
  }
  const double x = std::get<double>(a);
  const double y = std::get<double>(b);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) <=> std::isnan(y);
  if (x != y) return x < y ? std::strong_ordering::less : std::strong_ordering::greater;
  return std::signbit(y) <=> std::signbit(x);
}

inline std::strong_ordering Compare(absl::Span<const DataValue> a, absl::Span<const DataValue> b,
                                    NullPolicy nulls) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (const auto order = Compare(a[i], b[i], nulls); order != 0) return order;
  }
  return std::strong_ordering::equal;
}

inline std::strong_ordering Compare(const EncodedKeys& keys, size_t i, const EncodedKeys& others,
                                    size_t j) {
  switch (keys.kind()) {
    case PhysicalType::kU32:
      return keys.u32(i) <=> others.u32(j);
    case PhysicalType::kU64:
      return keys.u64(i) <=> others.u64(j);
    case PhysicalType::kBytes:
      break;
  }
  return keys.bytes(i).compare(others.bytes(j)) <=> 0;
}

// Values of a type that are likely to go wrong: the ends of its range, both zeros, denormals,
// infinities, NaNs; text with zero bytes, FF bytes, prefixes of one another.
inline std::vector<DataValue> Corners(DataType type) {
  std::vector<DataValue> values;
  const auto add = [&values](auto... v) { (values.push_back(v), ...); };
  const auto add_integers = [&values](auto min, auto max) {
    for (const auto v : {min, decltype(min)(min + 1), decltype(min)(max / 2), decltype(min)(0),
                         decltype(min)(1), decltype(min)(max / 2 + 1), decltype(min)(max - 1), max,
                         decltype(min)(min / 2), decltype(min)(max / 256), decltype(min)(256)}) {
      values.push_back(v);
    }
  };
  constexpr double kInf = std::numeric_limits<double>::infinity();
  switch (type) {
    case DataType::kU8:
      for (uint64_t v = 0; v < 256; ++v) add(v);
      break;
    case DataType::kU16:
      add_integers(uint64_t{0}, uint64_t{UINT16_MAX});
      break;
    case DataType::kU32:
      add_integers(uint64_t{0}, uint64_t{UINT32_MAX});
      break;
    case DataType::kU64:
      add_integers(uint64_t{0}, UINT64_MAX);
      break;
    case DataType::kI8:
      for (int64_t v = -128; v < 128; ++v) add(v);
      break;
    case DataType::kI16:
      add_integers(int64_t{INT16_MIN}, int64_t{INT16_MAX});
      add(int64_t{-1});
      break;
    case DataType::kI32:
      add_integers(int64_t{INT32_MIN}, int64_t{INT32_MAX});
      add(int64_t{-1});
      break;
    case DataType::kI64:
      add_integers(INT64_MIN, INT64_MAX);
      add(int64_t{-1});
      break;
    case DataType::kF32:
      for (const float v : {0.f, 1.f, 1.5f, 0.1f, 1e-20f, std::numeric_limits<float>::min(),
                            std::numeric_limits<float>::denorm_min(),
                            std::numeric_limits<float>::max(), 16777216.f}) {
        add(double{v}, -double{v});
      }
      add(kInf, -kInf, std::nan("1"), -std::nan("2"));
      break;
    case DataType::kF64:
      for (const double v :
           {0., 1., 1.5, 0.1, 1e-200, 1e22, std::numeric_limits<double>::min(),
            std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max()}) {
        add(v, -v);
      }
      add(kInf, -kInf, std::nan("1"), -std::nan("2"));
      break;
    case DataType::kText:
    case DataType::kBytes:
      add(""sv, "\0"sv, "\0\0"sv, "\0\1"sv, "\0\xff"sv, "\1"sv, "a"sv, "a\0"sv, "a\0b"sv,
          "a\0\xff"sv, "a\1"sv, "aa"sv, "a\xff"sv, "\xff"sv, "\xff\xff"sv, "\xff\0"sv, "a,b"sv,
          "\\N"sv, "\\x2c"sv, "'"sv, " "sv, "\xc3\xbc"sv);
      break;
  }
  return values;
}

inline DataValue RandomValue(DataType type, std::mt19937_64& random) {
  static const std::vector<DataValue> kTexts = Corners(DataType::kText);
  const uint64_t bits = random();
  switch (type) {
    case DataType::kU8:
      return bits & 0xFF;
    case DataType::kU16:
      return bits & 0xFFFF;
    case DataType::kU32:
      return bits & 0xFFFFFFFF;
    case DataType::kU64:
      return bits;
    case DataType::kI8:
      return int64_t{static_cast<int8_t>(bits)};
    case DataType::kI16:
      return int64_t{static_cast<int16_t>(bits)};
    case DataType::kI32:
      return int64_t{static_cast<int32_t>(bits)};
    case DataType::kI64:
      return static_cast<int64_t>(bits);
    case DataType::kF32:
      return double{std::bit_cast<float>(static_cast<uint32_t>(bits))};
    case DataType::kF64:
      return std::bit_cast<double>(bits);
    case DataType::kText:
    case DataType::kBytes:
      break;
  }
  return kTexts[bits % kTexts.size()];
}

// Writes every key as text and reads it back.
inline void CheckText(const KeyCodec& codec, const EncodedKeys& keys) {
  EncodedKeys read(codec.kind());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto text = RequireOk(codec.Format(keys, i));
    for (const char c : text) BOOST_REQUIRE((c >= '!' && c <= '~'));
    BOOST_REQUIRE_MESSAGE(codec.Parse(text, &read).ok(), text);
    BOOST_REQUIRE_MESSAGE(Compare(keys, i, read, i) == 0, text);
  }
}

}  // namespace cairn
