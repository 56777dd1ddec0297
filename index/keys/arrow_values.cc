// ArrowValues and KeysOf: columns as arrays in the order of the codec's parts, and as keys.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>

#include "cairn/internal/arrow.h"
#include "index/keys/key_number.h"
#include "index/machine/guard.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// A search of a large batch uses all cores, so the preparation must not use only one.
constexpr size_t kGrain = size_t{1} << 16;  // views that take longer than a thread's start
constexpr size_t kMaxThreads = 16;

// A thread's spare views, and the number that it keeps: 64 MB. New memory for a large batch costs
// 10% of its search.
constexpr size_t kMaxSpareViews = size_t{1} << 22;
thread_local std::vector<std::string_view> spare_views;

bool HasNull(const ColumnSpan& column) {
  if (column.validity == nullptr) return false;
  for (size_t i = 0; i < column.size();) {
    const size_t bit = column.first_bit + i;
    if (bit % 8 == 0 && column.validity[bit / 8] == 0xFF) {
      i += 8;
    } else if (column.is_null(i)) {
      return true;
    } else {
      ++i;
    }
  }
  return false;
}

void WriteViews(const ArrowColumn& column, std::string_view* to) {
  // Small batches do not count the cores, since that takes 2 us.
  const size_t slices = column.size() / kGrain;
  if (slices < 2) return column.View(0, absl::MakeSpan(to, column.size()));
  const size_t threads =
      std::min<size_t>({slices, std::thread::hardware_concurrency(), kMaxThreads});
  ParallelFor(static_cast<int>(threads), slices, [&](size_t slice) {
    const size_t first = column.size() * slice / slices;
    const size_t end = column.size() * (slice + 1) / slices;
    column.View(first, absl::MakeSpan(to + first, end - first));
  });
}

}  // namespace

ArrowValues& ArrowValues::operator=(ArrowValues&& other) noexcept {
  std::swap(part_, other.part_);
  views_.swap(other.views_);
  numbers_.swap(other.numbers_);
  validity_.swap(other.validity_);
  return *this;
}

ArrowValues::~ArrowValues() {
  if (views_.size() <= kMaxSpareViews && views_.size() > spare_views.size()) {
    spare_views.swap(views_);
  }
}

absl::StatusOr<ArrowValues> ArrowValues::Of(DataType type,
                                            absl::Span<const ArrowColumn> columns) try {
  size_t size = 0;
  for (const ArrowColumn& column : columns) size += column.size();
  ArrowValues values;
  if (FixedWidth(type) == 0) {
    values.ReadText(columns, size);
  } else {
    values.ReadNumbers(type, columns, size);
  }
  values.ReadValidity(columns, size);
  return values;
} catch (...) {
  return StatusOfException("reading columns of keys");
}

void ArrowValues::ReadText(absl::Span<const ArrowColumn> columns, size_t size) {
  views_.swap(spare_views);
  if (views_.size() < size) views_.resize(size);
  std::string_view* to = views_.data();
  for (const ArrowColumn& column : columns) {
    WriteViews(column, to);
    to += column.size();
  }
  part_.values = absl::MakeConstSpan(views_.data(), size);
}

void ArrowValues::ReadNumbers(DataType type, absl::Span<const ArrowColumn> columns, size_t size) {
  const size_t width = FixedWidth(type);
  const bool in_place = columns.size() == 1 && !columns[0].is_dictionary();
  const void* numbers = in_place ? columns[0].numbers() : nullptr;
  if (!in_place || reinterpret_cast<uintptr_t>(numbers) % width != 0) {
    numbers_.resize((size * width + 7) / 8);
    char* to = reinterpret_cast<char*>(numbers_.data());
    for (const ArrowColumn& column : columns) {
      column.CopyNumbers(to);
      to += column.size() * width;
    }
    numbers = numbers_.data();
  }
  part_ = ColumnSpan::OfNumbers(type, numbers, size);
}

void ArrowValues::ReadValidity(absl::Span<const ArrowColumn> columns, size_t size) {
  if (columns.size() == 1 && !columns[0].is_dictionary()) {
    part_.validity = columns[0].validity();
    part_.first_bit = columns[0].first_bit();
    return;
  }
  const bool nulls = std::any_of(columns.begin(), columns.end(), [](const ArrowColumn& column) {
    return column.validity() != nullptr || column.FirstNull() < column.size();
  });
  if (!nulls) return;
  validity_.resize(size / 8 + 1);
  size_t to = 0;
  for (const ArrowColumn& column : columns) {
    for (size_t i = 0; i < column.size(); ++i, ++to) {
      if (!column.IsNull(i)) {
        validity_[to / 8] = static_cast<uint8_t>(validity_[to / 8] | 1 << (to % 8));
      }
    }
  }
  part_.validity = validity_.data();
}

bool KeysAreValues(const KeyCodec& codec) {
  const DataType type = codec.parts()[0];
  return codec.parts().size() == 1 && codec.nulls() == NullPolicy::kSkip &&
         (IsText(type) || type == DataType::kU32 || type == DataType::kU64);
}

absl::StatusOr<KeyBatch> KeysOf(const KeyCodec& codec, absl::Span<const ColumnSpan> columns,
                                EncodedKeys* encoded) {
  if (KeysAreValues(codec) && columns.size() == 1 && !HasNull(columns[0])) {
    const auto& values = columns[0].values;
    const auto* const u32 = std::get_if<absl::Span<const uint32_t>>(&values);
    const auto* const u64 = std::get_if<absl::Span<const uint64_t>>(&values);
    const auto* const text = std::get_if<absl::Span<const std::string_view>>(&values);
    if (codec.kind() == PhysicalType::kU32 && u32 != nullptr) return KeyBatch(*u32);
    if (codec.kind() == PhysicalType::kU64 && u64 != nullptr) return KeyBatch(*u64);
    if (codec.kind() == PhysicalType::kBytes && text != nullptr) return KeyBatch(*text);
  }
  RETURN_IF_ERROR(codec.AppendColumns(columns, encoded));
  return encoded->Batch();
}

}  // namespace cairn
