// Columns of results: their values, and what a consumer of Arrow's C data interface gets.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/internal/arrow.h"
#include "cairn/internal/shared_column.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(shared_column_test)
namespace {

// An exported column, released by the destructor.
struct Export {
  explicit Export(const SharedColumn& column, std::string_view name = {}) {
    RequireOk(column.Export(&schema, &array, name));
  }
  Export(const Export&) = delete;
  Export& operator=(const Export&) = delete;
  ~Export() {
    if (schema.release != nullptr) schema.release(&schema);
    if (array.release != nullptr) array.release(&array);
  }

  // The values of column i, read back.
  std::vector<DataValue> Values(size_t i = 0) const {
    const ArrowColumn column = RequireOk(ReadArrowColumn(&schema, &array, i));
    std::vector<DataValue> values;
    for (size_t k = 0; k < column.size(); ++k) values.push_back(column.value(k));
    return values;
  }

  ArrowSchema schema = {};
  ArrowArray array = {};
};

std::shared_ptr<ColumnValues> ColumnOf(DataType type, const std::vector<DataValue>& values) {
  auto column = std::make_shared<ColumnValues>(type);
  for (const DataValue& value : values) RequireOk(column->Append(value));
  return column;
}

DataValue RandomValue(DataType type, std::mt19937_64* random) {
  static const std::string kTexts[] = {"", "a", "zero\0byte", "caf\xc3\xa9"};
  if (IsText(type)) return std::string_view(kTexts[(*random)() % 4]);
  const uint64_t number = (*random)() % 100;
  if (type <= DataType::kU64) return number;
  if (type <= DataType::kI64) return static_cast<int64_t>(number) - 50;
  return static_cast<double>(number) / 4;
}

constexpr DataType kTypes[] = {DataType::kU8,  DataType::kU16, DataType::kU32,  DataType::kU64,
                               DataType::kI8,  DataType::kI16, DataType::kI32,  DataType::kI64,
                               DataType::kF32, DataType::kF64, DataType::kText, DataType::kBytes};

}  // namespace

BOOST_AUTO_TEST_CASE(values_of_all_types) {
  std::mt19937_64 random = TestRandom(1);
  for (const DataType type : kTypes) {
    for (const bool with_nulls : {false, true}) {
      for (const size_t size : {0, 1, 9, 100}) {
        std::vector<DataValue> values;
        for (size_t i = 0; i < size; ++i) {
          values.push_back(with_nulls && random() % 3 == 0 ? DataValue()
                                                           : RandomValue(type, &random));
        }
        const auto held = ColumnOf(type, values);
        const Export got(SharedColumn::Values(held), "price");
        BOOST_TEST((got.Values() == values), DataTypeName(type));
        BOOST_TEST(got.schema.name == std::string("price"));
        BOOST_TEST(got.schema.format == ArrowFormat(type));
        BOOST_TEST(got.schema.flags == ARROW_FLAG_NULLABLE);
        BOOST_TEST(got.array.null_count == static_cast<int64_t>(held->null_count()));
        BOOST_TEST(got.array.buffers[got.array.n_buffers - 1] != nullptr);
        if (size == 0) continue;
        // No copy.
        BOOST_TEST(got.array.buffers[got.array.n_buffers - 1] ==
                   (IsText(type) ? held->strings().heap().data() : held->data()));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(keys_of_all_types_are_their_values) {
  std::mt19937_64 random = TestRandom(2);
  for (const NullPolicy nulls : {NullPolicy::kSkip, NullPolicy::kFirst, NullPolicy::kLast}) {
    for (const DataType first : kTypes) {
      for (const size_t parts : {1, 2}) {
        const std::vector<DataType> types = {first, kTypes[random() % std::size(kTypes)]};
        const KeyCodec codec = RequireOk(KeyCodec::Create({types.data(), parts}, nulls));
        std::vector<std::vector<DataValue>> columns(parts);
        auto keys = std::make_shared<EncodedKeys>(codec.kind());
        for (int i = 0; i < 50; ++i) {
          std::vector<DataValue> key;
          for (size_t part = 0; part < parts; ++part) {
            const bool is_null = nulls != NullPolicy::kSkip && random() % 4 == 0;
            key.push_back(is_null ? DataValue() : RandomValue(types[part], &random));
            columns[part].push_back(key.back());
          }
          RequireOk(codec.Append(key, keys.get()));
        }
        const SharedColumn column = RequireOk(SharedColumn::Keys(codec, keys));
        const Export got(column);
        for (size_t part = 0; part < parts; ++part) {
          BOOST_TEST((got.Values(part) == columns[part]));
          const ArrowSchema& schema = parts == 1 ? got.schema : *got.schema.children[part];
          BOOST_TEST(schema.format == ArrowFormat(types[part]));
          BOOST_TEST((schema.flags == ARROW_FLAG_NULLABLE) == (nulls != NullPolicy::kSkip));
          if (parts == 2) BOOST_TEST(schema.name == "part" + std::to_string(part + 1));
        }
        if (KeysAreValues(codec)) BOOST_TEST((column.owner() == keys));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(keys_that_are_none_of_the_codec) {
  const KeyCodec codec = RequireOk(KeyCodec::Create({DataType::kText, DataType::kText}));
  auto keys = std::make_shared<EncodedKeys>(PhysicalType::kBytes);
  keys->AppendBytes("without an end");
  BOOST_TEST(absl::IsDataLoss(SharedColumn::Keys(codec, keys).status()));
}

BOOST_AUTO_TEST_CASE(row_ids_are_used_in_place_except_in_shards) {
  auto rows = std::make_shared<RowList>();
  rows->row_ids = {7, 5, 7};
  const Export narrow(SharedColumn::RowIds(rows, false));
  BOOST_TEST(narrow.array.buffers[1] == rows->row_ids.data());
  rows->shards = {1, 0, 2};
  const Export wide(SharedColumn::RowIds(rows, true));
  BOOST_TEST((wide.Values() == std::vector<DataValue>{(uint64_t{1} << 32) + 7, uint64_t{5},
                                                      (uint64_t{2} << 32) + 7}));
}

// Children and owners: a consumer may keep one child of an array after it has released the array.
BOOST_AUTO_TEST_CASE(children_live_on_after_their_parents) {
  std::weak_ptr<const void> first, second, third;
  ArrowArray kept = {};
  {
    auto numbers = std::make_shared<std::vector<uint32_t>>(std::vector<uint32_t>{1, 2, 3});
    auto strings = std::make_shared<StringList>();
    for (const char* text : {"x", "", "z"}) strings->Append(text);
    auto offsets = std::make_shared<std::vector<uint64_t>>(std::vector<uint64_t>{0, 2, 2, 3});
    first = numbers, second = strings, third = offsets;
    const SharedColumn items = SharedColumn::Structs(
        3, {{"n", SharedColumn::Numbers(DataType::kU32, numbers->data(), 3, numbers)},
            {"s", SharedColumn::Bytes(strings)}});
    const Export lists(SharedColumn::Lists(*offsets, {"item", items}, offsets));
    BOOST_TEST(lists.schema.format == std::string("+L"));
    BOOST_TEST(lists.array.length == 3);
    BOOST_TEST(lists.array.buffers[1] == offsets->data());
    BOOST_TEST(lists.schema.children[0]->name == std::string("item"));
    BOOST_TEST(lists.schema.children[0]->children[1]->format == std::string("Z"));
    ArrowArray* const child = lists.array.children[0]->children[1];
    kept = *child;
    child->release = nullptr;
  }
  BOOST_TEST(first.expired());
  BOOST_TEST(!second.expired());
  BOOST_TEST(third.expired());
  BOOST_TEST(std::memcmp(kept.buffers[2], "xz", 2) == 0);
  kept.release(&kept);
  BOOST_TEST(second.expired());
}

BOOST_AUTO_TEST_CASE(a_stream_gives_one_array) {
  const SharedColumn column = SharedColumn::Values(ColumnOf(DataType::kI16, {int64_t{-5}, {}}));
  ArrowArrayStream stream;
  RequireOk(column.Export(&stream));
  for (int i = 0; i < 2; ++i) {
    ArrowSchema schema;
    BOOST_TEST(stream.get_schema(&stream, &schema) == 0);
    BOOST_TEST(schema.format == std::string("s"));
    schema.release(&schema);
  }
  ArrowArray array;
  BOOST_TEST(stream.get_next(&stream, &array) == 0);
  BOOST_TEST(array.length == 2);
  BOOST_TEST(array.null_count == 1);
  array.release(&array);
  for (int i = 0; i < 2; ++i) {
    BOOST_TEST(stream.get_next(&stream, &array) == 0);
    BOOST_TEST((array.release == nullptr));
  }
  stream.release(&stream);
  BOOST_TEST((stream.release == nullptr));
}

BOOST_AUTO_TEST_CASE(text_that_is_not_utf8) {
  // All bytes are UTF-8 in the second column, but its values are not.
  for (const auto& [texts, bad] :
       {std::pair(std::vector<DataValue>{"ok", "\xff"}, 1),
        std::pair(std::vector<DataValue>{"caf\xc3", "\xa9"}, 0),
        std::pair(std::vector<DataValue>{"seven b\xed\xa0\x80", "x"}, 0)}) {
    const SharedColumn column =
        SharedColumn::Structs(2, {{"t", SharedColumn::Values(ColumnOf(DataType::kText, texts))}});
    ArrowSchema schema = {};
    ArrowArray array = {};
    ArrowArrayStream stream = {};
    for (const absl::Status& status :
         {column.Export(&array), column.Export(&schema, &array), column.Export(&stream)}) {
      BOOST_TEST(absl::IsInvalidArgument(status));
      BOOST_TEST(status.message().find("value " + std::to_string(bad)) != std::string::npos);
    }
    BOOST_TEST((schema.release == nullptr && array.release == nullptr));
    const Export bytes(column.AsBytes());
    BOOST_TEST((bytes.Values() == texts));
    BOOST_TEST(bytes.schema.children[0]->format == std::string("Z"));
  }
}

BOOST_AUTO_TEST_CASE(names_with_zero_bytes) {
  const SharedColumn values = SharedColumn::Values(ColumnOf(DataType::kU8, {}));
  const SharedColumn column = SharedColumn::Structs(
      0, {{"good", SharedColumn::Structs(0, {{std::string("b\0d", 3), values}})}});
  ArrowSchema schema = {};
  ArrowArrayStream stream = {};
  for (const absl::Status& status : {column.Export(&schema), column.Export(&stream)}) {
    BOOST_TEST(absl::IsInvalidArgument(status));
    BOOST_TEST(status.message().find("'b\\x00d'") != std::string::npos);
  }
  BOOST_TEST((schema.release == nullptr && stream.release == nullptr));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
