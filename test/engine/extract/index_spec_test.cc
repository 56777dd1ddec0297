#include "cairn/index_spec.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/extract/key_part.h"
#include "index/keys/key_number.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(index_spec_test, *StartsNoThread())
namespace {

bool Same(const KeyPart& a, const KeyPart& b) {
  return a.source.kind == b.source.kind && a.source.offset == b.source.offset &&
         a.source.length == b.source.length && a.source.delimiter == b.source.delimiter &&
         a.source.field == b.source.field && a.source.name == b.source.name && a.type == b.type &&
         a.endian == b.endian;
}

bool Same(const IndexSpec& a, const IndexSpec& b) {
  if (a.parts.size() != b.parts.size()) return false;
  for (size_t i = 0; i < a.parts.size(); ++i) {
    if (!Same(a.parts[i], b.parts[i])) return false;
  }
  if (a.include.size() != b.include.size()) return false;
  for (size_t i = 0; i < a.include.size(); ++i) {
    if (a.include[i].name != b.include[i].name) return false;
    if (!Same(a.include[i].value, b.include[i].value)) return false;
  }
  return a.name == b.name && a.column_family == b.column_family && a.unique == b.unique &&
         a.nulls == b.nulls && a.on_error == b.on_error && a.dropped_rows == b.dropped_rows;
}

IndexSpec Parsed(std::string_view text) {
  auto spec = IndexSpec::Parse(text);
  BOOST_REQUIRE_MESSAGE(spec.ok(), text << ": " << spec.status().message());
  return *std::move(spec);
}

// Checks that Parse rejects `text` at `offset`, with an error that contains `mention`.
void Refuses(std::string_view text, size_t offset, std::string_view mention) {
  const absl::Status status = IndexSpec::Parse(text).status();
  BOOST_CHECK_MESSAGE(absl::IsInvalidArgument(status), "accepted: " << text);
  const std::string message(status.message());
  const std::string at = absl::StrFormat("at offset %d: ", offset);
  BOOST_CHECK_MESSAGE(message.find(at) != std::string::npos,
                      at << " for " << text << ": " << message);
  BOOST_CHECK_MESSAGE(message.find(mention) != std::string::npos,
                      "'" << mention << "' for " << text << ": " << message);
}

BOOST_AUTO_TEST_CASE(reads_every_source) {
  const IndexSpec spec = Parsed(
      "all=key:bytes,key[4:8]:i64le,value:text,value[8:]:text,value[8:4]:u32be,"
      "value.field('|',4):u16,value.json('/a/b'):f64,column('c'):f32le,custom('mine'):text");
  BOOST_TEST(spec.name == "all");
  BOOST_REQUIRE(spec.parts.size() == 9u);
  BOOST_CHECK(spec.parts[0].source.kind == KeySource::Kind::kKey);
  BOOST_TEST(!spec.parts[0].source.length.has_value());
  BOOST_TEST(spec.parts[1].source.offset == 4u);
  BOOST_TEST(*spec.parts[1].source.length == 8u);
  BOOST_CHECK(spec.parts[1].endian == Endian::kLittle);
  BOOST_CHECK(spec.parts[1].type == DataType::kI64);
  BOOST_CHECK(spec.parts[2].source.kind == KeySource::Kind::kValue);
  BOOST_TEST(spec.parts[3].source.offset == 8u);
  BOOST_TEST(!spec.parts[3].source.length.has_value());
  BOOST_CHECK(spec.parts[4].endian == Endian::kBig);
  BOOST_CHECK(spec.parts[5].source.kind == KeySource::Kind::kField);
  BOOST_TEST(spec.parts[5].source.delimiter == '|');
  BOOST_TEST(spec.parts[5].source.field == 4u);
  BOOST_CHECK(spec.parts[6].source.kind == KeySource::Kind::kJson);
  BOOST_TEST(spec.parts[6].source.name == "/a/b");
  BOOST_CHECK(spec.parts[7].source.kind == KeySource::Kind::kColumn);
  BOOST_TEST(spec.parts[7].source.name == "c");
  BOOST_CHECK(spec.parts[8].source.kind == KeySource::Kind::kCustom);
  BOOST_TEST(spec.parts[8].source.name == "mine");
  BOOST_CHECK(spec.Codec()->kind() == PhysicalType::kBytes);
}

BOOST_AUTO_TEST_CASE(reads_every_option_in_any_order) {
  const IndexSpec plain = Parsed("value:u8");
  BOOST_TEST(plain.name == "");
  BOOST_TEST(plain.column_family == "default");
  BOOST_TEST(!plain.unique);
  BOOST_CHECK(plain.nulls == NullPolicy::kSkip);
  BOOST_CHECK(plain.on_error == ErrorPolicy::kFail);
  const IndexSpec spec = Parsed("value:u8,on_error=skip,nulls=last,unique=true,cf=orders-2");
  BOOST_TEST(spec.column_family == "orders-2");
  BOOST_TEST(spec.unique);
  BOOST_CHECK(spec.nulls == NullPolicy::kLast);
  BOOST_CHECK(spec.on_error == ErrorPolicy::kSkip);
  BOOST_CHECK(Same(Parsed("value:u8,unique=false,nulls=skip,on_error=fail,dropped_rows=refuse,"
                          "cf=default"),
                   plain));
  BOOST_CHECK(Parsed("value:u8,dropped_rows=ignore").dropped_rows == DroppedRows::kIgnore);
  BOOST_TEST(Parsed("value:u8,cf='my, cf=\\'x\\''").column_family == "my, cf='x'");
}

BOOST_AUTO_TEST_CASE(reads_included_columns) {
  const IndexSpec spec = Parsed(
      "by=value:text, include ( price = value.field('|', 5):f64,q-1.b=value[8:4]:u32le ), cf=a");
  BOOST_REQUIRE(spec.include.size() == 2u);
  BOOST_TEST(spec.include[0].name == "price");
  BOOST_TEST(spec.include[0].value.source.field == 5u);
  BOOST_CHECK(spec.include[0].value.type == DataType::kF64);
  BOOST_TEST(spec.include[1].name == "q-1.b");
  BOOST_CHECK(spec.include[1].value.endian == Endian::kLittle);
  BOOST_TEST(spec.parts.size() == 1u);
  BOOST_TEST(spec.ToString() ==
             "by=value:text,include(price=value.field('|',5):f64,q-1.b=value[8:4]:u32le),cf=a");
  BOOST_TEST(Parsed("include=value:text,include(include=key:text)").name == "include");
}

BOOST_AUTO_TEST_CASE(refuses_included_columns_that_make_no_sense) {
  Refuses("value:u8,include()", 17, "a column's name of 1 to 255 bytes");
  Refuses("value:u8,include(a)", 18, "expected '=' after the column's name");
  Refuses("value:u8,include(a=)", 19, "expected a source");
  Refuses("value:u8,include(a=key:u8", 25, "expected ',' or ')' after a column");
  Refuses("value:u8,include(a=key:u8 b=key:u8)", 26, "expected ',' or ')' after a column");
  Refuses("value:u8,include(a=key:u8,a=key:u16be)", 26, "'a' again");
  Refuses("value:u8,include(a=key:u32)", 23, "expected a byte order");
  Refuses("value:u8,include(a=key:u8),include(b=key:u8)", 27, "found 'include' again");
  Refuses("value:u8,include=5", 9, "expected a source");
  Refuses("include(a=key:u8),value:u8", 0, "expected a source");
  std::string many = "value:u8,include(";
  for (int i = 0; i < 64; ++i) many += absl::StrFormat("c%d=key:u8,", i);
  Refuses(many + "d=key:u8)", many.size(), "at most 64 columns");
  many.back() = ')';
  BOOST_TEST(Parsed(many).include.size() == 64u);
  Refuses(absl::StrFormat("value:u8,include(%s=key:u8)", std::string(256, 'n')), 17,
          "1 to 255 bytes");
}

BOOST_AUTO_TEST_CASE(ignores_blanks_between_tokens_but_not_in_strings) {
  BOOST_CHECK(Same(Parsed(" by_city = value . field ( ' ' , 4 ) : text ,\n\tkey [ 0 : 4 ] : u32le "
                          ", unique = true\r\n"),
                   Parsed("by_city=value.field(' ',4):text,key[0:4]:u32le,unique=true")));
}

BOOST_AUTO_TEST_CASE(strings_may_hold_anything) {
  BOOST_TEST(Parsed("value.json('/a,b=c\\'d\\\\e\\x41~0~1'):text").parts[0].source.name ==
             "/a,b=c'd\\eA~0~1");
  BOOST_TEST(Parsed("value.field(',',0):text").parts[0].source.delimiter == ',');
  BOOST_TEST(Parsed("value.field('\\x00',0):text").parts[0].source.delimiter == '\0');
  BOOST_TEST(Parsed("column(''):text").parts[0].source.name == "");
  BOOST_TEST(Parsed("value.json(''):text").parts[0].source.name == "");
}

BOOST_AUTO_TEST_CASE(a_part_s_word_may_name_an_index_but_an_option_s_may_not) {
  BOOST_TEST(Parsed("value=value:u8").name == "value");
  BOOST_TEST(Parsed("a.b-c_9=key:text").name == "a.b-c_9");
  BOOST_TEST(Parsed("dropped_rows=key:text").name == "dropped_rows");  // older than the option
  for (const char* text : {"cf=value:u8", "unique=true", "nulls=first,value:u8", "on_error=skip"}) {
    Refuses(text, 0, "options follow the parts");
  }
}

BOOST_AUTO_TEST_CASE(says_where_and_what_was_expected) {
  Refuses("", 0, "value.json, column, custom), found the end");
  Refuses("value", 5, "expected ':' and a type after the source, found the end");
  Refuses("value[0:8] u64", 11, "expected ':' and a type after the source, found 'u64'");
  Refuses("values:u8", 0, "expected a source");
  Refuses("=value:u8", 0, "expected a source");
  Refuses("value:u9", 6, "expected a type (u8 to u64");
  Refuses("value:", 6, "found the end");
  Refuses("value:u32", 6, "expected a byte order, u32le or u32be");
  Refuses("column('x'):f64", 12, "f64le or f64be");
  Refuses("value:u8le", 6, "byte order (le, be) is for numbers of more than one byte");
  Refuses("value:textle", 6, "expected 'text'");
  Refuses("value.field('|',1):u32le", 19, "from raw bytes");
  Refuses("value.json('/a'):i64be", 17, "expected 'i64'");
  Refuses("value[8]:u8", 7, "expected ':' and the range's length");
  Refuses("value[:8]:u64le", 6, "expected the range's offset");
  Refuses("value[1:2", 9, "expected ']'");
  Refuses("value[-1:2]:text", 6, "expected the range's offset");
  Refuses("value[0:18446744073709551616]:text", 8, "at most 18446744073709551615");
  Refuses("key:text,value[8:3]:u32le", 9, "expected a range of 4 bytes for u32, found one of 3");
  Refuses("value[8:0]:text", 0, "at least one byte");
  Refuses("value[18446744073709551615:1]:text,key:u8", 0, "");
  Refuses("value.text(1):u8", 6, "expected field or json");
  Refuses("value.field('||',1):text", 12, "delimiter of one byte");
  Refuses("value.field('',1):text", 12, "delimiter of one byte");
  Refuses("value.field('|'):text", 15, "expected ',' and the field's number");
  Refuses("value.field('|',4294967296):text", 16, "at most 4294967295");
  Refuses("value.field(|,1):text", 12, "a delimiter between single quotes");
  Refuses("value.json(/a):text", 11, "a JSON pointer between single quotes");
  Refuses("value.json('a'):text", 0, "starts with '/'");
  Refuses("value.json('/a~2'):text", 0, "expected 0 or 1 after every '~'");
  Refuses("value.json('/a~'):text", 0, "expected 0 or 1 after every '~'");
  Refuses("value.json('/a):text", 20, "expected a single quote at the end");
  Refuses("column('a\\n'):text", 9, "after a backslash");
  Refuses("column('a\\xg0'):text", 9, "after a backslash");
  Refuses("column('a\\", 9, "after a backslash");
  Refuses("column('a':text", 10, "expected ')'");
  Refuses("custom(''):text", 0, "expected the name of an extractor");
  Refuses("value:u8,", 9, "expected a source");
  Refuses("value:u8, unique", 10,
          "or an option (cf=, unique=true, nulls=, on_error=, dropped_rows=, include(…)), found");
  Refuses("value:u8;", 8, "expected ',' or the end");
  Refuses("value:u8,size=5", 9,
          "expected an option (cf, unique, nulls, on_error, dropped_rows, include)");
  Refuses("value:u8,unique=yes", 16, "expected true or false");
  Refuses("value:u8,nulls=", 15, "expected skip, first or last");
  Refuses("value:u8,on_error=die", 18, "expected fail or skip");
  Refuses("value:u8,dropped_rows=no", 22, "expected refuse or ignore");
  Refuses("value:u8,cf=", 12, "a column family's name");
  Refuses("value:u8,cf=a,cf=b", 14, "expected each option once, found 'cf' again");
  Refuses("value:u8,unique=true,unique=true", 21, "found 'unique' again");
  Refuses("value:u8,unique=true,key:u8", 21, "parts precede the options");
  Refuses("value:u8,name=value:u8", 9, "expected an option");
}

BOOST_AUTO_TEST_CASE(refuses_what_is_too_much) {
  std::string many = "key:text";
  for (int i = 1; i < 16; ++i) many += ",key:text";
  BOOST_TEST(Parsed(many).parts.size() == 16u);
  Refuses(many + ",key:text", many.size() + 1, "at most 16 parts");
  Refuses(absl::StrFormat("column('%s'):text", std::string(513, 'x')), 7,
          "at most 512 bytes, found 513");
  Refuses(absl::StrFormat("%s=key:text", std::string(256, 'n')), 0, "at most 255 bytes");
  Refuses(absl::StrFormat("key:text,cf=%s", std::string(513, 'x')), 12, "at most 512 bytes");
  Refuses(std::string((256 << 10) + 1, ' '), 0, "at most 262144 bytes");
}

BOOST_AUTO_TEST_CASE(the_canonical_text_leaves_out_what_is_the_default) {
  BOOST_TEST(Parsed(" value[0:] :text, unique=false, cf = 'default'").ToString() == "value:text");
  BOOST_TEST(Parsed("i=value[0:4]:u32le,column('a\\x27\\xC3\\\\'):u8,cf='x y',on_error=skip,"
                    "dropped_rows=ignore,nulls=first,unique=true")
                 .ToString() ==
             "i=value[0:4]:u32le,column('a\\'\\xc3\\\\'):u8,cf='x y',unique=true,nulls=first,"
             "on_error=skip,dropped_rows=ignore");
}

std::string RandomString(std::mt19937_64& random, size_t most) {
  static constexpr char kBytes[] = {'a', 'b',  '\'', '\\',   ',', '=',
                                    ' ', '\0', '\n', '\xff', '/', 'x'};
  std::string text(random() % (most + 1), 'x');
  for (char& c : text) c = kBytes[random() % sizeof(kBytes)];
  return text;
}

KeyPart RandomPart(std::mt19937_64& random) {
  KeyPart part;
  part.type = static_cast<DataType>(random() % 12);
  part.source.kind = static_cast<KeySource::Kind>(random() % 6);
  switch (part.source.kind) {
    case KeySource::Kind::kKey:
    case KeySource::Kind::kValue:
      part.source.offset = random() % 3 == 0 ? 0 : random() >> (random() % 64 | 1);
      if (random() % 2 == 0) {
        const size_t width = FixedWidth(part.type);
        part.source.length = width != 0 ? width : 1 + random() % 100;
      }
      break;
    case KeySource::Kind::kField:
      part.source.delimiter = static_cast<char>(random());
      part.source.field = static_cast<uint32_t>(random());
      break;
    case KeySource::Kind::kJson:
      part.source.name =
          random() % 4 == 0 ? "" : absl::StrFormat("/%s~0~1", RandomString(random, 30));
      break;
    case KeySource::Kind::kColumn:
      part.source.name = RandomString(random, 512);
      break;
    case KeySource::Kind::kCustom:
      part.source.name = absl::StrFormat("x%s", RandomString(random, 30));
      break;
  }
  if (SaysByteOrder(part) && random() % 2 == 0) part.endian = Endian::kLittle;
  return part;
}

BOOST_AUTO_TEST_CASE(random_specs_read_back_as_they_were) {
  auto random = TestRandom();
  for (int i = 0; i < 3000; ++i) {
    IndexSpec spec;
    if (random() % 2 == 0) spec.name = absl::StrFormat("n%d", random());
    for (size_t n = 1 + random() % 16; n > 0; --n) spec.parts.push_back(RandomPart(random));
    if (random() % 2 == 0) spec.column_family = RandomString(random, 512);
    spec.unique = random() % 2 == 0;
    spec.nulls = static_cast<NullPolicy>(random() % 3);
    spec.on_error = static_cast<ErrorPolicy>(random() % 2);
    spec.dropped_rows = static_cast<DroppedRows>(random() % 2);
    for (size_t n = random() % 2 == 0 ? 0 : random() % 65; n > 0; --n) {
      spec.include.push_back({absl::StrFormat("c.%d", n), RandomPart(random)});
    }
    const std::string text = spec.ToString();
    const IndexSpec read = Parsed(text);
    BOOST_REQUIRE_MESSAGE(Same(read, spec), text);
    BOOST_REQUIRE(read.ToString() == text);
  }
}

BOOST_AUTO_TEST_CASE(no_prefix_or_changed_byte_of_a_spec_confuses_the_parser) {
  auto random = TestRandom(1);
  const std::string text =
      "by=key[1:4]:u32le,value.field('|',2):text,value.json('/a~1b'):i8,cf='x',nulls=last,"
      "include(a=value[0:4]:f32le,b.c=value:text)";
  for (size_t size = 0; size < text.size(); ++size) {
    const auto spec = IndexSpec::Parse(std::string_view(text).substr(0, size));
    if (spec.ok()) BOOST_TEST(Same(Parsed(spec->ToString()), *spec));
  }
  for (int i = 0; i < 20000; ++i) {
    std::string changed = text;
    changed[random() % changed.size()] = static_cast<char>(random());
    changed[random() % changed.size()] = text[random() % text.size()];
    const auto spec = IndexSpec::Parse(changed);
    if (spec.ok()) BOOST_REQUIRE_MESSAGE(Same(Parsed(spec->ToString()), *spec), changed);
  }
}

BOOST_AUTO_TEST_CASE(a_spec_without_parts_has_no_codec) {
  BOOST_CHECK(absl::IsInvalidArgument(IndexSpec().Codec().status()));
  BOOST_CHECK(Parsed("value[0:4]:u32le,key[0:2]:u16be,nulls=first").Codec()->kind() ==
              PhysicalType::kU64);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
