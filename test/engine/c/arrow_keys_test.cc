// Invalid arrays: each is rejected with a specific error before its contents are read.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cairn/c.h"
#include "cairn/key_codec.h"
#include "test/engine/c/c_handles.h"

namespace cairn {
namespace {

const std::vector<DataValue> kNumbers = {uint64_t{5}, uint64_t{1}, uint64_t{3}};
const std::vector<DataValue> kTexts = {"b", "a text that no view holds", "c"};

cairn_error* FindFirst(const IndexHandle& index, const ArrowSchema* schema,
                       const ArrowArray* array) {
  uint32_t rows[3];
  return cairn_find_first(index.get(), schema, array, nullptr, rows, 3);
}

class ArrowFixture {
 public:
  // Checks that the change to an array of text in this format is rejected with these words.
  void CheckText(const std::string& format, const std::function<void(TestArrow*)>& change,
                 const std::vector<std::string>& words) {
    TestArrow keys(format, kTexts);
    RequireNone(FindFirst(text, &keys.schema, &keys.array));
    change(&keys);
    CheckError(FindFirst(text, &keys.schema, &keys.array), CAIRN_INVALID_ARGUMENT, words);
  }
  void CheckNumbers(const std::function<void(TestArrow*)>& change,
                    const std::vector<std::string>& words) {
    TestArrow keys("I", kNumbers);
    RequireNone(FindFirst(numbers, &keys.schema, &keys.array));
    change(&keys);
    CheckError(FindFirst(numbers, &keys.schema, &keys.array), CAIRN_INVALID_ARGUMENT, words);
  }
  static std::unique_ptr<TestArrow> MakePair() {
    std::vector<std::unique_ptr<TestArrow>> children;
    children.push_back(std::make_unique<TestArrow>("I", kNumbers));
    children.push_back(std::make_unique<TestArrow>("u", kTexts));
    return std::make_unique<TestArrow>(std::move(children), 3, 0);
  }
  void CheckPair(const std::function<void(TestArrow*)>& change,
                 const std::vector<std::string>& words) {
    const auto keys = MakePair();
    RequireNone(FindFirst(pairs, &keys->schema, &keys->array));
    change(keys.get());
    CheckError(FindFirst(pairs, &keys->schema, &keys->array), CAIRN_INVALID_ARGUMENT, words);
  }

  const IndexHandle numbers = IndexOver(TestArrow("I", kNumbers));
  const IndexHandle text = IndexOver(TestArrow("u", kTexts));
  const IndexHandle pairs = IndexOver(*MakePair());
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(arrow_keys_test, ArrowFixture)

BOOST_AUTO_TEST_CASE(pointers_and_released_structures) {
  TestArrow keys("I", kNumbers);
  CheckError(FindFirst(numbers, nullptr, &keys.array), CAIRN_INVALID_ARGUMENT, {"ArrowSchema"});
  CheckError(FindFirst(numbers, &keys.schema, nullptr), CAIRN_INVALID_ARGUMENT, {"ArrowArray"});
  CheckNumbers([](TestArrow* k) { k->schema.release = nullptr; }, {"ArrowSchema", "released"});
  CheckNumbers([](TestArrow* k) { k->array.release = nullptr; }, {"ArrowArray", "released"});
  CheckNumbers([](TestArrow* k) { k->schema.format = nullptr; }, {"format", "NULL"});
}

BOOST_AUTO_TEST_CASE(lengths_offsets_and_nulls) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  CheckNumbers([](TestArrow* k) { k->array.length = -1; }, {"at least 0, found -1 and 0"});
  CheckNumbers([](TestArrow* k) { k->array.offset = -1; }, {"at least 0, found 3 and -1"});
  CheckNumbers([=](TestArrow* k) { k->array.offset = most; }, {"at least 0"});
  CheckNumbers([=](TestArrow* k) { k->array.length = most; }, {"fit the memory"});
  CheckNumbers([=](TestArrow* k) { k->array.offset = most / 2; }, {"fit the memory"});
  CheckNumbers([](TestArrow* k) { k->array.null_count = 4; }, {"-1 to 3 nulls, found 4"});
  CheckNumbers([](TestArrow* k) { k->array.null_count = -2; }, {"found -2"});
  CheckNumbers([](TestArrow* k) { k->array.null_count = 2; }, {"bitmap of 2 nulls"});
  CheckNumbers([](TestArrow* k) { k->array.length = 2; }, {"row_ids", "2 answers, found 3"});
}

BOOST_AUTO_TEST_CASE(buffers_and_children) {
  CheckNumbers([](TestArrow* k) { k->array.n_buffers = 1; }, {"2 buffers", "'I', found 1"});
  CheckNumbers([](TestArrow* k) { k->array.n_buffers = -1; }, {"-1 buffers"});
  CheckNumbers([](TestArrow* k) { k->array.buffers = nullptr; }, {"2 buffers, found none"});
  CheckNumbers([](TestArrow* k) { k->array.buffers[1] = nullptr; }, {"3 elements", "no buffer"});
  CheckNumbers([](TestArrow* k) { k->array.n_children = 1; }, {"children", "1 and 0"});
  CheckNumbers([](TestArrow* k) { k->array.n_children = k->schema.n_children = 1; },
               {"1 children, found none"});
  CheckNumbers([](TestArrow* k) { k->schema.dictionary = &k->schema; }, {"dictionary"});
  CheckNumbers([](TestArrow* k) { k->array.dictionary = &k->array; }, {"dictionary"});
}

BOOST_AUTO_TEST_CASE(types_that_are_not_the_keys) {
  const TestArrow signed_numbers("i", {int64_t{1}, int64_t{2}, int64_t{3}});
  CheckError(FindFirst(numbers, &signed_numbers.schema, &signed_numbers.array),
             CAIRN_INVALID_ARGUMENT, {"part 1 (u32)", "uint32 ('I')", "found one of int32"});
  const TestArrow wide("L", kNumbers);
  CheckError(FindFirst(numbers, &wide.schema, &wide.array), CAIRN_INVALID_ARGUMENT,
             {"uint32 ('I')", "found one of uint64"});
  CheckError(FindFirst(text, &wide.schema, &wide.array), CAIRN_INVALID_ARGUMENT,
             {"part 1 (text)", "utf8", "uint64"});
  for (const char* format : {"", "n", "b", "e", "d:10,2", "tdD", "tss:UTC", "+l", "w:", "w:0",
                             "w:-1", "w:9999999999", "w:4x", "uu"}) {
    CheckNumbers([=](TestArrow* k) { k->schema.format = format; },
                 {"numbers, text or bytes", format});
  }
  const auto pair = MakePair();
  CheckError(FindFirst(numbers, &pair->schema, &pair->array), CAIRN_INVALID_ARGUMENT,
             {"keys of 1 part, found 2"});
  const TestArrow one("I", kNumbers);
  CheckError(FindFirst(pairs, &one.schema, &one.array), CAIRN_INVALID_ARGUMENT,
             {"keys of 2 parts, found 1"});
}

BOOST_AUTO_TEST_CASE(nulls_where_there_are_none) {
  const TestArrow keys("I", {uint64_t{5}, {}, uint64_t{3}}, 9);
  CheckError(FindFirst(numbers, &keys.schema, &keys.array), CAIRN_INVALID_ARGUMENT,
             {"value 1", "null"});
  // A validity bitmap without nulls.
  TestArrow counted("I", kNumbers);
  const uint8_t all[] = {0xFF};
  counted.array.buffers[0] = all;
  counted.array.null_count = -1;
  RequireNone(FindFirst(numbers, &counted.schema, &counted.array));
  // Without nulls the bitmap is not read.
  const uint8_t none[] = {0};
  counted.array.buffers[0] = none;
  counted.array.null_count = 0;
  RequireNone(FindFirst(numbers, &counted.schema, &counted.array));
}

BOOST_AUTO_TEST_CASE(dictionaries) {
  TestArrow values("u", {"c", "none", "b"});
  TestArrow keys("C", {uint64_t{2}, uint64_t{1}, uint64_t{0}});
  keys.SetDictionary(&values);
  uint32_t rows[3];
  RequireNone(cairn_find_first(text.get(), &keys.schema, &keys.array, nullptr, rows, 3));
  BOOST_TEST(rows[0] == 0u);
  BOOST_TEST(rows[1] == CAIRN_NO_ROW);
  BOOST_TEST(rows[2] == 2u);
  values.array.length = 2;
  CheckError(FindFirst(text, &keys.schema, &keys.array), CAIRN_INVALID_ARGUMENT,
             {"element 0", "one of 2 values", "found 2"});
  CheckError(FindFirst(numbers, &keys.schema, &keys.array), CAIRN_INVALID_ARGUMENT, {"element 0"});
  values.array.length = 3;
  CheckError(FindFirst(numbers, &keys.schema, &keys.array), CAIRN_INVALID_ARGUMENT,
             {"part 1 (u32)", "a dictionary of string"});
}

BOOST_AUTO_TEST_CASE(offsets_of_text) {
  for (const char* format : {"u", "z", "U", "Z"}) {
    const bool large = format[0] == 'U' || format[0] == 'Z';
    const auto set = [=](TestArrow* keys, size_t i, int64_t value) {
      char* const offsets = static_cast<char*>(const_cast<void*>(keys->array.buffers[1]));
      const int32_t small_value = static_cast<int32_t>(value);
      std::memcpy(offsets + i * (large ? 8 : 4),
                  large ? static_cast<const void*>(&value) : &small_value, large ? 8 : 4);
    };
    CheckText(format, [=](TestArrow* k) { set(k, 2, 1); }, {"ascend", "element 2"});
    CheckText(format, [=](TestArrow* k) { set(k, 0, -1); }, {"ascend", "-1", "element 0"});
    CheckText(format, [](TestArrow* k) { k->array.buffers[2] = nullptr; }, {"buffer of bytes"});
    CheckText(format, [](TestArrow* k) { k->array.buffers[1] = nullptr; }, {"no buffer"});
    CheckText(format, [](TestArrow* k) { k->array.n_buffers = 2; }, {"3 buffers", "found 2"});
  }
}

BOOST_AUTO_TEST_CASE(views_of_text) {
  const auto set = [](TestArrow* keys, size_t word, int32_t value) {
    char* const views = static_cast<char*>(const_cast<void*>(keys->array.buffers[1]));
    std::memcpy(views + 16 + word * 4, &value, 4);
  };
  CheckText("vu", [=](TestArrow* k) { set(k, 0, -1); }, {"element 1", "length, found -1"});
  CheckText("vu", [=](TestArrow* k) { set(k, 2, 2); }, {"element 1", "one of 2 buffers, found 2"});
  CheckText("vz", [=](TestArrow* k) { set(k, 2, -1); }, {"element 1", "found -1"});
  CheckText("vz", [=](TestArrow* k) { set(k, 3, -1); }, {"element 1", "at offset -1"});
  CheckText("vz", [=](TestArrow* k) { set(k, 3, 1); }, {"element 1", "bytes in a buffer"});
  CheckText("vz", [=](TestArrow* k) { set(k, 0, INT32_MAX); }, {"element 1"});
  CheckText("vu", [](TestArrow* k) { k->array.n_buffers = 2; }, {"at least 3 buffers"});
  CheckText("vu", [](TestArrow* k) { k->array.buffers[k->array.n_buffers - 1] = nullptr; },
            {"sizes of 2 buffers"});
  CheckText("vu", [](TestArrow* k) { k->array.buffers[3] = nullptr; }, {"element 1"});
}

BOOST_AUTO_TEST_CASE(structs) {
  CheckPair([](TestArrow* k) { k->array.n_children = 1; }, {"children", "1 and 2"});
  CheckPair([](TestArrow* k) { k->schema.n_children = -1; }, {"children"});
  CheckPair([](TestArrow* k) { k->schema.n_children = k->array.n_children = 0; },
            {"a child for each part"});
  CheckPair([](TestArrow* k) { k->array.children = nullptr; }, {"2 children, found none"});
  CheckPair([](TestArrow* k) { k->array.children[1] = nullptr; }, {"part 2", "NULL"});
  CheckPair([](TestArrow* k) { k->schema.children[0] = nullptr; }, {"part 1", "NULL"});
  CheckPair([](TestArrow* k) { k->child(1)->array.release = nullptr; }, {"part 2", "released"});
  CheckPair([](TestArrow* k) { k->child(0)->array.length = 2; },
            {"part 1", "at least 3 elements, found 2"});
  CheckPair([](TestArrow* k) { k->array.offset = 1; }, {"part 1", "at least 4 elements, found 3"});
  CheckPair([](TestArrow* k) { k->array.n_buffers = 2; }, {"1 buffer", "found 2"});
  CheckPair([](TestArrow* k) { k->child(1)->schema.format = "+s"; }, {"part 2", "'+s'"});
  static const uint8_t valid[] = {0x5};
  const auto null_struct = [](TestArrow* k) {
    k->array.buffers[0] = valid;
    k->array.null_count = 1;
  };
  CheckPair(null_struct, {"element 1", "found null"});
}

BOOST_AUTO_TEST_CASE(what_a_key_cannot_have) {
  std::vector<std::unique_ptr<TestArrow>> children;
  for (int i = 0; i < 17; ++i) children.push_back(std::make_unique<TestArrow>("I", kNumbers));
  const TestArrow many(std::move(children), 3, 0);
  cairn_index* index = nullptr;
  CheckError(cairn_index_from_columns(&many.schema, &many.array, nullptr, &index),
             CAIRN_INVALID_ARGUMENT, {"16 parts", "17"});
  const std::string long_key(KeyCodec::kMaxKeyBytes + 1, 'k');
  const TestArrow keys("U", {"a", std::string_view(long_key)});
  CheckError(cairn_index_from_columns(&keys.schema, &keys.array, nullptr, &index),
             CAIRN_INVALID_ARGUMENT, {"key 1"});
  BOOST_TEST(index == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace cairn
