// ArrowColumn: validates an array's description of itself, and reads its elements.
#include <charconv>
#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"
#include "cairn/internal/arrow.h"
#include "index/keys/key_number.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// The size of a view of bytes. Strings of up to kInlineBytes bytes are in the view itself.
constexpr size_t kViewBytes = 16;
constexpr int32_t kInlineBytes = 12;
constexpr int64_t kMaxChildren = 1 << 16;

// Arrow's formats of DataType, in its order.
constexpr std::string_view kFormats = "CSILcsilfgUZ";
constexpr std::string_view kNumberFormats = kFormats.substr(0, 10);

// Arrow's names of types, for messages.
struct NamedFormat {
  std::string_view format, name;
};
constexpr NamedFormat kNames[] = {
    {"n", "null"},    {"b", "bool"},         {"c", "int8"},         {"C", "uint8"},
    {"s", "int16"},   {"S", "uint16"},       {"i", "int32"},        {"I", "uint32"},
    {"l", "int64"},   {"L", "uint64"},       {"e", "float16"},      {"f", "float32"},
    {"g", "float64"}, {"z", "binary"},       {"Z", "large_binary"}, {"vz", "binary_view"},
    {"u", "string"},  {"U", "large_string"}, {"vu", "string_view"}, {"+s", "struct"},
    {"+l", "list"},   {"+L", "large_list"},  {"tdD", "date32"},     {"tdm", "date64"},
};

template <typename... Args>
absl::Status Invalid(const absl::FormatSpec<Args...>& format, const Args&... args) {
  return absl::InvalidArgumentError(absl::StrFormat(format, args...));
}

// Checks the members of an array that do not depend on its type.
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
  if (schema.n_children < 0 || schema.n_children > kMaxChildren ||
      array.n_children != schema.n_children) {
    return Invalid("expected the same number of children in array and schema, found %d and %d",
                   array.n_children, schema.n_children);
  }
  if (schema.n_children > 0 && (schema.children == nullptr || array.children == nullptr)) {
    return Invalid("expected %d children, found none", schema.n_children);
  }
  return absl::OkStatus();
}

// The validity bitmap, or nullptr if no element is null.
absl::StatusOr<const uint8_t*> Validity(const ArrowArray& array) {
  const uint8_t* const validity = static_cast<const uint8_t*>(array.buffers[0]);
  if (validity == nullptr && array.null_count > 0) {
    return Invalid("expected a bitmap of %d nulls, found none", array.null_count);
  }
  return array.null_count == 0 ? nullptr : validity;
}

absl::Status CheckPresent(const ArrowSchema* schema, const ArrowArray* array) {
  if (schema == nullptr) return Invalid("expected an ArrowSchema, found NULL");
  if (array == nullptr) return Invalid("expected an ArrowArray, found NULL");
  if (schema->release == nullptr) return Invalid("expected an ArrowSchema, found a released one");
  if (array->release == nullptr) return Invalid("expected an ArrowArray, found a released one");
  if (schema->format == nullptr) return Invalid("expected a format in the ArrowSchema, found NULL");
  return absl::OkStatus();
}

bool IsStruct(const ArrowSchema& schema) {
  return std::string_view(schema.format) == "+s";
}

absl::Status CheckStruct(const ArrowSchema& schema, const ArrowArray& array) {
  RETURN_IF_ERROR(CheckShape(array));
  RETURN_IF_ERROR(CheckChildren(schema, array));
  if (array.n_buffers != 1) {
    return Invalid("expected 1 buffer for format '+s', found %d", array.n_buffers);
  }
  if (schema.n_children == 0) return Invalid("expected a child for each part, found none");
  ASSIGN_OR_RETURN(const uint8_t* const validity, Validity(array));
  const size_t first = static_cast<size_t>(array.offset);
  for (size_t i = first; validity != nullptr && i < first + static_cast<size_t>(array.length);
       ++i) {
    if ((validity[i / 8] >> (i % 8) & 1) == 0) {
      return Invalid("element %d: expected a struct, whose parts may be null, found null",
                     i - first);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ArrowColumn> ReadChild(const ArrowSchema& schema, const ArrowArray& array,
                                      size_t i) {
  RETURN_IF_ERROR(CheckPresent(schema.children[i], array.children[i]));
  return ArrowColumn::Read(*schema.children[i], *array.children[i],
                           static_cast<size_t>(array.offset), static_cast<size_t>(array.length));
}

absl::StatusOr<ArrowColumn> ReadWhole(const ArrowSchema& schema, const ArrowArray& array) {
  RETURN_IF_ERROR(CheckShape(array));
  return ArrowColumn::Read(schema, array, 0, static_cast<size_t>(array.length));
}

}  // namespace

int64_t ArrowColumn::Format::buffers() const {
  return layout == Layout::kNumbers || layout == Layout::kFixed ? 2 : 3;
}

bool ArrowColumn::Parse(std::string_view text, Format* format) {
  if (text.size() == 1) {
    const size_t number = kNumberFormats.find(text[0]);
    if (number != std::string_view::npos) {
      const DataType type = static_cast<DataType>(number);
      *format = {type, Layout::kNumbers, FixedWidth(type)};
      return true;
    }
  }
  if (text == "u" || text == "z") {
    *format = {text == "u" ? DataType::kText : DataType::kBytes, Layout::kOffsets32, 0};
    return true;
  }
  if (text == "U" || text == "Z") {
    *format = {text == "U" ? DataType::kText : DataType::kBytes, Layout::kOffsets64, 0};
    return true;
  }
  if (text == "vu" || text == "vz") {
    *format = {text == "vu" ? DataType::kText : DataType::kBytes, Layout::kViews, 0};
    return true;
  }
  if (text.substr(0, 2) == "w:") {
    uint32_t width = 0;
    const char* const end = text.data() + text.size();
    const auto [parsed, error] = std::from_chars(text.data() + 2, end, width);
    *format = {DataType::kBytes, Layout::kFixed, width};
    return error == std::errc() && parsed == end && width > 0 && width < uint32_t{1} << 31;
  }
  return false;
}

bool ArrowColumn::Parse(const ArrowSchema& schema, Format* format) {
  if (!Parse(schema.format, format)) return false;
  if (schema.dictionary == nullptr) return true;
  Format values;
  return format->type <= DataType::kI64 && schema.dictionary->release != nullptr &&
         schema.dictionary->format != nullptr && schema.dictionary->dictionary == nullptr &&
         Parse(schema.dictionary->format, &values);
}

absl::StatusOr<ArrowColumn> ArrowColumn::Read(const ArrowSchema& schema, const ArrowArray& array,
                                              size_t first, size_t count) try {
  RETURN_IF_ERROR(CheckPresent(&schema, &array));
  RETURN_IF_ERROR(CheckShape(array));
  RETURN_IF_ERROR(CheckChildren(schema, array));
  const bool is_dictionary = schema.dictionary != nullptr;
  if (is_dictionary != (array.dictionary != nullptr)) {
    return Invalid("expected a dictionary in the array and the schema, found one in the %s only",
                   is_dictionary ? "schema" : "array");
  }
  if (is_dictionary) RETURN_IF_ERROR(CheckPresent(schema.dictionary, array.dictionary));
  Format format;
  if (!Parse(schema, &format)) {
    return Invalid("expected an array of numbers, text or bytes, found one of %s, format '%s'",
                   ArrowTypeName(schema), schema.format);
  }
  if (schema.n_children != 0) return Invalid("expected no children, found %d", schema.n_children);
  const bool views = format.layout == Layout::kViews;
  if (views ? array.n_buffers < format.buffers() : array.n_buffers != format.buffers()) {
    return Invalid("expected %s%d buffers for format '%s', found %d", views ? "at least " : "",
                   format.buffers(), schema.format, array.n_buffers);
  }
  const uint64_t length = static_cast<uint64_t>(array.length);
  if (first > length || count > length - first) {
    return Invalid("expected at least %d elements, found %d", first + count, array.length);
  }
  ArrowColumn column;
  column.type_ = format.type;
  column.layout_ = format.layout;
  column.schema_ = &schema;
  column.size_ = count;
  column.first_ = static_cast<size_t>(array.offset) + first;
  column.width_ = format.width;
  if (column.first_ + count > SIZE_MAX / 2 / (kViewBytes + format.width)) {
    return Invalid("expected elements that fit the memory, found %d from element %d on", count,
                   column.first_);
  }
  ASSIGN_OR_RETURN(column.validity_, Validity(array));
  column.values_ = static_cast<const char*>(array.buffers[1]);
  if (is_dictionary) {
    RETURN_IF_ERROR(CheckShape(*array.dictionary));
    auto values = Read(*schema.dictionary, *array.dictionary, 0,
                       static_cast<size_t>(array.dictionary->length));
    if (!values.ok()) {
      return absl::Status(values.status().code(),
                          absl::StrFormat("dictionary: %s", values.status().message()));
    }
    column.dictionary_ = std::make_shared<const ArrowColumn>(*std::move(values));
  }
  if (count == 0) return column;
  if (column.values_ == nullptr) return Invalid("expected %d elements, found no buffer", count);
  if (is_dictionary) RETURN_IF_ERROR(column.CheckIndices());
  RETURN_IF_ERROR(column.CheckBytes(array));
  if (views) column.heaps_ = array.buffers + 2;
  if (!views && format.buffers() == 3) column.heap_ = static_cast<const char*>(array.buffers[2]);
  return column;
} catch (...) {
  return StatusOfException("reading an Arrow array");
}

absl::Status ArrowColumn::CheckIndices() const {
  for (size_t i = 0; i < size_; ++i) {
    if (IsMarkedNull(i) || Index(i) < dictionary_->size()) continue;
    return Invalid("element %d: expected an index of one of %d values of the dictionary, found %d",
                   i, dictionary_->size(), static_cast<int64_t>(Index(i)));
  }
  return absl::OkStatus();
}

uint64_t ArrowColumn::Index(size_t i) const {
  switch (type_) {
    case DataType::kU8:
      return At<uint8_t>(i);
    case DataType::kU16:
      return At<uint16_t>(i);
    case DataType::kU32:
      return At<uint32_t>(i);
    case DataType::kI8:
      return static_cast<uint64_t>(At<int8_t>(i));
    case DataType::kI16:
      return static_cast<uint64_t>(At<int16_t>(i));
    case DataType::kI32:
      return static_cast<uint64_t>(At<int32_t>(i));
    default:
      return At<uint64_t>(i);
  }
}

absl::Status ArrowColumn::CheckBytes(const ArrowArray& array) const {
  switch (layout_) {
    case Layout::kOffsets32:
      return CheckOffsets<int32_t>(array);
    case Layout::kOffsets64:
      return CheckOffsets<int64_t>(array);
    case Layout::kViews:
      return CheckViews(array);
    case Layout::kNumbers:
    case Layout::kFixed:
      break;
  }
  return absl::OkStatus();
}

template <typename Offset>
absl::Status ArrowColumn::CheckOffsets(const ArrowArray& array) const {
  // Without a branch, so that the compiler vectorizes it; the wrong element is found afterwards.
  bool ascend = At<Offset>(0) >= 0;
  for (size_t i = 0; i < size_; ++i) ascend &= At<Offset>(i + 1) >= At<Offset>(i);
  Offset last = 0;
  for (size_t i = 0; !ascend && i <= size_; ++i) {
    const Offset next = At<Offset>(i);
    if (next < last) {
      return Invalid("expected offsets that ascend from 0, found %d after %d at element %d", next,
                     last, i);
    }
    last = next;
  }
  if (At<Offset>(size_) > At<Offset>(0) && array.buffers[2] == nullptr) {
    return Invalid("expected a buffer of bytes, found none");
  }
  return absl::OkStatus();
}

// Buffers of bytes follow the views; the last buffer holds their sizes.
absl::Status ArrowColumn::CheckViews(const ArrowArray& array) const {
  const int64_t heaps = array.n_buffers - 3;
  const char* const sizes = static_cast<const char*>(array.buffers[array.n_buffers - 1]);
  if (heaps > 0 && sizes == nullptr) {
    return Invalid("expected sizes of %d buffers, found none", heaps);
  }
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
      return Invalid("element %d: expected bytes in a buffer of %d, found %d at offset %d", i, size,
                     view[0], view[3]);
    }
  }
  return absl::OkStatus();
}

std::string ArrowColumn::type_name() const {
  return ArrowTypeName(*schema_);
}

size_t ArrowColumn::FirstNull() const {
  const bool null_values = dictionary_ != nullptr && dictionary_->FirstNull() < dictionary_->size();
  if (validity_ == nullptr && !null_values) return size_;
  for (size_t i = 0; i < size_;) {
    const size_t bit = first_ + i;
    if (!null_values && bit % 8 == 0 && validity_[bit / 8] == 0xFF) {
      i += 8;
    } else if (IsNull(i)) {
      return i;
    } else {
      ++i;
    }
  }
  return size_;
}

DataValue ArrowColumn::value(size_t i) const {
  if (IsNull(i)) return std::monostate();
  if (dictionary_ != nullptr) return dictionary_->value(Index(i));
  switch (type_) {
    case DataType::kU8:
      return uint64_t{At<uint8_t>(i)};
    case DataType::kU16:
      return uint64_t{At<uint16_t>(i)};
    case DataType::kU32:
      return uint64_t{At<uint32_t>(i)};
    case DataType::kU64:
      return At<uint64_t>(i);
    case DataType::kI8:
      return int64_t{At<int8_t>(i)};
    case DataType::kI16:
      return int64_t{At<int16_t>(i)};
    case DataType::kI32:
      return int64_t{At<int32_t>(i)};
    case DataType::kI64:
      return At<int64_t>(i);
    case DataType::kF32:
      return double{At<float>(i)};
    case DataType::kF64:
      return At<double>(i);
    case DataType::kText:
    case DataType::kBytes:
      break;
  }
  std::string_view view;
  View(i, absl::MakeSpan(&view, 1));
  return view;
}

const void* ArrowColumn::numbers() const {
  return values_ == nullptr ? nullptr : values_ + first_ * width_;
}

void ArrowColumn::CopyNumbers(void* to) const {
  if (size_ == 0) return;
  if (dictionary_ == nullptr) {
    std::memcpy(to, numbers(), size_ * width_);
    return;
  }
  const size_t width = dictionary_->width_;
  const char* const from = static_cast<const char*>(dictionary_->numbers());
  char* const numbers = static_cast<char*>(to);
  for (size_t i = 0; i < size_; ++i) {
    if (!IsMarkedNull(i)) std::memcpy(numbers + i * width, from + Index(i) * width, width);
  }
}

template <typename Offset>
void ArrowColumn::ViewOffsets(size_t first, absl::Span<std::string_view> views) const {
  for (size_t i = 0; i < views.size(); ++i) {
    const Offset begin = At<Offset>(first + i);
    views[i] = {heap_ + begin, static_cast<size_t>(At<Offset>(first + i + 1) - begin)};
  }
}

std::string_view ArrowColumn::View(size_t i) const {
  if (IsNull(i)) return {};  // the bytes are unspecified
  const char* const at = values_ + (first_ + i) * kViewBytes;
  int32_t view[4];
  std::memcpy(view, at, kViewBytes);
  const size_t size = static_cast<size_t>(view[0]);
  if (view[0] <= kInlineBytes) return {at + sizeof(int32_t), size};
  return {static_cast<const char*>(heaps_[view[2]]) + view[3], size};
}

void ArrowColumn::View(size_t first, absl::Span<std::string_view> views) const {
  if (dictionary_ != nullptr) {
    for (size_t i = 0; i < views.size(); ++i) {
      views[i] = {};
      if (!IsMarkedNull(first + i)) dictionary_->View(Index(first + i), views.subspan(i, 1));
    }
    return;
  }
  switch (layout_) {
    case Layout::kOffsets32:
      return ViewOffsets<int32_t>(first, views);
    case Layout::kOffsets64:
      return ViewOffsets<int64_t>(first, views);
    case Layout::kViews:
      for (size_t i = 0; i < views.size(); ++i) views[i] = View(first + i);
      return;
    case Layout::kNumbers:
    case Layout::kFixed:
      break;
  }
  for (size_t i = 0; i < views.size(); ++i) {
    views[i] = {values_ + (first_ + first + i) * width_, width_};
  }
}

std::optional<DataType> DataTypeOf(const ArrowSchema& schema) {
  const ArrowSchema* const values = schema.dictionary == nullptr ? &schema : schema.dictionary;
  ArrowColumn::Format format;
  if (schema.format == nullptr || !ArrowColumn::Parse(schema, &format)) return std::nullopt;
  ArrowColumn::Parse(values->format, &format);
  return format.type;
}

std::string_view ArrowFormat(DataType type) {
  return kFormats.substr(static_cast<size_t>(type), 1);
}

std::string ArrowTypeName(std::string_view format) {
  for (const NamedFormat& named : kNames) {
    if (named.format == format) return std::string(named.name);
  }
  return absl::StrFormat("the format '%s'", format);
}

std::string ArrowTypeName(const ArrowSchema& schema) {
  if (schema.format == nullptr) return "no type";
  if (schema.dictionary == nullptr) return ArrowTypeName(schema.format);
  if (schema.dictionary->release == nullptr) return "a dictionary that has been released";
  if (schema.dictionary->dictionary != nullptr) return "a dictionary of dictionaries";
  return "a dictionary of " + ArrowTypeName(*schema.dictionary);
}

absl::StatusOr<ArrowColumn> ReadArrowColumn(const ArrowSchema* schema, const ArrowArray* array,
                                            size_t i) try {
  RETURN_IF_ERROR(CheckPresent(schema, array));
  const bool is_struct = IsStruct(*schema);
  if (is_struct) RETURN_IF_ERROR(CheckStruct(*schema, *array));
  const size_t columns = is_struct ? static_cast<size_t>(schema->n_children) : 1;
  if (i >= columns) return Invalid("expected more than %d columns, found %d", i, columns);
  return is_struct ? ReadChild(*schema, *array, i) : ReadWhole(*schema, *array);
} catch (...) {
  return StatusOfException("reading an Arrow array");
}

absl::StatusOr<std::vector<ArrowColumn>> ReadArrowColumns(const ArrowSchema* schema,
                                                          const ArrowArray* array) try {
  RETURN_IF_ERROR(CheckPresent(schema, array));
  std::vector<ArrowColumn> columns;
  if (!IsStruct(*schema)) {
    ASSIGN_OR_RETURN(const ArrowColumn column, ReadWhole(*schema, *array));
    columns.push_back(column);
    return columns;
  }
  RETURN_IF_ERROR(CheckStruct(*schema, *array));
  for (size_t i = 0; i < static_cast<size_t>(schema->n_children); ++i) {
    auto column = ReadChild(*schema, *array, i);
    if (!column.ok()) {
      return absl::Status(column.status().code(),
                          absl::StrFormat("part %d: %s", i + 1, column.status().message()));
    }
    columns.push_back(*column);
  }
  return columns;
} catch (...) {
  return StatusOfException("reading an Arrow array");
}

}  // namespace cairn
