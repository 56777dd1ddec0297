#include "python/src/in/keys_in.h"

#include <cstdint>
#include <utility>

#include "python/src/base/errors.h"
#include "python/src/in/values.h"

namespace cairn::python {
namespace {

std::string ExpectedKeys(const KeyCodec& codec) {
  if (codec.parts().size() > 1) {
    return "a tuple of " + std::to_string(codec.parts().size()) +
           " columns, an Arrow struct or table with that many columns, or a list of tuples";
  }
  return IsText(codec.parts()[0])
             ? "an Arrow array of strings or binary, or a list of str or bytes"
             : "an array of " + std::string(DtypeName(codec.parts()[0])) + ", or a list of numbers";
}

[[noreturn]] void NoKeys(nb::handle object, const KeyCodec& codec, const char* argument) {
  std::string hint;
  if (nb::hasattr(object, "to_numpy")) {
    hint = codec.parts().size() > 1   ? "; convert with pyarrow.table()"
           : IsText(codec.parts()[0]) ? "; convert with pyarrow.array()"
                                      : "; convert with .to_numpy()";
  } else if (nb::hasattr(object, "dtype")) {
    hint = "; convert with pyarrow.array() or .tolist()";
  }
  ThrowKeyType(std::string(argument) + ": expected " + ExpectedKeys(codec) + ", found " +
               Described(object) + hint);
}

}  // namespace

ColumnSpan PartOf(const Buffer& buffer, DataType type) {
  return ColumnSpan::OfNumbers(type, buffer.data(), buffer.size());
}

KeysIn::KeysIn(nb::handle object, const KeyCodec& codec, const char* argument,
               std::vector<std::unique_ptr<ArrowIn>> read, bool convert)
    : convert_(convert), read_(std::move(read)), encoded_(codec.kind()) {
  const bool composite = codec.parts().size() > 1;
  PyObject* o = object.ptr();
  if (PyList_Check(o) || PyRange_Check(o) || (PyTuple_Check(o) && !composite)) {
    ReadList(object, codec, argument);
    return;
  }
  if (PyTuple_Check(o)) {
    bool one_key = true;
    for (nb::handle value : object) one_key = one_key && IsValue(value);
    if (!one_key) {
      ReadColumns(object, codec, argument);
      return;
    }
    Append(codec, object, argument);
    batch_ = encoded_.Batch();
    return;
  }
  if (composite || !PyObject_CheckBuffer(o)) {
    if (auto arrow = ArrowOf(object, 0)) {
      ReadArrow(std::move(arrow), codec, argument);
      return;
    }
  }
  if (IsValue(object)) {
    items_ = nb::borrow(object);
    Append(codec, object, argument);
    batch_ = encoded_.Batch();
    return;
  }
  if (composite) NoKeys(object, codec, argument);
  const ColumnSpan part = ReadColumn(object, 0, codec.parts()[0], argument);
  Encode(codec, {&part, 1}, argument);
}

bool KeysIn::overlaps(const void* data, size_t bytes) const {
  const auto* out = static_cast<const char*>(data);
  const auto meets = [&](const void* key, size_t size) {
    const auto* first = static_cast<const char*>(key);
    return out < first + size && first < out + bytes;
  };
  switch (batch_.kind()) {
    case PhysicalType::kU32:
      return meets(batch_.u32().data(), 4 * batch_.size());
    case PhysicalType::kU64:
      return meets(batch_.u64().data(), 8 * batch_.size());
    case PhysicalType::kBytes:
      break;
  }
  // Only Arrow's bytes may be in memory of another owner.
  if (columns_.empty() || encoded_.size() > 0) return false;
  for (const std::string_view key : batch_.bytes()) {
    if (meets(key.data(), key.size())) return true;
  }
  return false;
}

void KeysIn::Append(const KeyCodec& codec, nb::handle key, const std::string& where) {
  const nb::object held = ValuesOfKey(key, codec, /*partial=*/false, where, &values_);
  const absl::Status status = codec.Append(values_, &encoded_);
  if (!status.ok()) ThrowInvalid(where + ": " + std::string(status.message()));
}

void KeysIn::ReadList(nb::handle list, const KeyCodec& codec, const char* argument) {
  // A tuple, which no other code can change while it is read.
  items_ = nb::steal(PySequence_Tuple(list.ptr()));
  if (!items_.is_valid()) throw nb::python_error();
  const bool views = KeysAreValues(codec) && IsText(codec.parts()[0]);
  size_t i = 0;
  for (nb::handle item : items_) {
    // The beginning of the message is built only if there is a message.
    try {
      if (views && !item.is_none()) {
        views_.push_back(std::get<std::string_view>(ValueOfPart(item, codec.parts()[0], "")));
      } else {
        const nb::object held = ValuesOfKey(item, codec, /*partial=*/false, "", &values_);
        Check(codec.Append(values_, &encoded_));
      }
    } catch (const PythonError& error) {
      std::string message = error.message();
      if (message.rfind(": ", 0) == 0 || message.rfind(", ", 0) == 0) {
        message = argument + ("[" + std::to_string(i) + "]") + message;
      } else {
        message = argument + ("[" + std::to_string(i) + "]: ") + message;
      }
      throw PythonError(error.name(), message);
    }
    ++i;
  }
  batch_ = views ? KeyBatch(views_) : encoded_.Batch();
}

std::unique_ptr<ArrowIn> KeysIn::ArrowOf(nb::handle object, size_t part) {
  if (part < read_.size() && read_[part] != nullptr) return std::move(read_[part]);
  return ArrowIn::Of(object);
}

ColumnSpan KeysIn::ReadColumn(nb::handle object, size_t part, DataType type,
                              const std::string& where) {
  if (!PyBytes_Check(object.ptr()) && PyObject_CheckBuffer(object.ptr())) {
    if (IsText(type)) {
      ThrowKeyType(
          where +
          ": expected an Arrow array of strings or binary, or a list of str or bytes, found " +
          Described(object) + "; convert with pyarrow.array() or .tolist()");
    }
    if (buffers_.emplace_back().Hold(object)) {
      const std::optional<DataType> integers = buffers_.back().IntegerType();
      // Bytes are not integers; only a dtype defines the type of an array.
      if (convert_ && integers.has_value() && *integers != type && nb::hasattr(object, "dtype")) {
        if (const auto why = buffers_.back().WhyNot(*integers, object)) {
          ThrowKeyType(where + ": " + *why);
        }
        return integers_.emplace_back(PartOf(buffers_.back(), *integers), type, where).part();
      }
      if (const auto why = buffers_.back().WhyNot(type, object)) ThrowKeyType(where + ": " + *why);
      return PartOf(buffers_.back(), type);
    }
  } else if (auto arrow = ArrowOf(object, part)) {
    if (arrow->columns() != 1) {
      ThrowKeyType(where + ": expected one Arrow column, found " +
                   std::to_string(arrow->columns()));
    }
    arrows_.push_back(std::move(arrow));
    return ReadArrowColumn(*arrows_.back(), 0, type, where);
  }
  std::string hint;
  if (nb::hasattr(object, "to_numpy"))
    hint = IsText(type) ? "; convert with pyarrow.array()" : "; convert with .to_numpy()";
  ThrowKeyType(where + ": expected " +
               (IsText(type) ? "an Arrow array of strings or binary"
                             : "an array of " + std::string(DtypeName(type))) +
               ", found " + Described(object) + hint);
}

ColumnSpan KeysIn::ReadArrowColumn(const ArrowIn& arrow, size_t i, DataType type,
                                   const std::string& where) {
  const std::optional<DataType> found = arrow.TypeOf(i);
  const bool convert =
      convert_ && found.has_value() && IsInteger(*found) && !IsText(type) && *found != type;
  columns_.push_back(arrow.Column(i, convert ? *found : type, where));
  if (!convert) return columns_.back().part();
  return integers_.emplace_back(columns_.back().part(), type, where).part();
}

void KeysIn::ReadColumns(nb::handle tuple, const KeyCodec& codec, const char* argument) {
  const size_t parts = codec.parts().size();
  if (static_cast<size_t>(nb::len(tuple)) != parts) {
    ThrowKeyType(std::string(argument) + ": expected " + ExpectedKeys(codec) +
                 ", found a tuple of " + std::to_string(nb::len(tuple)));
  }
  std::vector<ColumnSpan> columns;
  for (size_t part = 0; part < parts; ++part) {
    columns.push_back(ReadColumn(nb::object(tuple[part]), part, codec.parts()[part],
                                 std::string(argument) + ", part " + std::to_string(part + 1)));
  }
  Encode(codec, columns, argument);
}

void KeysIn::ReadArrow(std::unique_ptr<ArrowIn> arrow, const KeyCodec& codec,
                       const char* argument) {
  const size_t parts = codec.parts().size();
  if (arrow->columns() != parts) {
    ThrowKeyType(std::string(argument) + ": expected " + ExpectedKeys(codec) +
                 ", found Arrow data of " + std::to_string(arrow->columns()) + " columns");
  }
  std::vector<ColumnSpan> columns;
  for (size_t part = 0; part < parts; ++part) {
    const std::string where =
        parts == 1 ? argument : std::string(argument) + ", part " + std::to_string(part + 1);
    columns.push_back(ReadArrowColumn(*arrow, part, codec.parts()[part], where));
  }
  arrows_.push_back(std::move(arrow));
  Encode(codec, columns, argument);
}

void KeysIn::Encode(const KeyCodec& codec, absl::Span<const ColumnSpan> parts,
                    const char* argument) {
  const absl::StatusOr<KeyBatch> keys = KeysOf(codec, parts, &encoded_);
  if (!keys.ok()) ThrowInvalid(std::string(argument) + ": " + std::string(keys.status().message()));
  batch_ = *keys;
}

}  // namespace cairn::python
