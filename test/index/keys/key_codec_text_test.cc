#include "cairn/key_codec.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <string>

#include "test/index/keys/key_values.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(key_codec_text_test, *StartsNoThread())
namespace {

BOOST_AUTO_TEST_CASE(every_type_reads_what_it_writes) {
  auto random = TestRandom(2);
  for (const DataType type : kAllTypes) {
    for (const NullPolicy nulls : kAllNulls) {
      const KeyCodec codec = Codec({type}, nulls);
      EncodedKeys keys(codec.kind());
      for (const DataValue& value : Corners(type)) RequireOk(codec.Append({value}, &keys));
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
  EncodedKeys keys(PhysicalType::kBytes);
  const KeyCodec composite = Codec({DataType::kText, DataType::kF32}, NullPolicy::kLast);
  RequireOk(composite.Append({"a,b \\\xc3"sv, 0.1}, &keys));
  RequireOk(composite.Append({std::monostate(), -std::nan("")}, &keys));
  BOOST_TEST(*composite.Format(keys, 0) == "a\\x2cb\\x20\\x5c\\xc3,0.1");
  BOOST_TEST(*composite.Format(keys, 1) == "\\N,nan");
  const KeyCodec text = Codec({DataType::kText});
  EncodedKeys single(PhysicalType::kBytes);
  RequireOk(text.Parse("a,b", &single));
  BOOST_TEST(*text.Format(single, 0) == "a,b");
  RequireOk(text.Parse("\\x4A \\x5c", &single));
  BOOST_CHECK(single.bytes(1) == "J \\");
  EncodedKeys floats(PhysicalType::kU64);
  const KeyCodec f64 = Codec({DataType::kF64});
  for (const char* written : {"inf", "-inf", "nan", "-0", "0", "1e+22", "0.1", "5e-324"}) {
    RequireOk(f64.Parse(written, &floats));
    BOOST_TEST(*f64.Format(floats, floats.size() - 1) == written);
  }
}

BOOST_AUTO_TEST_CASE(refuses_text_that_is_no_such_number) {
  const auto refuses = [](DataType type, std::string_view text, std::string_view mention) {
    const KeyCodec codec = Codec({type});
    EncodedKeys keys(codec.kind());
    const absl::Status status = codec.Parse(text, &keys);
    BOOST_CHECK_MESSAGE(absl::IsInvalidArgument(status), DataTypeName(type) << " " << text);
    BOOST_CHECK(Mentions(status, "part 1"));
    BOOST_CHECK(Mentions(status, mention));
    BOOST_TEST(keys.empty());
  };
  refuses(DataType::kU8, "256", "from 0 to 255");
  refuses(DataType::kU8, "", "found nothing");
  refuses(DataType::kU8, "-1", "found '-1'");
  refuses(DataType::kU8, "+1", "found '+1'");
  refuses(DataType::kU8, "1 ", "found '1 '");
  refuses(DataType::kU8, "0x1", "found '0x1'");
  refuses(DataType::kU16, "65536", "to 65535");
  refuses(DataType::kU32, "4294967296", "to 4294967295");
  refuses(DataType::kU64, "18446744073709551616", "to 18446744073709551615");
  refuses(DataType::kI8, "128", "from -128 to 127");
  refuses(DataType::kI8, "-129", "from -128 to 127");
  refuses(DataType::kI16, "1.0", "found '1.0'");
  refuses(DataType::kI32, "2147483648", "to 2147483647");
  refuses(DataType::kI64, "-9223372036854775809", "from -9223372036854775808");
  refuses(DataType::kF32, "1e39", "range of f32");
  refuses(DataType::kF32, "1e-60", "range of f32");
  refuses(DataType::kF64, "1e309", "range of f64");
  refuses(DataType::kF64, "-1e-400", "range of f64");
  for (const char* text :
       {"", "NaN", "infinity", "-nan", "nan(1)", "1.5x", " 1", "+1", "1e", "."}) {
    refuses(DataType::kF64, text, "f64 number in decimal");
  }
  refuses(DataType::kU8, "\\N", "null");
  refuses(DataType::kText, "\\N", "null");
  refuses(DataType::kText, "a\\n", "expected \\xHH");
  refuses(DataType::kText, "\\x2", "expected \\xHH");
  refuses(DataType::kBytes, "\\xg0", "expected \\xHH");
  refuses(DataType::kText, "\\", "expected \\xHH");
  const KeyCodec pair = Codec({DataType::kText, DataType::kU8});
  EncodedKeys keys(PhysicalType::kBytes);
  BOOST_CHECK(Mentions(pair.Parse("a", &keys), "found 1"));
  BOOST_CHECK(Mentions(pair.Parse("a,1,", &keys), "found 3"));
  BOOST_CHECK(Mentions(pair.Parse("a,x", &keys), "part 2 (u8)"));
  BOOST_TEST(keys.empty());
}

BOOST_AUTO_TEST_CASE(a_written_prefix_is_open_at_its_last_text_unless_a_comma_closes_it) {
  const KeyCodec codec = Codec({DataType::kText, DataType::kText}, NullPolicy::kFirst);
  EncodedKeys keys(PhysicalType::kBytes);
  for (const char* text : {"d,x", "de,", "de,\\N", "de,ab", "de,b", "def,a", "e,a", "\\N,a"}) {
    RequireOk(codec.Parse(text, &keys));
  }
  const auto found = [&](std::string_view prefix) {
    EncodedKeys lower(PhysicalType::kBytes);
    EncodedKeys upper(PhysicalType::kBytes);
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
