#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "absl/types/span.h"

// The values that parts of keys and included columns have.

namespace cairn {

// The logical type of one part of a secondary key, or of an included column.
enum class KeyType : uint8_t {
  kU8,
  kU16,
  kU32,
  kU64,
  kI8,
  kI16,
  kI32,
  kI64,
  kF32,
  kF64,
  kText,
  kBytes,
};

// "u8" … "f64", "text", "bytes".
std::string_view KeyTypeName(KeyType type);

// One logical value, as an extractor or a caller gives it; std::monostate is null. A string_view
// owns nothing.
using KeyValue = std::variant<std::monostate, uint64_t, int64_t, double, std::string_view>;

// The values of one part of many keys, as Arrow, NumPy or a C++ program has them: a view that owns
// nothing.
struct PartColumn {
  std::variant<absl::Span<const uint8_t>, absl::Span<const uint16_t>, absl::Span<const uint32_t>,
               absl::Span<const uint64_t>, absl::Span<const int8_t>, absl::Span<const int16_t>,
               absl::Span<const int32_t>, absl::Span<const int64_t>, absl::Span<const float>,
               absl::Span<const double>, absl::Span<const std::string_view>>
      values;
  // Arrow's validity bitmap: value i is null where bit first_bit + i is 0, of which a byte's least
  // significant is the first. A null pointer: no value is null.
  const uint8_t* validity = nullptr;
  size_t first_bit = 0;

  // `size` numbers of a fixed-width type, which are at `data`, aligned; none is null.
  static PartColumn OfNumbers(KeyType type, const void* data, size_t size);

  size_t size() const {
    return std::visit([](const auto& span) { return span.size(); }, values);
  }
  bool is_null(size_t i) const {
    return validity != nullptr && (validity[(first_bit + i) / 8] >> ((first_bit + i) % 8) & 1) == 0;
  }
};

}  // namespace cairn
