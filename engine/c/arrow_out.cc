#include "engine/c/arrow_out.h"

#include <utility>

#include "index/machine/status_macros.h"

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

  // A child that a consumer has moved out has no release function.
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
  node->children.resize(column.children.size());  // zeros: no child has a release function yet
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

// Returns Arrow's format string of a part's type.
const char* FormatOf(DataType type) {
  switch (type) {
    case DataType::kU8:
      return "C";
    case DataType::kU16:
      return "S";
    case DataType::kU32:
      return "I";
    case DataType::kU64:
      return "L";
    case DataType::kI8:
      return "c";
    case DataType::kI16:
      return "s";
    case DataType::kI32:
      return "i";
    case DataType::kI64:
      return "l";
    case DataType::kF32:
      return "f";
    case DataType::kF64:
      return "g";
    case DataType::kText:
    case DataType::kBytes:
      break;
  }
  return "Z";
}

// Returns whether this codec's physical keys have the layout of an Arrow column of its only part.
bool AreLogical(const KeyCodec& codec) {
  if (codec.parts().size() != 1 || codec.nulls() != NullPolicy::kSkip) return false;
  const DataType type = codec.parts()[0];
  return type == DataType::kU32 || type == DataType::kU64 || type == DataType::kText ||
         type == DataType::kBytes;
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

ColumnOut ColumnOut::GlobalRowIds(std::string name, absl::Span<const GlobalRowId> rows) {
  return {"L", std::move(name), static_cast<int64_t>(rows.size()), {nullptr, rows.data()}};
}

ColumnOut ColumnOut::Bytes(std::string name, const StringList& strings) {
  return BytesColumnOut(std::move(name), strings.heap(), strings.offsets());
}

ColumnOut ColumnOut::Values(std::string name, const ColumnValues& values) {
  ColumnOut column;
  if (values.width() == 0) {
    column = Bytes(std::move(name), values.strings());
  } else {
    column = {FormatOf(values.type()),
              std::move(name),
              static_cast<int64_t>(values.size()),
              {nullptr, values.data()}};
  }
  column.buffers[0] = values.validity();
  column.null_count = static_cast<int64_t>(values.null_count());
  column.nullable = true;
  return column;
}

ColumnOut ColumnOut::Struct(std::string name, size_t length, std::vector<ColumnOut> children) {
  return {"+s", std::move(name), static_cast<int64_t>(length), {nullptr}, std::move(children)};
}

ColumnOut ColumnOut::Struct(std::string name, absl::Span<const std::string> names,
                            absl::Span<const ColumnValues> columns) {
  std::vector<ColumnOut> children;
  for (size_t i = 0; i < columns.size(); ++i) children.push_back(Values(names[i], columns[i]));
  return Struct(std::move(name), columns.empty() ? 0 : columns[0].size(), std::move(children));
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

absl::Status KeysOut::Decode(const KeyCodec& codec, const EncodedKeys& keys) {
  parts_.clear();
  if (AreLogical(codec)) return absl::OkStatus();
  for (const DataType type : codec.parts()) parts_.emplace_back(type);
  std::vector<DataValue> values;
  std::string scratch;
  for (size_t i = 0; i < keys.size(); ++i) {
    RETURN_IF_ERROR(codec.Decode(keys, i, &values, &scratch));
    for (size_t p = 0; p < parts_.size(); ++p) RETURN_IF_ERROR(parts_[p].Append(values[p]));
  }
  return absl::OkStatus();
}

ColumnOut KeysOut::Column(std::string name, const KeyCodec& codec, const EncodedKeys& keys) const {
  if (parts_.empty()) {
    const int64_t size = static_cast<int64_t>(keys.size());
    const char* const format = FormatOf(codec.parts()[0]);
    if (keys.kind() == PhysicalType::kU32)
      return {format, std::move(name), size, {nullptr, keys.u32().data()}};
    if (keys.kind() == PhysicalType::kU64)
      return {format, std::move(name), size, {nullptr, keys.u64().data()}};
    return BytesColumnOut(std::move(name), keys.heap(), keys.offsets());
  }
  std::vector<ColumnOut> columns;
  for (size_t p = 0; p < parts_.size(); ++p) {
    ColumnOut column =
        ColumnOut::Values(parts_.size() == 1 ? name : "part" + std::to_string(p + 1), parts_[p]);
    column.nullable = codec.nulls() != NullPolicy::kSkip;
    columns.push_back(std::move(column));
  }
  if (columns.size() == 1) return std::move(columns[0]);
  return ColumnOut::Struct(std::move(name), keys.size(), std::move(columns));
}

}  // namespace cairn
