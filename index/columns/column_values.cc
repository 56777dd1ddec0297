#include "cairn/column.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "absl/strings/str_format.h"
#include "index/columns/column_type.h"
#include "index/keys/key_number.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr std::string_view kAppending = "appending values to a column";

absl::Status CheckLength(std::string_view bytes) {
  if (bytes.size() <= KeyCodec::kMaxKeyBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "expected at most %d bytes in a value, found %d", KeyCodec::kMaxKeyBytes, bytes.size()));
}

absl::Status CheckLengths(absl::Span<const std::string_view> values, const ColumnSpan& column) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (column.is_null(i)) continue;  // the value of a null is unspecified
    if (absl::Status s = CheckLength(values[i]); !s.ok()) {
      return absl::InvalidArgumentError(absl::StrFormat("value %d: %s", i, s.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void ColumnValues::Clear(DataType type) {
  const auto clear = [](auto* values) { values->clear(); };
  null_count_ = 0;
  size_ = 0;
  if (type_ != type || values_.index() != ColumnTypeIndex(type)) {
    type_ = type;
    VisitColumnType(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_same_v<T, std::string_view>) {
        if (MutableStrings() == nullptr) values_ = StringList();
      } else {
        values_ = std::vector<T>();
      }
    });
  }
  VisitColumnType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::string_view>) {
      MutableStrings()->Clear();
    } else {
      clear(Vector<T>());
    }
  });
}

void ColumnValues::Truncate(size_t size) {
  for (size_t i = size; i < size_ && null_count_ != 0; ++i) {
    if (!is_null(i)) continue;
    validity_[i / 8] = static_cast<uint8_t>(validity_[i / 8] | 1 << i % 8);
    --null_count_;
  }
  if (null_count_ != 0) validity_.resize((size + 7) / 8);
  size_ = size;
  VisitColumnType(type_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::string_view>) {
      MutableStrings()->Truncate(size);
    } else {
      Vector<T>()->resize(size);
    }
  });
}

void ColumnValues::Reserve(size_t values, size_t bytes) {
  VisitColumnType(type_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::string_view>) {
      MutableStrings()->Reserve(values, bytes);
    } else {
      Vector<T>()->reserve(size_ + values);
    }
  });
}

absl::Status ColumnValues::Append(const DataValue& value) try {
  const bool appended = VisitColumnType(type_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::string_view> || std::is_same_v<T, float>) {
      return false;
    } else {
      // The usual case needs no other checks: a number of the type's own kind, in range.
      const auto* const number = std::get_if<DataValueNumber<T>>(&value);
      if (number == nullptr ||
          static_cast<DataValueNumber<T>>(static_cast<T>(*number)) != *number) {
        return false;
      }
      AppendNumber(static_cast<T>(*number));
      return true;
    }
  });
  if (appended) return absl::OkStatus();
  if (std::holds_alternative<std::monostate>(value)) {
    AppendNull();
    return absl::OkStatus();
  }
  if (IsTextOrBytes(type_)) {
    std::string_view bytes;
    RETURN_IF_ERROR(TextBytes(value, type_, &bytes));
    RETURN_IF_ERROR(CheckLength(bytes));
    AppendBytes(bytes);
    return absl::OkStatus();
  }
  uint64_t bits = 0;
  RETURN_IF_ERROR(NumberBits(value, type_, &bits));
  VisitColumnType(type_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, std::string_view>) AppendNumber(NumberOf<T>(bits));
  });
  return absl::OkStatus();
} catch (...) {
  return StatusOfException(kAppending);
}

absl::Status ColumnValues::AppendColumn(const ColumnSpan& column) try {
  if (column.values.index() != ColumnTypeIndex(type_)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected a column of %s, found one of another type", DataTypeName(type_)));
  }
  const size_t before = size_;
  try {
    absl::Status status;
    std::visit(
        [&](const auto& values) {
          using T = std::remove_cv_t<typename std::decay_t<decltype(values)>::value_type>;
          if constexpr (std::is_same_v<T, std::string_view>) {
            status = CheckLengths(values, column);
            if (!status.ok()) return;
            for (size_t i = 0; i < values.size(); ++i) {
              AppendBytes(column.is_null(i) ? std::string_view() : values[i]);
            }
          } else {
            std::copy(values.begin(), values.end(), ExtendNumbers<T>(values.size()));
          }
        },
        column.values);
    RETURN_IF_ERROR(status);
    for (size_t i = 0; column.validity != nullptr && i < column.size(); ++i) {
      if (column.is_null(i)) SetNull(before + i);
    }
  } catch (...) {
    Truncate(before);
    throw;
  }
  return absl::OkStatus();
} catch (...) {
  return StatusOfException(kAppending);
}

void ColumnValues::AppendNull(size_t count) {
  const size_t before = size_;
  try {
    VisitColumnType(type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_same_v<T, std::string_view>) {
        for (size_t i = 0; i < count; ++i) AppendBytes({});
      } else {
        ExtendNumbers<T>(count);
      }
    });
    for (size_t i = before; i < size_; ++i) SetNull(i);
  } catch (...) {
    Truncate(before);
    throw;
  }
}

void ColumnValues::AppendBytes(std::string_view bytes) {
  ExtendValidity(1);
  StringList* const strings = MutableStrings();
  try {
    strings->Append(bytes);
  } catch (...) {
    strings->Truncate(size_);  // bytes of no string
    throw;
  }
  ++size_;
}

void ColumnValues::AppendFrom(const ColumnValues& other, size_t first, size_t count) {
  assert(other.type_ == type_ && &other != this);
  const size_t before = size_;
  try {
    VisitColumnType(type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_same_v<T, std::string_view>) {
        for (size_t i = first; i < first + count; ++i) AppendBytes(other.bytes(i));
      } else {
        T* const numbers = ExtendNumbers<T>(count);
        std::copy_n(other.Vector<T>()->begin() + static_cast<std::ptrdiff_t>(first), count,
                    numbers);
      }
    });
    for (size_t i = 0; other.null_count_ != 0 && i < count; ++i) {
      if (other.is_null(first + i)) SetNull(before + i);
    }
  } catch (...) {
    Truncate(before);
    throw;
  }
}

void ColumnValues::SetNull(size_t i) {
  if (null_count_ == 0) validity_.assign((size_ + 7) / 8, 0xFF);
  if (is_null(i)) return;
  VisitColumnType(type_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, std::string_view>) (*Vector<T>())[i] = T{};
  });
  validity_[i / 8] = static_cast<uint8_t>(validity_[i / 8] & ~(1 << i % 8));
  ++null_count_;
}

DataValue ColumnValues::value(size_t i) const {
  if (is_null(i)) return std::monostate();
  return VisitColumnType(type_, [&](auto tag) -> DataValue {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::string_view>) {
      return bytes(i);
    } else {
      return ToDataValue(numbers<T>()[i]);
    }
  });
}

const void* ColumnValues::data() const {
  return VisitColumnType(type_, [&](auto tag) -> const void* {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::string_view>) {
      return nullptr;
    } else {
      return numbers<T>().data();
    }
  });
}

size_t ColumnValues::width() const {
  return FixedWidth(type_);
}

ColumnSpan ColumnValues::View() {
  ColumnSpan column;
  if (IsTextOrBytes(type_)) {
    views_.assign(strings().begin(), strings().end());
    column.values = absl::MakeConstSpan(views_);
  } else {
    column = ColumnSpan::OfNumbers(type_, data(), size_);
  }
  column.validity = validity();
  return column;
}

size_t ColumnValues::memory_bytes() const {
  const size_t nulls = validity_.capacity() + views_.capacity() * sizeof(std::string_view);
  return nulls + VisitColumnType(type_, [&](auto tag) -> size_t {
           using T = typename decltype(tag)::type;
           if constexpr (std::is_same_v<T, std::string_view>) {
             return strings().heap().size() + strings().offsets().capacity() * sizeof(uint64_t);
           } else {
             return Vector<T>()->capacity() * sizeof(T);
           }
         });
}

}  // namespace cairn
