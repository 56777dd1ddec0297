#include "cairn/key_codec.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <string>

#include "test/index/keys/key_values.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(key_codec_text_test)
namespace {

BOOST_AUTO_TEST_CASE(every_type_reads_what_it_writes) {
  auto random = TestRandom(2);
  for (const KeyType type : kAllTypes) {
    for (const NullPolicy nulls : kAllNulls) {
      const KeyCodec codec = Codec({type}, nulls);
      KeyColumn keys(codec.kind());
      for (const KeyValue& value : Corners(type)) RequireOk(codec.Append({value}, &keys));
      for (int i = 0; i < 2000; ++i) {
        RequireOk(codec.Append({RandomValue(type, random)}, &keys));
      }
      if (nulls != NullPolicy::kSkip) {
        RequireOk(codec.Append({std::monostate()}, &keys));
      }
      CheckText(codec, keys);
    }
  }
}

BOOST_AUTO_TEST_CASE(text_forms_are_the_documented_ones) {
  KeyColumn keys(KeyKind::kBytes);
  const KeyCodec composite = Codec({KeyType::kText, KeyType::kF32}, NullPolicy::kLast);
  RequireOk(composite.Append({"a,b \\\xc3"sv, 0.1}, &keys));
  RequireOk(composite.Append({std::monostate(), -std::nan("")}, &keys));
  BOOST_TEST(*composite.Format(keys, 0) == "a\\x2cb\\x20\\x5c\\xc3,0.1");
  BOOST_TEST(*composite.Format(keys, 1) == "\\N,nan");
  const KeyCodec text = Codec({KeyType::kText});
  KeyColumn single(KeyKind::kBytes);
  RequireOk(text.Parse("a,b", &single));
  BOOST_TEST(*text.Format(single, 0) == "a,b");
  RequireOk(text.Parse("\\x4A \\x5c", &single));
  BOOST_CHECK(single.bytes(1) == "J \\");
  KeyColumn floats(KeyKind::kU64);
  const KeyCodec f64 = Codec({KeyType::kF64});
  for (const char* written : {"inf", "-inf", "nan", "-0", "0", "1e+22", "0.1", "5e-324"}) {
    RequireOk(f64.Parse(written, &floats));
    BOOST_TEST(*f64.Format(floats, floats.size() - 1) == written);
  }
}

BOOST_AUTO_TEST_CASE(refuses_text_that_is_no_such_number) {
  const auto refuses = [](KeyType type, std::string_view text, std::string_view mention) {
    const KeyCodec codec = Codec({type});
    KeyColumn keys(codec.kind());
    const absl::Status status = codec.Parse(text, &keys);
    BOOST_CHECK_MESSAGE(absl::IsInvalidArgument(status), KeyTypeName(type) << " " << text);
    BOOST_CHECK(Mentions(status, "part 1"));
    BOOST_CHECK(Mentions(status, mention));
    BOOST_TEST(keys.empty());
  };
  refuses(KeyType::kU8, "256", "from 0 to 255");
  refuses(KeyType::kU8, "", "found nothing");
  refuses(KeyType::kU8, "-1", "found '-1'");
  refuses(KeyType::kU8, "+1", "found '+1'");
  refuses(KeyType::kU8, "1 ", "found '1 '");
  refuses(KeyType::kU8, "0x1", "found '0x1'");
  refuses(KeyType::kU16, "65536", "to 65535");
  refuses(KeyType::kU32, "4294967296", "to 4294967295");
  refuses(KeyType::kU64, "18446744073709551616", "to 18446744073709551615");
  refuses(KeyType::kI8, "128", "from -128 to 127");
  refuses(KeyType::kI8, "-129", "from -128 to 127");
  refuses(KeyType::kI16, "1.0", "found '1.0'");
  refuses(KeyType::kI32, "2147483648", "to 2147483647");
  refuses(KeyType::kI64, "-9223372036854775809", "from -9223372036854775808");
  refuses(KeyType::kF32, "1e39", "range of f32");
  refuses(KeyType::kF32, "1e-60", "range of f32");
  refuses(KeyType::kF64, "1e309", "range of f64");
  refuses(KeyType::kF64, "-1e-400", "range of f64");
  for (const char* text :
       {"", "NaN", "infinity", "-nan", "nan(1)", "1.5x", " 1", "+1", "1e", "."}) {
    refuses(KeyType::kF64, text, "f64 number in decimal");
  }
  refuses(KeyType::kU8, "\\N", "null");
  refuses(KeyType::kText, "\\N", "null");
  refuses(KeyType::kText, "a\\n", "expected \\xHH");
  refuses(KeyType::kText, "\\x2", "expected \\xHH");
  refuses(KeyType::kBytes, "\\xg0", "expected \\xHH");
  refuses(KeyType::kText, "\\", "expected \\xHH");
  const KeyCodec pair = Codec({KeyType::kText, KeyType::kU8});
  KeyColumn keys(KeyKind::kBytes);
  BOOST_CHECK(Mentions(pair.Parse("a", &keys), "found 1"));
  BOOST_CHECK(Mentions(pair.Parse("a,1,", &keys), "found 3"));
  BOOST_CHECK(Mentions(pair.Parse("a,x", &keys), "part 2 (u8)"));
  BOOST_TEST(keys.empty());
}

BOOST_AUTO_TEST_CASE(a_written_prefix_is_open_at_its_last_text_unless_a_comma_closes_it) {
  const KeyCodec codec = Codec({KeyType::kText, KeyType::kText}, NullPolicy::kFirst);
  KeyColumn keys(KeyKind::kBytes);
  for (const char* text : {"d,x", "de,", "de,\\N", "de,ab", "de,b", "def,a", "e,a", "\\N,a"}) {
    RequireOk(codec.Parse(text, &keys));
  }
  const auto found = [&](std::string_view prefix) {
    KeyColumn lower(KeyKind::kBytes);
    KeyColumn upper(KeyKind::kBytes);
    bool open = false;
    RequireOk(codec.ParsePrefix(prefix, &lower, &upper, &open));
    std::string rows;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (Compare(keys, i, lower, 0) >= 0 && (open || Compare(keys, i, upper, 0) < 0)) {
        rows += static_cast<char>('0' + i);
      }
    }
    return rows;
  };
  BOOST_TEST(found("de") == "12345");
  BOOST_TEST(found("de,") == "1234");
  BOOST_TEST(found("de,a") == "3");
  BOOST_TEST(found("de,a,") == "");
  BOOST_TEST(found("de,ab,") == "3");
  BOOST_TEST(found("de,\\N") == "2");
  BOOST_TEST(found("\\N") == "7");
  BOOST_TEST(found("") == "0123456");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
