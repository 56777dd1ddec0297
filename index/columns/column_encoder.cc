#include "index/columns/column_encoder.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "index/columns/column_type.h"
#include "index/columns/decimals.h"
#include "index/columns/packed_numbers.h"

namespace cairn {
namespace {

using Numbers = std::array<uint64_t, kRowsPerColumnBlock>;

bool AnyNull(const ColumnValues& values, size_t first, size_t count) {
  if (values.null_count() == 0) return false;
  for (size_t i = first; i < first + count; ++i) {
    if (values.is_null(i)) return true;
  }
  return false;
}

void AppendValidity(const ColumnValues& values, size_t first, size_t count, std::string* bytes) {
  char bits[kBlockValidityBytes] = {};
  for (size_t i = 0; i < count; ++i) {
    if (!values.is_null(first + i)) bits[i / 8] = static_cast<char>(bits[i / 8] | 1 << i % 8);
  }
  bytes->append(bits, sizeof bits);
}

void AppendPacked(const Numbers& numbers, size_t count, uint32_t width, std::string* bytes) {
  const size_t at = bytes->size();
  bytes->resize(at + PackedBytes(count, width));
  PackNumbers(numbers.data(), count, width, bytes->data() + at);
}

// Replaces 64-bit numbers by their differences from the lowest one, and returns the width of the
// widest. `flip` is the sign bit if they are signed, otherwise 0.
uint32_t SubtractLeast(uint64_t flip, size_t count, Numbers* numbers, uint64_t* base) {
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  for (size_t i = 0; i < count; ++i) {
    least = std::min(least, (*numbers)[i] ^ flip);
    most = std::max(most, (*numbers)[i] ^ flip);
  }
  *base = count == 0 ? 0 : least ^ flip;
  for (size_t i = 0; i < count; ++i) (*numbers)[i] -= *base;
  return count == 0 ? 0 : PackedWidth(most - least);
}

constexpr uint64_t kSign = uint64_t{1} << 63;

// A stretch of numbers in which each null is replaced by another of the numbers, or by 0.
template <typename T>
struct Stretch {
  std::array<T, kRowsPerColumnBlock> numbers;

  Stretch(const ColumnValues& values, size_t first, size_t count, bool nulls) {
    std::copy_n(values.numbers<T>().data() + first, count, numbers.data());
    if (!nulls) return;
    size_t present = first;
    while (present < first + count && values.is_null(present)) ++present;
    const T instead = present == first + count ? T{} : numbers[present - first];
    for (size_t i = 0; i < count; ++i) {
      if (values.is_null(first + i)) numbers[i] = instead;
    }
  }
};

// Replaces floats by decimals, if they are decimals and those are narrower than `width`.
template <typename T>
bool TryDecimals(const Stretch<T>& stretch, size_t count, Numbers* numbers, ColumnBlock* block,
                 uint32_t* exponent) {
  std::array<int64_t, kRowsPerColumnBlock> digits;
  if (!ToDecimals(stretch.numbers.data(), count, digits.data(), exponent)) return false;
  const auto [least, most] = std::minmax_element(digits.data(), digits.data() + count);
  const uint32_t width = PackedWidth(static_cast<uint64_t>(*most) - static_cast<uint64_t>(*least));
  if (width >= block->width) return false;
  block->width = static_cast<uint8_t>(width);
  block->base = static_cast<uint64_t>(*least);
  for (size_t i = 0; i < count; ++i) {
    (*numbers)[i] = static_cast<uint64_t>(digits[i]) - block->base;
  }
  return true;
}

template <typename T>
void EncodeNumbers(const ColumnValues& values, size_t first, size_t count, bool nulls,
                   std::string* bytes, ColumnBlock* block) {
  const Stretch<T> stretch(values, first, count, nulls);
  Numbers numbers;
  for (size_t i = 0; i < count; ++i) numbers[i] = NumberToBits(stretch.numbers[i]);
  constexpr bool kSigned = std::is_integral_v<T> && std::is_signed_v<T>;
  block->width =
      static_cast<uint8_t>(SubtractLeast(kSigned ? kSign : 0, count, &numbers, &block->base));
  uint32_t exponent = 0;
  bool decimals = false;
  if constexpr (std::is_floating_point_v<T>) {
    decimals = block->width != 0 && TryDecimals(stretch, count, &numbers, block, &exponent);
  }
  for (size_t i = 0; nulls && i < count; ++i) {
    if (values.is_null(first + i)) numbers[i] = 0;
  }
  block->set_form(decimals ? BlockEncoding::kDecimals : BlockEncoding::kNumbers, nulls,
                  decimals ? exponent : 0);
  AppendPacked(numbers, count, block->width, bytes);
}

void EncodeStrings(const ColumnValues& values, size_t first, size_t count, bool nulls,
                   ColumnDictionary* dictionary, std::string* bytes, ColumnBlock* block) {
  const std::vector<uint64_t>& offsets = values.strings().offsets();
  const uint64_t begin = offsets[first];
  const uint64_t total = offsets[first + count] - begin;
  uint64_t shortest = count == 0 ? 0 : UINT64_MAX;
  for (size_t i = first; i < first + count; ++i) {
    shortest = std::min(shortest, offsets[i + 1] - offsets[i]);
  }
  const uint32_t width = PackedWidth(total - shortest * count);
  Numbers numbers;
  if (dictionary != nullptr &&
      dictionary->Encode(values, first, count, PackedBytes(count, width) + total, numbers.data())) {
    // The code of a null row is 0; its packed number must stay 0.
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < count; ++i) {
      if (!values.is_null(first + i)) least = std::min(least, numbers[i]);
    }
    for (size_t i = 0; i < count; ++i) numbers[i] -= std::min(numbers[i], least);
    block->base = least == UINT64_MAX ? 0 : least;
    block->width = static_cast<uint8_t>(
        PackedWidth(*std::max_element(numbers.data(), numbers.data() + count)));
    block->set_form(BlockEncoding::kDictionary, nulls, 0);
    AppendPacked(numbers, count, block->width, bytes);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = offsets[first + i + 1] - begin - shortest * (i + 1);
  }
  block->base = shortest;
  block->width = static_cast<uint8_t>(width);
  block->set_form(BlockEncoding::kStrings, nulls, 0);
  AppendPacked(numbers, count, width, bytes);
  bytes->append(values.strings().heap().substr(begin, total));
  bytes->resize((bytes->size() + 7) / 8 * 8);
}

template <typename T>
void DecodeNumbers(const ColumnBlock& block, const char* packed, size_t rows, T* out) {
  Numbers numbers;
  UnpackNumbers(packed, block.width, block.base, 0, rows, numbers.data());
  for (size_t i = 0; i < rows; ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      if (block.encoding() == BlockEncoding::kDecimals) {
        out[i] = FromDecimal<T>(static_cast<int64_t>(numbers[i]), kPowersOfTen[block.exponent()]);
        continue;
      }
    }
    out[i] = NumberOf<T>(numbers[i]);
  }
}

}  // namespace

void EncodeBlock(const ColumnValues& values, size_t first, size_t count,
                 ColumnDictionary* dictionary, std::string* bytes, ColumnBlock* block) {
  const bool nulls = AnyNull(values, first, count);
  *block = {};
  block->set_offset(bytes->size());
  if (nulls) AppendValidity(values, first, count, bytes);
  VisitColumnType(values.type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::string_view>) {
      EncodeStrings(values, first, count, nulls, dictionary, bytes, block);
    } else {
      EncodeNumbers<T>(values, first, count, nulls, bytes, block);
    }
  });
}

void DecodeBlock(const ColumnBlock& block, const char* bytes, size_t rows, ColumnValues* values) {
  const size_t before = values->size();
  const char* const packed = bytes + PackedOffset(block);
  VisitColumnType(values->type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::string_view>) {
      const char* const heap = bytes + HeapOffset(block, rows);
      uint64_t begin = 0;
      for (size_t i = 0; i < rows; ++i) {
        const uint64_t end = block.base * (i + 1) + ReadPacked(packed, block.width, i);
        values->AppendBytes({heap + begin, end - begin});
        begin = end;
      }
    } else {
      DecodeNumbers<T>(block, packed, rows, values->ExtendNumbers<T>(rows));
    }
  });
  if (!block.has_nulls()) return;
  const char* const validity = bytes + block.offset();
  for (size_t i = 0; i < rows; ++i) {
    if ((validity[i / 8] >> (i % 8) & 1) == 0) values->SetNull(before + i);
  }
}

}  // namespace cairn
