#include "engine/c/arrow_in.h"

#include <charconv>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// A view of bytes: those of at most so many bytes are in the view itself.
constexpr size_t kViewBytes = 16;
constexpr int32_t kInlineBytes = 12;
constexpr int64_t kMostChildren = 1 << 16;

template <typename... Args>
absl::Status Invalid(const absl::FormatSpec<Args...>& format, const Args&... args) {
  return absl::InvalidArgumentError(absl::StrFormat(format, args...));
}

struct Format {
  ArrowType type;
  size_t width;     // of a number, or of kFixedBytes
  int64_t buffers;  // at least, where there are views
};

std::optional<Format> ParseFormat(std::string_view format) {
  if (format == "C") return Format{ArrowType::kU8, 1, 2};
  if (format == "S") return Format{ArrowType::kU16, 2, 2};
  if (format == "I") return Format{ArrowType::kU32, 4, 2};
  if (format == "L") return Format{ArrowType::kU64, 8, 2};
  if (format == "c") return Format{ArrowType::kI8, 1, 2};
  if (format == "s") return Format{ArrowType::kI16, 2, 2};
  if (format == "i") return Format{ArrowType::kI32, 4, 2};
  if (format == "l") return Format{ArrowType::kI64, 8, 2};
  if (format == "f") return Format{ArrowType::kF32, 4, 2};
  if (format == "g") return Format{ArrowType::kF64, 8, 2};
  if (format == "u" || format == "z") return Format{ArrowType::kBytes, 0, 3};
  if (format == "U" || format == "Z") return Format{ArrowType::kLargeBytes, 0, 3};
  if (format == "vu" || format == "vz") return Format{ArrowType::kBytesView, 0, 3};
  if (format.substr(0, 2) == "w:") {
    uint32_t width = 0;
    const char* const end = format.data() + format.size();
    const auto [parsed, error] = std::from_chars(format.data() + 2, end, width);
    if (error == std::errc() && parsed == end && width > 0 && width < uint32_t{1} << 31) {
      return Format{ArrowType::kFixedBytes, width, 2};
    }
  }
  return std::nullopt;
}

// What the array says of itself, whatever its type.
absl::Status CheckShape(const ArrowArray& array) {
  if (array.length < 0 || array.offset < 0 || array.offset > INT64_MAX - array.length) {
    return Invalid("expected a length and an offset of at least 0, found %d and %d", array.length,
                   array.offset);
  }
  if (array.null_count < -1 || array.null_count > array.length) {
    return Invalid("expected -1 to %d nulls, found %d", array.length, array.null_count);
  }
  if (array.n_buffers < 0 || (array.n_buffers > 0 && array.buffers == nullptr)) {
    return Invalid("expected %d buffers, found none", array.n_buffers);
  }
  return absl::OkStatus();
}

absl::Status CheckChildren(const ArrowSchema& schema, const ArrowArray& array) {
  if (schema.n_children < 0 || schema.n_children > kMostChildren ||
      array.n_children != schema.n_children) {
    return Invalid("expected as many children in the array as in the schema, found %d and %d",
                   array.n_children, schema.n_children);
  }
  if (schema.n_children > 0 && (schema.children == nullptr || array.children == nullptr)) {
    return Invalid("expected %d children, found none", schema.n_children);
  }
  return absl::OkStatus();
}

// The bitmap of what is not null, or null where nothing is.
absl::StatusOr<const uint8_t*> Validity(const ArrowArray& array) {
  const uint8_t* const validity = static_cast<const uint8_t*>(array.buffers[0]);
  if (validity == nullptr && array.null_count > 0) {
    return Invalid("expected a bitmap of %d nulls, found none", array.null_count);
  }
  return array.null_count == 0 ? nullptr : validity;
}

}  // namespace

absl::StatusOr<ArrowColumn> ArrowColumn::Read(const ArrowSchema& schema, const ArrowArray& array,
                                              size_t first, size_t count) {
  RETURN_IF_ERROR(CheckShape(array));
  RETURN_IF_ERROR(CheckChildren(schema, array));
  const std::optional<Format> format = ParseFormat(schema.format);
  if (!format.has_value()) {
    return Invalid("expected an array of numbers, text or bytes, found one of format '%s'",
                   schema.format);
  }
  if (schema.dictionary != nullptr || array.dictionary != nullptr) {
    return Invalid("expected values, found a dictionary and indices into it");
  }
  if (schema.n_children != 0) return Invalid("expected no children, found %d", schema.n_children);
  const bool views = format->type == ArrowType::kBytesView;
  if (views ? array.n_buffers < format->buffers : array.n_buffers != format->buffers) {
    return Invalid("expected %s%d buffers for format '%s', found %d", views ? "at least " : "",
                   format->buffers, schema.format, array.n_buffers);
  }
  if (static_cast<uint64_t>(array.length) < first + count) {
    return Invalid("expected at least %d elements, found %d", first + count, array.length);
  }
  ArrowColumn column;
  column.type_ = format->type;
  column.format_ = schema.format;
  column.size_ = count;
  column.first_ = static_cast<size_t>(array.offset) + first;
  column.width_ = format->width;
  if (column.first_ + count > SIZE_MAX / 2 / (kViewBytes + format->width)) {
    return Invalid("expected elements that fit the memory, found %d behind %d", count,
                   column.first_);
  }
  ASSIGN_OR_RETURN(column.validity_, Validity(array));
  column.values_ = static_cast<const char*>(array.buffers[1]);
  if (count == 0) return column;
  if (column.values_ == nullptr) return Invalid("expected %d elements, found no buffer", count);
  RETURN_IF_ERROR(column.CheckBytes(array));
  if (views) column.heaps_ = array.buffers + 2;
  if (array.n_buffers == 3) column.heap_ = static_cast<const char*>(array.buffers[2]);
  return column;
}

absl::Status ArrowColumn::CheckBytes(const ArrowArray& array) const {
  bool has_bytes = false;
  if (type_ == ArrowType::kBytes) {
    RETURN_IF_ERROR(CheckOffsets<int32_t>());
    has_bytes = offset<int32_t>(size_) > offset<int32_t>(0);
  } else if (type_ == ArrowType::kLargeBytes) {
    RETURN_IF_ERROR(CheckOffsets<int64_t>());
    has_bytes = offset<int64_t>(size_) > offset<int64_t>(0);
  } else if (type_ == ArrowType::kBytesView) {
    return CheckViews(array);
  }
  if (has_bytes && array.buffers[2] == nullptr) {
    return Invalid("expected a buffer of bytes, found none");
  }
  return absl::OkStatus();
}

template <typename Offset>
absl::Status ArrowColumn::CheckOffsets() const {
  Offset last = 0;
  for (size_t i = 0; i <= size_; ++i) {
    const Offset next = offset<Offset>(i);
    if (next < last) {
      return Invalid("expected offsets that ascend from 0, found %d behind %d at element %d", next,
                     last, i);
    }
    last = next;
  }
  return absl::OkStatus();
}

// Behind the views stand buffers of bytes, and last how large each is.
absl::Status ArrowColumn::CheckViews(const ArrowArray& array) const {
  const int64_t heaps = array.n_buffers - 3;
  const char* const sizes = static_cast<const char*>(array.buffers[array.n_buffers - 1]);
  if (heaps > 0 && sizes == nullptr)
    return Invalid("expected sizes of %d buffers, found none", heaps);
  for (size_t i = 0; i < size_; ++i) {
    if (IsNull(i)) continue;
    int32_t view[4];
    std::memcpy(view, values_ + (first_ + i) * kViewBytes, kViewBytes);
    if (view[0] < 0) return Invalid("element %d: expected a length, found %d", i, view[0]);
    if (view[0] <= kInlineBytes) continue;
    if (view[2] < 0 || view[2] >= heaps) {
      return Invalid("element %d: expected one of %d buffers, found %d", i, heaps, view[2]);
    }
    int64_t size = 0;
    std::memcpy(&size, sizes + static_cast<size_t>(view[2]) * sizeof size, sizeof size);
    if (array.buffers[2 + view[2]] == nullptr || view[3] < 0 || int64_t{view[3]} + view[0] > size) {
      return Invalid("element %d: expected bytes in a buffer of %d, found %d behind %d", i, size,
                     view[0], view[3]);
    }
  }
  return absl::OkStatus();
}

std::string_view ArrowColumn::bytes(size_t i) const {
  switch (type_) {
    case ArrowType::kBytes: {
      const int32_t begin = offset<int32_t>(i);
      return {heap_ + begin, static_cast<size_t>(offset<int32_t>(i + 1) - begin)};
    }
    case ArrowType::kLargeBytes: {
      const int64_t begin = offset<int64_t>(i);
      return {heap_ + begin, static_cast<size_t>(offset<int64_t>(i + 1) - begin)};
    }
    case ArrowType::kFixedBytes:
      return {values_ + (first_ + i) * width_, width_};
    default:
      break;
  }
  if (IsNull(i)) return {};  // its view may be anything
  const char* const at = values_ + (first_ + i) * kViewBytes;
  int32_t view[4];
  std::memcpy(view, at, kViewBytes);
  const size_t size = static_cast<size_t>(view[0]);
  if (view[0] <= kInlineBytes) return {at + sizeof(int32_t), size};
  return {static_cast<const char*>(heaps_[view[2]]) + view[3], size};
}

size_t ArrowColumn::FirstNull() const {
  if (validity_ == nullptr) return size_;
  for (size_t i = 0; i < size_;) {
    const size_t bit = first_ + i;
    if (bit % 8 == 0 && validity_[bit / 8] == 0xFF) {
      i += 8;
    } else if (IsNull(i)) {
      return i;
    } else {
      ++i;
    }
  }
  return size_;
}

absl::Status CheckArrow(const ArrowSchema* schema, const ArrowArray* array) {
  if (schema == nullptr) return Invalid("expected an ArrowSchema, found NULL");
  if (array == nullptr) return Invalid("expected an ArrowArray, found NULL");
  if (schema->release == nullptr) return Invalid("expected an ArrowSchema, found a released one");
  if (array->release == nullptr) return Invalid("expected an ArrowArray, found a released one");
  if (schema->format == nullptr) return Invalid("expected a format in the ArrowSchema, found NULL");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ArrowColumn>> ReadColumns(const ArrowSchema* schema,
                                                     const ArrowArray* array) {
  RETURN_IF_ERROR(CheckArrow(schema, array));
  std::vector<ArrowColumn> columns;
  RETURN_IF_ERROR(CheckShape(*array));
  if (std::string_view(schema->format) != "+s") {
    ASSIGN_OR_RETURN(ArrowColumn column,
                     ArrowColumn::Read(*schema, *array, 0, static_cast<size_t>(array->length)));
    columns.push_back(column);
    return columns;
  }
  RETURN_IF_ERROR(CheckChildren(*schema, *array));
  if (array->n_buffers != 1) {
    return Invalid("expected 1 buffer for format '+s', found %d", array->n_buffers);
  }
  if (schema->n_children == 0) return Invalid("expected a child for each part, found none");
  const size_t first = static_cast<size_t>(array->offset);
  const size_t count = static_cast<size_t>(array->length);
  for (int64_t i = 0; i < schema->n_children; ++i) {
    absl::Status status = CheckArrow(schema->children[i], array->children[i]);
    if (status.ok()) {
      auto column = ArrowColumn::Read(*schema->children[i], *array->children[i], first, count);
      if (column.ok()) columns.push_back(*column);
      status = column.status();
    }
    if (!status.ok()) return Invalid("part %d: %s", i + 1, status.message());
  }
  ASSIGN_OR_RETURN(const uint8_t* const validity, Validity(*array));
  for (size_t i = first; validity != nullptr && i < first + count; ++i) {
    if ((validity[i / 8] >> (i % 8) & 1) == 0) {
      return Invalid("element %d: expected a struct, whose parts may be null, found null",
                     i - first);
    }
  }
  return columns;
}

}  // namespace cairn
