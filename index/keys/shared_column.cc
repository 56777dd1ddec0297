#include "cairn/internal/shared_column.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "cairn/internal/arrow.h"
#include "index/keys/key_number.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/utf8.h"

namespace cairn {
namespace {

// The private_data of exported structures. A child that a consumer has moved out has no release
// function.
template <typename Structure>
struct Exported {
  explicit Exported(size_t size) : children(size), pointers(size) {  // zeros: not yet exported
    for (size_t i = 0; i < size; ++i) pointers[i] = &children[i];
  }
  ~Exported() {
    for (Structure& child : children) {
      if (child.release != nullptr) child.release(&child);
    }
  }

  static void Release(Structure* structure) {
    delete static_cast<Exported*>(structure->private_data);
    structure->release = nullptr;
  }
  // Makes `structure` the owner of `made`.
  static void Finish(std::unique_ptr<Exported> made, Structure* structure) {
    structure->n_children = static_cast<int64_t>(made->children.size());
    structure->children = made->pointers.data();
    structure->release = Release;
    structure->private_data = made.release();
  }

  std::string format, name;           // of a schema
  std::shared_ptr<const void> owner;  // of an array
  std::array<const void*, 3> buffers = {};
  std::vector<Structure> children;
  std::vector<Structure*> pointers;
};

std::string FormatOf(const SharedColumn& column) {
  switch (column.kind()) {
    case SharedColumn::Kind::kValues:
      return std::string(ArrowFormat(column.type()));
    case SharedColumn::Kind::kStructs:
      return "+s";
    case SharedColumn::Kind::kLists:
      break;
  }
  return "+L";
}

ArrowSchema MakeSchema(const SharedColumn& column, std::string_view name) {
  auto made = std::make_unique<Exported<ArrowSchema>>(column.fields().size());
  for (size_t i = 0; i < column.fields().size(); ++i) {
    made->children[i] = MakeSchema(column.fields()[i].second, column.fields()[i].first);
  }
  made->format = FormatOf(column);
  made->name = name;
  ArrowSchema schema = {};
  schema.format = made->format.c_str();
  schema.name = made->name.c_str();
  schema.flags = column.nullable() ? ARROW_FLAG_NULLABLE : 0;
  Exported<ArrowSchema>::Finish(std::move(made), &schema);
  return schema;
}

ArrowArray MakeArray(const SharedColumn& column) {
  static constexpr uint64_t kNothing = 0;  // consumers may require an address of no values
  auto made = std::make_unique<Exported<ArrowArray>>(column.fields().size());
  for (size_t i = 0; i < column.fields().size(); ++i) {
    made->children[i] = MakeArray(column.fields()[i].second);
  }
  made->owner = column.owner();
  ArrowArray array = {};
  made->buffers[array.n_buffers++] = column.validity();
  if (column.offsets() != nullptr) made->buffers[array.n_buffers++] = column.offsets();
  if (column.kind() == SharedColumn::Kind::kValues) {
    made->buffers[array.n_buffers++] = column.data() == nullptr ? &kNothing : column.data();
  }
  array.buffers = made->buffers.data();
  array.length = static_cast<int64_t>(column.size());
  array.null_count = static_cast<int64_t>(column.null_count());
  Exported<ArrowArray>::Finish(std::move(made), &array);
  return array;
}

struct Stream {
  SharedColumn column;
  bool given = false;

  // Runs `make`, whose exceptions are errors.
  template <typename Structure, typename Make>
  static int Get(Structure* out, Make make) noexcept {
    const absl::Status status = Guarded("exporting a column", [&] {
      *out = make();
      return absl::OkStatus();
    });
    return status.ok() ? 0 : ENOMEM;
  }
  static Stream& Of(ArrowArrayStream* stream) {
    return *static_cast<Stream*>(stream->private_data);
  }
  static int GetSchema(ArrowArrayStream* stream, ArrowSchema* out) {
    return Get(out, [&] { return MakeSchema(Of(stream).column, ""); });
  }
  static int GetNext(ArrowArrayStream* stream, ArrowArray* out) {
    return Get(out, [&] {
      if (Of(stream).given) return ArrowArray();
      const ArrowArray array = MakeArray(Of(stream).column);
      Of(stream).given = true;
      return array;
    });
  }
  static const char* GetLastError(ArrowArrayStream*) { return "out of memory"; }
  static void Release(ArrowArrayStream* stream) {
    delete &Of(stream);
    stream->release = nullptr;
  }
};

}  // namespace

SharedColumn SharedColumn::Numbers(DataType type, const void* data, size_t size,
                                   std::shared_ptr<const void> owner) {
  SharedColumn column;
  column.type_ = type;
  column.size_ = size;
  column.data_ = data;
  column.owner_ = std::move(owner);
  return column;
}

SharedColumn SharedColumn::Strings(DataType type, std::string_view heap,
                                   const std::vector<uint64_t>& offsets,
                                   std::shared_ptr<const void> owner) {
  SharedColumn column = Numbers(type, heap.data(), offsets.size() - 1, std::move(owner));
  column.offsets_ = offsets.data();
  return column;
}

SharedColumn SharedColumn::Bytes(std::shared_ptr<const StringList> strings) {
  const StringList& list = *strings;
  return Strings(DataType::kBytes, list.heap(), list.offsets(), std::move(strings));
}

SharedColumn SharedColumn::Values(std::shared_ptr<const ColumnValues> values) {
  const ColumnValues& of = *values;
  SharedColumn column =
      IsText(of.type())
          ? Strings(of.type(), of.strings().heap(), of.strings().offsets(), std::move(values))
          : Numbers(of.type(), of.data(), of.size(), std::move(values));
  column.nullable_ = true;
  column.null_count_ = of.null_count();
  column.validity_ = of.validity();
  return column;
}

SharedColumn SharedColumn::RowIds(std::shared_ptr<const RowList> rows, bool in_shards) {
  const size_t size = rows->row_ids.size();
  if (!in_shards) {
    const void* const data = rows->row_ids.data();
    return Numbers(DataType::kU32, data, size, std::move(rows));
  }
  auto global = std::make_shared<std::vector<GlobalRowId>>(size);
  for (size_t j = 0; j < size; ++j) (*global)[j] = rows->row(j);
  const void* const data = global->data();
  return Numbers(DataType::kU64, data, size, std::move(global));
}

absl::StatusOr<SharedColumn> SharedColumn::Keys(
    const KeyCodec& codec, const std::shared_ptr<const EncodedKeys>& keys) try {
  const absl::Span<const DataType> parts = codec.parts();
  const size_t size = keys->size();
  if (KeysAreValues(codec)) {
    switch (codec.kind()) {
      case PhysicalType::kU32:
        return Numbers(parts[0], keys->u32().data(), size, keys);
      case PhysicalType::kU64:
        return Numbers(parts[0], keys->u64().data(), size, keys);
      case PhysicalType::kBytes:
        return Strings(parts[0], keys->heap(), keys->offsets(), keys);
    }
  }
  std::vector<std::shared_ptr<ColumnValues>> decoded;
  for (const DataType part : parts) decoded.push_back(std::make_shared<ColumnValues>(part));
  std::vector<DataValue> values;
  std::string scratch;
  for (size_t i = 0; i < size; ++i) {
    RETURN_IF_ERROR(codec.Decode(*keys, i, &values, &scratch));
    for (size_t part = 0; part < parts.size(); ++part) {
      RETURN_IF_ERROR(decoded[part]->Append(values[part]));
    }
  }
  std::vector<Field> fields;
  for (size_t part = 0; part < parts.size(); ++part) {
    fields.emplace_back(absl::StrCat("part", part + 1), Values(std::move(decoded[part])));
    fields.back().second.nullable_ = codec.nulls() != NullPolicy::kSkip;
  }
  return parts.size() == 1 ? std::move(fields[0].second) : Structs(size, std::move(fields));
} catch (...) {
  return StatusOfException("decoding keys");
}

SharedColumn SharedColumn::Structs(size_t size, std::vector<Field> fields) {
  SharedColumn column;
  column.kind_ = Kind::kStructs;
  column.size_ = size;
  column.fields_ = std::move(fields);
  return column;
}

std::vector<SharedColumn::Field> SharedColumn::Fields(
    absl::Span<const std::string> names,
    const std::shared_ptr<const std::vector<ColumnValues>>& columns) {
  std::vector<Field> fields;
  for (size_t i = 0; i < columns->size(); ++i) {
    fields.emplace_back(names[i], Values({columns, &(*columns)[i]}));
  }
  return fields;
}

SharedColumn SharedColumn::Lists(const std::vector<uint64_t>& offsets, Field items,
                                 std::shared_ptr<const void> owner) {
  SharedColumn column;
  column.kind_ = Kind::kLists;
  column.size_ = offsets.size() - 1;
  column.offsets_ = offsets.data();
  column.owner_ = std::move(owner);
  column.fields_.push_back(std::move(items));
  return column;
}

SharedColumn SharedColumn::AsBytes() const {
  SharedColumn column = *this;
  if (type_ == DataType::kText) column.type_ = DataType::kBytes;
  for (Field& field : column.fields_) field.second = field.second.AsBytes();
  return column;
}

absl::Status SharedColumn::CheckNames() const {
  for (const auto& [name, column] : fields_) {
    RETURN_IF_ERROR(column.CheckNames());
    if (name.find('\0') == std::string::npos) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("expected a name without zero bytes, found '%s': Arrow's interface would "
                        "end it there; read the columns one by one",
                        absl::StrReplaceAll(name, {{absl::string_view("\0", 1), "\\x00"}})));
  }
  return absl::OkStatus();
}

absl::Status SharedColumn::CheckText() const {
  for (const Field& field : fields_) RETURN_IF_ERROR(field.second.CheckText());
  if (kind_ != Kind::kValues || type_ != DataType::kText || size_ == 0) return absl::OkStatus();
  // Checks all text at once, then that no value begins within a character.
  bool good =
      IsUtf8({static_cast<const char*>(data_) + offsets_[0], offsets_[size_] - offsets_[0]});
  for (size_t i = 0; good && i < size_; ++i) {
    const std::string_view text = string(i);
    good = text.empty() || (static_cast<unsigned char>(text[0]) & 0xC0) != 0x80;
  }
  for (size_t i = 0; !good && i < size_; ++i) {
    if (IsUtf8(string(i))) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "value %d of the column is text that is not UTF-8; as_bytes() returns it as bytes", i));
  }
  return absl::OkStatus();
}

absl::Status SharedColumn::Export(ArrowSchema* schema, std::string_view name) const try {
  RETURN_IF_ERROR(CheckNames());
  *schema = MakeSchema(*this, name);
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("exporting a column");
}

absl::Status SharedColumn::Export(ArrowArray* array) const try {
  RETURN_IF_ERROR(CheckText());
  *array = MakeArray(*this);
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("exporting a column");
}

absl::Status SharedColumn::Export(ArrowSchema* schema, ArrowArray* array,
                                  std::string_view name) const {
  ArrowSchema made;
  RETURN_IF_ERROR(Export(&made, name));
  const absl::Status status = Export(array);
  if (status.ok()) {
    *schema = made;
  } else {
    made.release(&made);
  }
  return status;
}

absl::Status SharedColumn::Export(ArrowArrayStream* stream) const try {
  RETURN_IF_ERROR(CheckNames());
  RETURN_IF_ERROR(CheckText());
  *stream = {Stream::GetSchema, Stream::GetNext, Stream::GetLastError, Stream::Release,
             new Stream{*this}};
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("exporting a column");
}

}  // namespace cairn
