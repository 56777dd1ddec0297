#include "python/src/out/column.h"

#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "python/src/base/errors.h"
#include "python/src/out/arrays_out.h"

namespace cairn::python {
namespace {

// The bytes of the UTF-8 character at the front of `text`; 0 if there is none.
size_t CharacterBytes(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first < 0xF0) {
    const bool least = first != 0xE0 || byte(1) >= 0xA0;  // not overlong
    const bool plain = first != 0xED || byte(1) < 0xA0;   // no surrogate
    return follows(1) && follows(2) && least && plain ? 3 : 0;
  }
  if (first >= 0xF0 && first < 0xF5) {
    const bool least = first != 0xF0 || byte(1) >= 0x90;
    const bool most = first != 0xF4 || byte(1) < 0x90;  // at most U+10FFFF
    return follows(1) && follows(2) && follows(3) && least && most ? 4 : 0;
  }
  return 0;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    uint64_t word;
    if (text.size() >= sizeof word) {
      std::memcpy(&word, text.data(), sizeof word);
      if ((word & 0x8080808080808080u) == 0) {
        text.remove_prefix(sizeof word);
        continue;
      }
    }
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

const char* DtypeOf(DataType type) {
  return DtypeName(type);
}

template <typename T>
nb::object NumberAt(const void* data, size_t i) {
  return nb::cast(static_cast<const T*>(data)[i]);
}

}  // namespace

Column Column::Numbers(DataType type, const void* data, size_t size, const uint8_t* validity,
                       std::shared_ptr<const void> owner) {
  Column column;
  column.type_ = type;
  column.size_ = size;
  column.data_ = data;
  column.validity_ = validity;
  column.owner_ = std::move(owner);
  return column;
}

Column Column::Strings(bool text, std::string_view heap, const std::vector<uint64_t>& offsets,
                       const uint8_t* validity, std::shared_ptr<const void> owner) {
  Column column;
  column.kind_ = text ? Kind::kText : Kind::kBytes;
  column.type_ = text ? DataType::kText : DataType::kBytes;
  column.size_ = offsets.size() - 1;
  column.data_ = heap.data();
  column.offsets_ = offsets.data();
  column.validity_ = validity;
  column.owner_ = std::move(owner);
  return column;
}

Column Column::Structs(size_t size, std::vector<std::pair<std::string, Column>> fields) {
  std::set<std::string_view> names;
  for (const auto& [name, field] : fields) {
    if (names.insert(name).second) continue;
    ThrowInvalid("expected columns of different names, found '" + name +
                 "' twice; read them one by one, or rename the aggregate");
  }
  Column column;
  column.kind_ = Kind::kStruct;
  column.size_ = size;
  column.fields_ = std::move(fields);
  return column;
}

Column Column::AsBytes() const {
  Column column = *this;
  if (column.kind_ == Kind::kText) {
    column.kind_ = Kind::kBytes;
    column.type_ = DataType::kBytes;
  }
  for (auto& field : column.fields_) field.second = field.second.AsBytes();
  return column;
}

nb::object Column::Value(size_t i) const {
  if (kind_ == Kind::kStruct) {
    nb::list values;
    for (const auto& field : fields_) values.append(field.second.Value(i));
    return nb::steal(PySequence_Tuple(values.ptr()));
  }
  if (is_null(i)) return nb::none();
  if (kind_ == Kind::kBytes) {
    const std::string_view bytes = StringAt(i);
    return nb::bytes(bytes.data(), bytes.size());
  }
  switch (type_) {
    case DataType::kU8:
      return NumberAt<uint8_t>(data_, i);
    case DataType::kU16:
      return NumberAt<uint16_t>(data_, i);
    case DataType::kU32:
      return NumberAt<uint32_t>(data_, i);
    case DataType::kU64:
      return NumberAt<uint64_t>(data_, i);
    case DataType::kI8:
      return nb::int_(static_cast<const int8_t*>(data_)[i]);
    case DataType::kI16:
      return NumberAt<int16_t>(data_, i);
    case DataType::kI32:
      return NumberAt<int32_t>(data_, i);
    case DataType::kI64:
      return NumberAt<int64_t>(data_, i);
    case DataType::kF32:
      return NumberAt<float>(data_, i);
    case DataType::kF64:
      return NumberAt<double>(data_, i);
    case DataType::kText:
    case DataType::kBytes:
      break;
  }
  const std::string_view text = StringAt(i);
  PyObject* made =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "strict");
  if (made == nullptr) {
    PyErr_Clear();
    ThrowInvalid("value " + std::to_string(i) +
                 " of the column is text that is not UTF-8; as_bytes() returns it as bytes");
  }
  return nb::steal(made);
}

nb::object Column::ToList() const {
  nb::list values;
  for (size_t i = 0; i < size_; ++i) values.append(Value(i));
  return values;
}

nb::object Column::ToNumPy() const {
  if (kind_ != Kind::kNumber) {
    ThrowKeyType("expected a column of numbers, found one of " + TypeName() +
                 "; convert with pyarrow.array() or to_list()");
  }
  if (validity_ != nullptr) {
    ThrowKeyType(
        "expected a column of numbers, found one with nulls, which NumPy does not support; "
        "convert with pyarrow.array() or to_list()");
  }
  return ArrayOver(data_, size_, DtypeOf(type_), owner_);
}

std::string Column::TypeName() const {
  switch (kind_) {
    case Kind::kNumber:
      return type_ == DataType::kF32   ? "float"
             : type_ == DataType::kF64 ? "double"
                                       : DtypeOf(type_);
    case Kind::kText:
      return "large_string";
    case Kind::kBytes:
      return "large_binary";
    case Kind::kStruct:
      break;
  }
  std::string name = "struct<";
  for (const auto& field : fields_) {
    if (name.back() != '<') name += ", ";
    name += field.first + ": " + field.second.TypeName();
  }
  return name + ">";
}

void Column::CheckNames() const {
  for (const auto& [name, field] : fields_) {
    field.CheckNames();
    if (name.find('\0') == std::string::npos) continue;
    const nb::object quoted = nb::repr(nb::str(name.data(), name.size()));
    ThrowInvalid("expected a name without zero bytes, found " +
                 std::string(nb::str(quoted).c_str()) +
                 ": Arrow's interface would end it there; read the columns one by one");
  }
}

void Column::CheckText() const {
  for (const auto& field : fields_) field.second.CheckText();
  if (kind_ != Kind::kText) return;
  // Checks all text at once, then that no value begins within a character.
  const std::string_view heap(static_cast<const char*>(data_) + offsets_[0],
                              offsets_[size_] - offsets_[0]);
  bool good = IsUtf8(heap);
  for (size_t i = 0; good && i < size_; ++i) {
    const std::string_view text = StringAt(i);
    good = text.empty() || (static_cast<unsigned char>(text[0]) & 0xC0) != 0x80;
  }
  if (good) return;
  for (size_t i = 0; i < size_; ++i) {
    if (!IsUtf8(StringAt(i))) {
      ThrowInvalid("value " + std::to_string(i) +
                   " of the column is text that is not UTF-8; as_bytes() returns it as bytes");
    }
  }
}

// ---------------------------------------------------------------------------- keys, as logical
// values

namespace {

// One part of decoded keys.
struct DecodedPart {
  std::vector<unsigned char> numbers;
  StringList strings;
  std::vector<uint8_t> validity;
  bool nulls = false;

  template <typename T>
  void Push(T number) {
    const size_t end = numbers.size();
    numbers.resize(end + sizeof number);
    std::memcpy(numbers.data() + end, &number, sizeof number);
  }

  void Add(DataType type, const DataValue& value, size_t i) {
    if (i % 8 == 0) validity.push_back(0);
    const bool null = std::holds_alternative<std::monostate>(value);
    nulls = nulls || null;
    if (!null) validity.back() = static_cast<uint8_t>(validity.back() | 1 << (i % 8));
    if (type == DataType::kText || type == DataType::kBytes) {
      return strings.Append(null ? std::string_view() : std::get<std::string_view>(value));
    }
    const uint64_t u = std::holds_alternative<uint64_t>(value) ? std::get<uint64_t>(value) : 0;
    const int64_t s = std::holds_alternative<int64_t>(value) ? std::get<int64_t>(value) : 0;
    const double d = std::holds_alternative<double>(value) ? std::get<double>(value) : 0;
    switch (type) {
      case DataType::kU8:
        return Push(static_cast<uint8_t>(u));
      case DataType::kU16:
        return Push(static_cast<uint16_t>(u));
      case DataType::kU32:
        return Push(static_cast<uint32_t>(u));
      case DataType::kU64:
        return Push(u);
      case DataType::kI8:
        return Push(static_cast<int8_t>(s));
      case DataType::kI16:
        return Push(static_cast<int16_t>(s));
      case DataType::kI32:
        return Push(static_cast<int32_t>(s));
      case DataType::kI64:
        return Push(s);
      case DataType::kF32:
        return Push(static_cast<float>(d));
      default:
        return Push(d);
    }
  }
};

Column DecodedColumn(DataType type, size_t size, std::shared_ptr<const DecodedPart> part) {
  const uint8_t* validity = part->nulls ? part->validity.data() : nullptr;
  if (type == DataType::kText || type == DataType::kBytes) {
    return Column::Strings(type == DataType::kText, part->strings.heap(), part->strings.offsets(),
                           validity, part);
  }
  return Column::Numbers(type, part->numbers.data(), size, validity, part);
}

}  // namespace

Column EncodedKeysOf(const KeyCodec& codec, std::shared_ptr<const EncodedKeys> keys) {
  const absl::Span<const DataType> parts = codec.parts();
  const size_t size = keys->size();
  if (parts.size() == 1 && codec.nulls() == NullPolicy::kSkip) {
    switch (parts[0]) {
      case DataType::kU32:
        return Column::Numbers(parts[0], keys->u32().data(), size, nullptr, keys);
      case DataType::kU64:
        return Column::Numbers(parts[0], keys->u64().data(), size, nullptr, keys);
      case DataType::kText:
      case DataType::kBytes:
        return Column::Strings(parts[0] == DataType::kText, keys->heap(), keys->offsets(), nullptr,
                               keys);
      default:
        break;
    }
  }
  std::vector<std::shared_ptr<DecodedPart>> decoded;
  for (size_t part = 0; part < parts.size(); ++part) {
    decoded.push_back(std::make_shared<DecodedPart>());
  }
  std::vector<DataValue> values;
  std::string scratch;
  for (size_t i = 0; i < size; ++i) {
    Check(codec.Decode(*keys, i, &values, &scratch));
    for (size_t part = 0; part < parts.size(); ++part) {
      decoded[part]->Add(parts[part], values[part], i);
    }
  }
  if (parts.size() == 1) return DecodedColumn(parts[0], size, decoded[0]);
  std::vector<std::pair<std::string, Column>> fields;
  for (size_t part = 0; part < parts.size(); ++part) {
    fields.emplace_back("part" + std::to_string(part + 1),
                        DecodedColumn(parts[part], size, decoded[part]));
  }
  return Column::Structs(size, std::move(fields));
}

Column ValuesColumnOf(std::shared_ptr<const ColumnValues> values) {
  if (values->width() != 0) {
    return Column::Numbers(values->type(), values->data(), values->size(), values->validity(),
                           values);
  }
  return Column::Strings(values->type() == DataType::kText, values->strings().heap(),
                         values->strings().offsets(), values->validity(), values);
}

Column BinaryColumnOf(std::shared_ptr<const StringList> strings) {
  return Column::Strings(/*text=*/false, strings->heap(), strings->offsets(), nullptr, strings);
}

}  // namespace cairn::python
