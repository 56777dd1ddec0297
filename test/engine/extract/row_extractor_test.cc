#include "engine/extract/row_extractor.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "test/engine/extract/extracted_keys.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(row_extractor_test)
namespace {

template <typename Number>
std::string Bytes(Number number, bool big) {
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
  if (big) std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

// A custom extractor that returns the given values.
class Gives : public KeyExtractor {
 public:
  explicit Gives(std::vector<DataValue> values) : values_(std::move(values)) {}
  absl::Status Extract(const RowView& row, KeySink* sink) const override {
    if (row.value == "refuse") return absl::FailedPreconditionError("it was refused");
    for (const DataValue& value : values_) {
      if (const auto* text = std::get_if<std::string_view>(&value)) {
        std::string temporary(*text);
        sink->Add(std::string_view(temporary));
        std::fill(temporary.begin(), temporary.end(), '?');
      } else {
        sink->Add(value);
      }
    }
    return absl::OkStatus();
  }

 private:
  std::vector<DataValue> values_;
};

BOOST_AUTO_TEST_CASE(reads_numbers_of_every_type_and_byte_order_from_raw_bytes) {
  for (const bool big : {false, true}) {
    const std::string order = big ? "be" : "le";
    BOOST_TEST(Keys("value[0:2]:u16" + order, Bytes(uint16_t{0x1234}, big)) == "4660");
    BOOST_TEST(Keys("value[0:2]:i16" + order, Bytes(int16_t{-2}, big)) == "-2");
    BOOST_TEST(Keys("value[0:4]:u32" + order, Bytes(uint32_t{0xFEDCBA98}, big)) == "4275878552");
    BOOST_TEST(Keys("value[0:4]:i32" + order, Bytes(INT32_MIN, big)) == "-2147483648");
    BOOST_TEST(Keys("value[0:8]:u64" + order, Bytes(UINT64_MAX - 1, big)) ==
               "18446744073709551614");
    BOOST_TEST(Keys("value[0:8]:i64" + order, Bytes(int64_t{-3}, big)) == "-3");
    BOOST_TEST(Keys("value[0:4]:f32" + order, Bytes(-0.1f, big)) == "-0.1");
    BOOST_TEST(Keys("value[0:8]:f64" + order, Bytes(1e300, big)) == "1e+300");
    BOOST_TEST(Keys("value[0:8]:f64" + order, Bytes(-std::nan("5"), big)) == "nan");
    // The same with nulls kept, which uses another path of the extractor.
    BOOST_TEST(Keys("value[0:4]:i32" + order + ",nulls=last", Bytes(int32_t{-7}, big)) == "-7");
  }
  BOOST_TEST(Keys("value[1:1]:u8", "a\xff") == "255");
  BOOST_TEST(Keys("value[1:1]:i8", "a\xff") == "-1");
}

BOOST_AUTO_TEST_CASE(a_byte_range_behind_the_end_is_null_and_one_that_is_cut_short_an_error) {
  BOOST_TEST(Keys("value[2:4]:text", "abcdef") == "cdef");
  BOOST_TEST(Keys("value[2:]:text", "abcdef") == "cdef");
  BOOST_TEST(Keys("key[1:]:text", Row("v", "primary")) == "rimary");
  BOOST_TEST(Keys("key:text", Row("v", "primary")) == "primary");
  BOOST_TEST(Keys("value[6:1]:u8", "abcdef") == "");
  BOOST_TEST(Keys("value[7:]:text", "abcdef") == "");
  BOOST_TEST(Keys("value[18446744073709551614:1]:u8", "abcdef") == "");
  BOOST_TEST(Keys("value[7:]:text,nulls=first", "abcdef") == "\\N");
  BOOST_TEST(Keys("value[6:1]:text,nulls=first", "abcdef") == "\\N");
  BOOST_TEST(Keys("value[6:]:text,nulls=first", "abcdef") == "");
  BOOST_TEST(Keys("value:text,nulls=first", "") == "");
  Unreadable("value:u32le", "", "found 0");
  Unreadable("value[4:4]:text", "abcdef",
             "part 1 (value[4:4]:text): expected 4 bytes from offset 4, found 2");
  Unreadable("key:text,value[5:2]:u16le", "abcdef", "part 2 (value[5:2]:u16le)");
  Unreadable("value[1:18446744073709551614]:text", "abc", "found 2");
  // Without a length, the rest must be as wide as the number.
  BOOST_TEST(Keys("value[4:]:u16be", "abcd\1\2") == "258");
  Unreadable("value[4:]:u16be", "abcd\1", "expected 2 bytes, found 1");
  Unreadable("value[4:]:u16be", "abcd\1\2\3", "expected 2 bytes, found 3");
  Unreadable("value:u8,nulls=last", "ab", "expected 1 bytes, found 2");
}

BOOST_AUTO_TEST_CASE(reads_delimited_fields) {
  BOOST_TEST(Keys("value.field('|',0):text", "a|b||d") == "a");
  BOOST_TEST(Keys("value.field('|',1):text,key:text", "a|b||d") == "b,pk");
  BOOST_TEST(Keys("value.field('|',2):text,nulls=first", "a|b||d") == "");
  BOOST_TEST(Keys("value.field('|',3):text", "a|b||d") == "d");
  BOOST_TEST(Keys("value.field('|',4):text,nulls=first", "a|b||d") == "\\N");
  BOOST_TEST(Keys("value.field('|',4):text", "a|b||d|") == "");
  BOOST_TEST(Keys("value.field('|',4):text,nulls=last", "a|b||d|") == "");
  BOOST_TEST(Keys("value.field('|',4294967295):text,nulls=last", "a|b") == "\\N");
  BOOST_TEST(Keys("value.field('\\x00',1):text", "a\0b"sv) == "b");
  BOOST_TEST(Keys("value.field('|',1):i64", "a|-42|") == "-42");
  BOOST_TEST(Keys("value.field('|',1):f64", "a|0.1|") == "0.1");
  BOOST_TEST(Keys("value.field('|',1):f32,nulls=last", "a|-inf|") == "-inf");
  Unreadable("value.field('|',1):u8", "a|256|", "expected a whole number from 0 to 255");
  Unreadable("value.field('|',1):u8", "a| 5|", "found ' 5'");
  Unreadable("value.field('|',1):u8", "a||", "found nothing");
  Unreadable("value.field('|',1):f64", "a|1,5|", "part 1 (value.field('|',1):f64)");
}

BOOST_AUTO_TEST_CASE(reads_columns_of_entities) {
  const std::vector<ColumnView> columns = {
      {"", "default"}, {"age", "\x2a"}, {"city", "Ulm"}, {"none", ""}, {"size", "\1\2"}};
  const RowView entity = {"pk", "default", columns};
  BOOST_TEST(Keys("column('city'):text", entity) == "Ulm");
  BOOST_TEST(Keys("column('age'):u8", entity) == "42");
  BOOST_TEST(Keys("column('size'):u16le", entity) == "513");
  BOOST_TEST(Keys("column('size'):u16be,column('city'):bytes", entity) == "258,Ulm");
  BOOST_TEST(Keys("column(''):text", entity) == "default");
  BOOST_TEST(Keys("column('none'):text,nulls=last", entity) == "");
  BOOST_TEST(Keys("column('zip'):text,nulls=last", entity) == "\\N");
  BOOST_TEST(Keys("column('zip'):u32le", entity) == "");
  BOOST_TEST(Keys("column('city'):u16le", entity).find("expected 2 bytes, found 3") !=
             std::string::npos);
  BOOST_TEST(Keys("column(''):text", "plain") == "plain");
  BOOST_TEST(Keys("column('city'):text", "plain") == "");
}

BOOST_AUTO_TEST_CASE(an_array_gives_one_key_per_distinct_element_in_order) {
  BOOST_TEST(Keys("value.json('/t'):text", R"({"t":["b","a","b","","ab"]})") == " a ab b");
  BOOST_TEST(Keys("value.json('/t'):i8", R"({"t":[5,-1,5,127,-128]})") == "-128 -1 5 127");
  BOOST_TEST(Keys("value.json('/t'):i8", R"({"t":[]})") == "");
  BOOST_TEST(Keys("value.json('/t'):i8,nulls=first", R"({"t":[]})") == "\\N");
  BOOST_TEST(Keys("value.json('/t'):i8", R"({"t":[null,3,null]})") == "3");
  BOOST_TEST(Keys("value.json('/t'):i8,nulls=last", R"({"t":[null,3,null]})") == "3 \\N");
  BOOST_TEST(Keys("value.json('/t'):i8,nulls=first", R"({"t":[null,3,null]})") == "\\N 3");
  BOOST_TEST(Keys("value.json('/t'):f64,nulls=first", R"({"t":[null,0.5,-1e9]})") ==
             "\\N -1e+09 0.5");
}

BOOST_AUTO_TEST_CASE(several_values_in_several_parts_give_every_combination_in_order) {
  const char* json = R"({"a":["x","","x\u0000","xy"],"b":[2,1,2],"c":null})";
  BOOST_TEST(Keys("value.json('/a'):text,value.json('/b'):u8", json) ==
             ",1 ,2 x,1 x,2 x\\x00,1 x\\x00,2 xy,1 xy,2");
  BOOST_TEST(Keys("value.json('/b'):u8,value.json('/a'):text,key:text", json) ==
             "1,,pk 1,x,pk 1,x\\x00,pk 1,xy,pk 2,,pk 2,x,pk 2,x\\x00,pk 2,xy,pk");
  BOOST_TEST(Keys("value.json('/b'):u8,value.json('/b'):i8", json) == "1,1 1,2 2,1 2,2");
  BOOST_TEST(Keys("value.json('/b'):u32,value.json('/b'):u8", json) == "1,1 1,2 2,1 2,2");
  BOOST_TEST(Keys("value.json('/b'):u8,value.json('/c'):u8", json) == "");
  BOOST_TEST(Keys("value.json('/b'):u8,value.json('/c'):u8,nulls=last", json) == "1,\\N 2,\\N");
}

BOOST_AUTO_TEST_CASE(under_nulls_skip_a_part_without_a_value_ends_the_row) {
  BOOST_TEST(Keys("value.field('|',5):text,value.json('/a'):u8", "no json") == "");
  Unreadable("value.json('/a'):u8,value.field('|',5):text", "no json", "expected JSON");
  Unreadable("value.field('|',5):text,value.json('/a'):u8,nulls=last", "no json", "part 2");
}

BOOST_AUTO_TEST_CASE(a_row_gives_at_most_65536_keys) {
  std::string numbers = "[0";
  for (int i = 1; i < 65536; ++i) absl::StrAppendFormat(&numbers, ",%d", i);
  RowExtractor::Scratch scratch;
  const RowExtractor one = Compiled("value.json(''):u32");
  EncodedKeys keys(PhysicalType::kU32);
  RequireOk(one.Extract(Row(numbers + "]"), &scratch, &keys));
  BOOST_TEST(keys.size() == 65536u);
  BOOST_TEST(keys.u32(65535) == 65535u);
  Unreadable("value.json(''):u32", numbers + ",65536]", "at most 65536 values");
  std::string some = "[0";
  for (int i = 1; i < 256; ++i) absl::StrAppendFormat(&some, ",%d", i);
  const RowExtractor two = Compiled("value.json(''):u16,value.json(''):u16");
  keys.Clear(PhysicalType::kU32);
  RequireOk(two.Extract(Row(some + "]"), &scratch, &keys));
  BOOST_TEST(keys.size() == 65536u);
  const std::string error = Keys("value.json(''):u16,value.json(''):u16", Row(some + ",256]"));
  BOOST_CHECK(error.find("at most 65536 keys") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(keys_of_one_row_are_bounded_in_bytes) {
  const std::string most(KeyCodec::kMaxKeyBytes, 'x');
  EncodedKeys keys(PhysicalType::kBytes);
  RowExtractor::Scratch scratch;
  BOOST_CHECK(Compiled("value:text").Extract(Row(most), &scratch, &keys).ok());
  Unreadable("value:text", most + "x", "at most 16777216 bytes");
  const std::string both = Keys("value:text,key:text", Row(most));
  BOOST_CHECK(both.find("at most 16777216 bytes in a key") != std::string::npos);
  // 1 MB in each of 100 keys.
  std::string json = absl::StrFormat(R"({"long":"%s","n":[0)", std::string(1 << 20, 'x'));
  for (int i = 1; i < 100; ++i) absl::StrAppendFormat(&json, ",%d", i);
  const std::string many = Keys("value.json('/long'):text,value.json('/n'):u8", Row(json + "]}"));
  BOOST_CHECK(many.find("bytes of keys in a row") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(custom_extractors_give_values_of_the_declared_type) {
  const auto give = [](const std::string& name, std::vector<DataValue> values) {
    RequireOk(RegisterExtractor(name, std::make_shared<Gives>(std::move(values))));
  };
  give("row_test.texts", {"b"sv, "a"sv, std::monostate(), "b"sv});
  give("row_test.numbers", {uint64_t{3}, int64_t{1}, 2.0});
  give("row_test.none", {});
  give("row_test.wrong", {uint64_t{1}, int64_t{-1}, uint64_t{2}});
  BOOST_TEST(Keys("custom('row_test.texts'):text", "") == "a b");
  BOOST_TEST(Keys("custom('row_test.texts'):text,nulls=last", "") == "a b \\N");
  BOOST_TEST(Keys("custom('row_test.numbers'):u16,key:text", "") == "1,pk 2,pk 3,pk");
  BOOST_TEST(Keys("custom('row_test.none'):f64", "") == "");
  BOOST_TEST(Keys("custom('row_test.none'):f64,nulls=first", "") == "\\N");
  Unreadable("custom('row_test.wrong'):u8", "", "found -1");
  RowExtractor::Scratch scratch;
  EncodedKeys keys(PhysicalType::kU32);
  const absl::Status refused =
      Compiled("custom('row_test.numbers'):u8").Extract(Row("refuse"), &scratch, &keys);
  BOOST_CHECK(absl::IsFailedPrecondition(refused));
  BOOST_CHECK(refused.message() == "part 1 (custom('row_test.numbers'):u8): it was refused");
  const auto unknown = RowExtractor::Create(*IndexSpec::Parse("key:text,custom('row_test.x'):u8"));
  BOOST_CHECK(absl::IsNotFound(unknown.status()));
  BOOST_CHECK(std::string(unknown.status().message()).find("part 2") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(specs_made_by_hand_are_checked) {
  BOOST_CHECK(absl::IsInvalidArgument(RowExtractor::Create(IndexSpec()).status()));
  const auto refused = [](const KeyPart& part) {
    IndexSpec spec;
    spec.parts = {part};
    return absl::IsInvalidArgument(RowExtractor::Create(spec).status());
  };
  KeyPart part;
  part.type = DataType::kU32;
  BOOST_TEST(!refused(part));
  part.source.length = 3;
  BOOST_TEST(refused(part));
  part.source.length = 4;
  part.source.offset = UINT64_MAX - 3;
  BOOST_TEST(refused(part));
  part.source.kind = KeySource::Kind::kJson;
  part.source.name = "a";
  BOOST_TEST(refused(part));
}

BOOST_AUTO_TEST_CASE(a_scratch_serves_rows_and_specs_in_turn) {
  const RowExtractor city = Compiled("value.json('/city'):text");
  const RowExtractor both = Compiled("value.json('/n'):u8,value.json('/city'):text");
  const RowExtractor plain = Compiled("key:text");
  RowExtractor::Scratch scratch;
  EncodedKeys keys(PhysicalType::kBytes);
  // Rows of one size at the same address, as from cursors.
  std::string buffer = R"({"n":1,"city":"Ulm"})";
  const RowView row = Row(buffer);
  RequireOk(plain.Extract(row, &scratch, &keys));
  RequireOk(both.ExtractAgain(row, &scratch, &keys));
  RequireOk(city.ExtractAgain(row, &scratch, &keys));
  buffer.replace(buffer.find("Ulm"), 3, "Aue");
  RequireOk(city.Extract(row, &scratch, &keys));
  buffer.back() = ' ';
  BOOST_CHECK(!city.Extract(row, &scratch, &keys).ok());
  BOOST_CHECK(!both.ExtractAgain(row, &scratch, &keys).ok());
  buffer.back() = '}';
  RowExtractor::Scratch moved = std::move(scratch);
  RequireOk(both.Extract(row, &moved, &keys));
  BOOST_REQUIRE(keys.size() == 5u);
  BOOST_CHECK(keys.bytes(0) == "pk");
  BOOST_CHECK(keys.bytes(1) == "\1Ulm");
  BOOST_CHECK(keys.bytes(2) == "Ulm");
  BOOST_CHECK(keys.bytes(3) == "Aue");
  BOOST_CHECK(keys.bytes(4) == "\1Aue");
}

BOOST_AUTO_TEST_CASE(random_arrays_give_the_keys_that_a_set_of_tuples_holds) {
  auto random = TestRandom();
  RowExtractor::Scratch scratch;
  for (const std::string_view options : {"", ",nulls=first", ",nulls=last"}) {
    const RowExtractor extractor = Compiled(absl::StrFormat(
        "value.json('/0'):text,value.field(';',1):i16,value.json('/1'):i8%s", options));
    for (int round = 0; round < 300; ++round) {
      // Tuples by definition: a null is an empty optional, which sorts first.
      using Tuple = std::tuple<std::optional<std::string>, int, std::optional<int>>;
      std::set<std::optional<std::string>> texts;
      std::set<std::optional<int>> numbers;
      std::string texts_json;
      std::string numbers_json;
      for (size_t n = random() % 6; n > 0; --n) {
        static constexpr std::string_view kTexts[] = {"", "a", "ab", "a\\u0000", "\\u0000", "b"};
        static const std::string kValues[] = {"", "a", "ab", "a\0"s, "\0"s, "b"};
        const size_t pick = random() % 8;
        texts_json += (texts_json.empty() ? "" : ",");
        texts_json += pick > 5 ? "null" : absl::StrFormat("\"%s\"", kTexts[pick]);
        texts.insert(pick > 5 ? std::nullopt : std::optional(kValues[pick]));
      }
      for (size_t n = random() % 6; n > 0; --n) {
        const int number = static_cast<int>(random() % 8) - 4;
        numbers_json += (numbers_json.empty() ? "" : ",");
        numbers_json += number == 3 ? "null" : std::to_string(number);
        numbers.insert(number == 3 ? std::nullopt : std::optional(number));
      }
      // The field is inside a string of the document.
      const int field = static_cast<int>(random() % 100) - 50;
      const std::string json =
          absl::StrFormat(R"([[%s],[%s],";%d;"])", texts_json, numbers_json, field);
      if (texts.empty()) texts.insert(std::nullopt);
      if (numbers.empty()) numbers.insert(std::nullopt);
      std::vector<Tuple> expected;
      for (const auto& text : texts) {
        for (const auto& number : numbers) {
          if (options.empty() && (!text.has_value() || !number.has_value())) continue;
          expected.emplace_back(text, field, number);
        }
      }
      const bool first = options == ",nulls=first";
      const auto before = [first](const Tuple& a, const Tuple& b) {
        const auto rank = [first](bool null) { return first ? !null : null; };
        const auto key = [&rank](const Tuple& t) {
          return std::tuple(rank(!std::get<0>(t)), std::get<0>(t), std::get<1>(t),
                            rank(!std::get<2>(t)), std::get<2>(t));
        };
        return key(a) < key(b);
      };
      std::sort(expected.begin(), expected.end(), before);
      EncodedKeys keys(extractor.codec().kind());
      RequireOk(extractor.Extract(Row(json), &scratch, &keys));
      EncodedKeys oracle(extractor.codec().kind());
      for (const auto& [text, number, last] : expected) {
        std::vector<DataValue> values(3);
        if (text.has_value()) values[0] = std::string_view(*text);
        values[1] = int64_t{number};
        if (last.has_value()) values[2] = int64_t{*last};
        RequireOk(extractor.codec().Append(values, &oracle));
      }
      BOOST_REQUIRE_MESSAGE(keys.size() == oracle.size(), json);
      for (size_t i = 0; i < keys.size(); ++i) {
        BOOST_REQUIRE_MESSAGE(keys.bytes(i) == oracle.bytes(i), json);
        BOOST_REQUIRE((i == 0 || keys.bytes(i - 1) < keys.bytes(i)));
      }
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
