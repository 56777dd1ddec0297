#include "engine/c/arrow_out.h"

#include <utility>

namespace cairn {
namespace {

struct SchemaNode {
  std::string format;
  std::string name;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;

  ~SchemaNode() {
    for (ArrowSchema& child : children) {
      if (child.release != nullptr) child.release(&child);
    }
  }
};

struct ArrayNode {
  std::shared_ptr<const void> owner;
  std::vector<const void*> buffers;
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;

  // Children that a consumer has moved away have no release here.
  ~ArrayNode() {
    for (ArrowArray& child : children) {
      if (child.release != nullptr) child.release(&child);
    }
  }
};

void ReleaseSchema(ArrowSchema* schema) {
  delete static_cast<SchemaNode*>(schema->private_data);
  schema->release = nullptr;
}

void ReleaseArray(ArrowArray* array) {
  delete static_cast<ArrayNode*>(array->private_data);
  array->release = nullptr;
}

ArrowSchema MakeSchema(const ColumnOut& column) {
  auto node = std::make_unique<SchemaNode>();
  node->format = column.format;
  node->name = column.name;
  node->children.resize(column.children.size());  // of zeros: none is to be released yet
  for (size_t i = 0; i < column.children.size(); ++i) {
    node->children[i] = MakeSchema(column.children[i]);
    node->pointers.push_back(&node->children[i]);
  }
  ArrowSchema schema = {};
  schema.format = node->format.c_str();
  schema.name = node->name.c_str();
  schema.flags = column.nullable ? ARROW_FLAG_NULLABLE : 0;
  schema.n_children = static_cast<int64_t>(node->children.size());
  schema.children = node->pointers.data();
  schema.release = ReleaseSchema;
  schema.private_data = node.release();
  return schema;
}

ArrowArray MakeArray(const ColumnOut& column, const std::shared_ptr<const void>& owner) {
  auto node = std::make_unique<ArrayNode>();
  node->owner = owner;
  node->buffers = column.buffers;
  node->children.resize(column.children.size());
  for (size_t i = 0; i < column.children.size(); ++i) {
    node->children[i] = MakeArray(column.children[i], owner);
    node->pointers.push_back(&node->children[i]);
  }
  ArrowArray array = {};
  array.length = column.length;
  array.null_count = column.null_count;
  array.n_buffers = static_cast<int64_t>(node->buffers.size());
  array.buffers = node->buffers.data();
  array.n_children = static_cast<int64_t>(node->children.size());
  array.children = node->pointers.data();
  array.release = ReleaseArray;
  array.private_data = node.release();
  return array;
}

// Arrow's notation of a part's type.
const char* FormatOf(KeyType type) {
  switch (type) {
    case KeyType::kU8:
      return "C";
    case KeyType::kU16:
      return "S";
    case KeyType::kU32:
      return "I";
    case KeyType::kU64:
      return "L";
    case KeyType::kI8:
      return "c";
    case KeyType::kI16:
      return "s";
    case KeyType::kI32:
      return "i";
    case KeyType::kI64:
      return "l";
    case KeyType::kF32:
      return "f";
    case KeyType::kF64:
      return "g";
    case KeyType::kText:
    case KeyType::kBytes:
      break;
  }
  return "Z";
}

template <typename T>
void AppendNumber(T number, std::vector<char>* numbers) {
  const char* const bytes = reinterpret_cast<const char*>(&number);
  numbers->insert(numbers->end(), bytes, bytes + sizeof number);
}

// The value as a number of the part's type; that of a null is 0.
template <typename T>
void AppendValue(const KeyValue& value, std::vector<char>* numbers) {
  T number = 0;
  if (const auto* u = std::get_if<uint64_t>(&value)) number = static_cast<T>(*u);
  if (const auto* i = std::get_if<int64_t>(&value)) number = static_cast<T>(*i);
  if (const auto* d = std::get_if<double>(&value)) number = static_cast<T>(*d);
  AppendNumber(number, numbers);
}

void AppendTyped(KeyType type, const KeyValue& value, std::vector<char>* numbers,
                 StringList* strings) {
  switch (type) {
    case KeyType::kU8:
      return AppendValue<uint8_t>(value, numbers);
    case KeyType::kU16:
      return AppendValue<uint16_t>(value, numbers);
    case KeyType::kU32:
      return AppendValue<uint32_t>(value, numbers);
    case KeyType::kU64:
      return AppendValue<uint64_t>(value, numbers);
    case KeyType::kI8:
      return AppendValue<int8_t>(value, numbers);
    case KeyType::kI16:
      return AppendValue<int16_t>(value, numbers);
    case KeyType::kI32:
      return AppendValue<int32_t>(value, numbers);
    case KeyType::kI64:
      return AppendValue<int64_t>(value, numbers);
    case KeyType::kF32:
      return AppendValue<float>(value, numbers);
    case KeyType::kF64:
      return AppendValue<double>(value, numbers);
    case KeyType::kText:
    case KeyType::kBytes:
      break;
  }
  const auto* string = std::get_if<std::string_view>(&value);
  strings->Append(string == nullptr ? std::string_view() : *string);
}

// Whether physical keys of this codec have the layout of an Arrow column of the one part.
bool AreLogical(const KeyCodec& codec) {
  if (codec.parts().size() != 1 || codec.nulls() != NullPolicy::kSkip) return false;
  const KeyType type = codec.parts()[0];
  return type == KeyType::kU32 || type == KeyType::kU64 || type == KeyType::kText ||
         type == KeyType::kBytes;
}

ColumnOut BytesColumnOut(std::string name, std::string_view heap,
                         const std::vector<uint64_t>& offsets) {
  return {"Z",
          std::move(name),
          static_cast<int64_t>(offsets.size()) - 1,
          {nullptr, offsets.data(), heap.data()}};
}

}  // namespace

ColumnOut ColumnOut::RowIds(std::string name, absl::Span<const RowId> row_ids) {
  return {"I", std::move(name), static_cast<int64_t>(row_ids.size()), {nullptr, row_ids.data()}};
}

ColumnOut ColumnOut::WideRowIds(std::string name, absl::Span<const WideRowId> rows) {
  return {"L", std::move(name), static_cast<int64_t>(rows.size()), {nullptr, rows.data()}};
}

ColumnOut ColumnOut::Bytes(std::string name, const StringList& strings) {
  return BytesColumnOut(std::move(name), strings.heap(), strings.offsets());
}

ColumnOut ColumnOut::Struct(std::string name, size_t length, std::vector<ColumnOut> children) {
  return {"+s", std::move(name), static_cast<int64_t>(length), {nullptr}, std::move(children)};
}

ColumnOut ColumnOut::Lists(const std::vector<uint64_t>& offsets, ColumnOut items) {
  ColumnOut lists = {"+L", "", static_cast<int64_t>(offsets.size()) - 1, {nullptr, offsets.data()}};
  lists.children.push_back(std::move(items));
  return lists;
}

void Export(const ColumnOut& column, const std::shared_ptr<const void>& owner, ArrowSchema* schema,
            ArrowArray* array) {
  ArrowSchema made = MakeSchema(column);
  try {
    *array = MakeArray(column, owner);
  } catch (...) {
    made.release(&made);
    throw;
  }
  *schema = made;
}

absl::Status KeysOut::Decode(const KeyCodec& codec, const KeyColumn& keys) {
  parts_.clear();
  if (AreLogical(codec)) return absl::OkStatus();
  parts_.resize(codec.parts().size());
  const size_t size = keys.size();
  for (Part& part : parts_) part.validity.assign(size / 8 + 1, 0xFF);
  std::vector<KeyValue> values;
  std::string scratch;
  for (size_t i = 0; i < size; ++i) {
    const absl::Status status = codec.Decode(keys, i, &values, &scratch);
    if (!status.ok()) return status;
    for (size_t p = 0; p < parts_.size(); ++p) {
      Part& part = parts_[p];
      AppendTyped(codec.parts()[p], values[p], &part.numbers, &part.strings);
      if (!std::holds_alternative<std::monostate>(values[p])) continue;
      part.validity[i / 8] &= static_cast<uint8_t>(~(1u << (i % 8)));
      ++part.nulls;
    }
  }
  return absl::OkStatus();
}

ColumnOut KeysOut::Column(std::string name, const KeyCodec& codec, const KeyColumn& keys) const {
  if (parts_.empty()) {
    const int64_t size = static_cast<int64_t>(keys.size());
    const char* const format = FormatOf(codec.parts()[0]);
    if (keys.kind() == KeyKind::kU32)
      return {format, std::move(name), size, {nullptr, keys.u32().data()}};
    if (keys.kind() == KeyKind::kU64)
      return {format, std::move(name), size, {nullptr, keys.u64().data()}};
    return BytesColumnOut(std::move(name), keys.heap(), keys.offsets());
  }
  std::vector<ColumnOut> columns;
  for (size_t p = 0; p < parts_.size(); ++p) {
    const Part& part = parts_[p];
    const KeyType type = codec.parts()[p];
    std::string part_name = parts_.size() == 1 ? name : "part" + std::to_string(p + 1);
    ColumnOut column;
    if (type == KeyType::kText || type == KeyType::kBytes) {
      column = ColumnOut::Bytes(std::move(part_name), part.strings);
    } else {
      column = {FormatOf(type),
                std::move(part_name),
                static_cast<int64_t>(keys.size()),
                {nullptr, part.numbers.data()}};
    }
    column.nullable = codec.nulls() != NullPolicy::kSkip;
    column.null_count = part.nulls;
    if (part.nulls > 0) column.buffers[0] = part.validity.data();
    columns.push_back(std::move(column));
  }
  if (columns.size() == 1) return std::move(columns[0]);
  return ColumnOut::Struct(std::move(name), keys.size(), std::move(columns));
}

}  // namespace cairn
