#include "engine/groups/value_codes.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "engine/util/make_room.h"
#include "index/columns/column_type.h"

namespace cairn {
namespace {

// Returns bits that are equal for equal numbers only.
template <typename T>
uint64_t IdentityOf(T number) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(number)) number = std::numeric_limits<T>::quiet_NaN();
  }
  return NumberToBits(number);
}

}  // namespace

void ValueCodes::Add(const ColumnValues& column, absl::Span<uint32_t> codes) {
  VisitColumnType(values_.type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::string_view>) {
      AddBytes(column, codes);
    } else {
      AddNumbers<T>(column, codes);
    }
  });
}

uint32_t ValueCodes::CodeOfNull() {
  if (null_ == kNone) {
    null_ = static_cast<uint32_t>(values_.size());
    values_.AppendNull();
  }
  return null_;
}

template <typename T>
void ValueCodes::AddNumbers(const ColumnValues& column, absl::Span<uint32_t> codes) {
  const absl::Span<const T> numbers = column.numbers<T>();
  if constexpr (sizeof(T) <= 2) narrow_.resize(size_t{1} << 8 * sizeof(T), kNone);
  for (size_t i = 0; i < codes.size(); ++i) {
    if (column.is_null(i)) {
      codes[i] = CodeOfNull();
      continue;
    }
    if constexpr (sizeof(T) <= 2) {
      uint32_t& code = narrow_[static_cast<std::make_unsigned_t<T>>(numbers[i])];
      if (code == kNone) {
        code = static_cast<uint32_t>(values_.size());
        values_.AppendNumber(numbers[i]);
      }
      codes[i] = code;
    } else {
      const uint64_t identity = IdentityOf(numbers[i]);
      const auto found = wide_.find(identity);
      if (found != wide_.end()) {
        codes[i] = found->second;
        continue;
      }
      codes[i] = static_cast<uint32_t>(values_.size());
      MakeRoomForOne(&wide_);
      wide_.emplace(identity, codes[i]);
      values_.AppendNumber(numbers[i]);
    }
  }
}

void ValueCodes::AddBytes(const ColumnValues& column, absl::Span<uint32_t> codes) {
  for (size_t i = 0; i < codes.size(); ++i) {
    if (column.is_null(i)) {
      codes[i] = CodeOfNull();
      continue;
    }
    const auto found = texts_.find(column.bytes(i));
    if (found != texts_.end()) {
      codes[i] = found->second;
      continue;
    }
    codes[i] = static_cast<uint32_t>(values_.size());
    MakeRoomForOne(&texts_);
    texts_.emplace(owned_.emplace_back(column.bytes(i)), codes[i]);
    values_.AppendBytes(column.bytes(i));
  }
}

}  // namespace cairn
