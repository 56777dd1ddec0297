#include "cairn/key_codec.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "test/index/keys/key_values.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(key_codec_test, *StartsNoThread())
namespace {

// Encodes all tuples. Compares every pair's order, and the decoded values, with the definition.
void CheckOrderAndDecoding(const KeyCodec& codec, absl::Span<const std::vector<DataValue>> tuples) {
  EncodedKeys keys(codec.kind());
  for (const auto& tuple : tuples) RequireOk(codec.Append(tuple, &keys));
  std::vector<DataValue> decoded;
  std::string scratch;
  for (size_t i = 0; i < tuples.size(); ++i) {
    for (size_t j = 0; j < tuples.size(); ++j) {
      if (Compare(tuples[i], tuples[j], codec.nulls()) != Compare(keys, i, keys, j)) {
        BOOST_FAIL("wrong order of tuples " << i << " and " << j);
      }
    }
    RequireOk(codec.Decode(keys, i, &decoded, &scratch));
    BOOST_REQUIRE(decoded.size() == tuples[i].size());
    BOOST_REQUIRE(Compare(decoded, tuples[i], codec.nulls()) == 0);
  }
}

std::vector<std::vector<DataValue>> Tuples(absl::Span<const DataType> parts, NullPolicy nulls,
                                           size_t count, std::mt19937_64& random) {
  std::vector<std::vector<DataValue>> tuples(count);
  for (auto& tuple : tuples) {
    for (const DataType type : parts) {
      const std::vector<DataValue> corners = Corners(type);
      const uint64_t dice = random() % 8;
      if (dice == 0 && nulls != NullPolicy::kSkip) {
        tuple.push_back(std::monostate());
      } else if (dice < 6) {
        tuple.push_back(corners[random() % std::min<size_t>(corners.size(), 24)]);
      } else {
        tuple.push_back(RandomValue(type, random));
      }
    }
  }
  return tuples;
}

BOOST_AUTO_TEST_CASE(the_kind_follows_from_the_widths) {
  using T = DataType;
  const auto kind = [](std::vector<T> parts, NullPolicy nulls = NullPolicy::kSkip) {
    return Codec(parts, nulls).kind();
  };
  for (const T type : {T::kU8, T::kU16, T::kU32, T::kI8, T::kI32, T::kF32}) {
    BOOST_CHECK(kind({type}) == PhysicalType::kU32);
  }
  for (const T type : {T::kU64, T::kI64, T::kF64}) BOOST_CHECK(kind({type}) == PhysicalType::kU64);
  BOOST_CHECK(kind({T::kText}) == PhysicalType::kBytes);
  BOOST_CHECK(kind({T::kU16, T::kI8, T::kU8}) == PhysicalType::kU32);
  BOOST_CHECK(kind({T::kU16, T::kU16, T::kU8}) == PhysicalType::kU64);
  BOOST_CHECK(kind({T::kU32, T::kF32}) == PhysicalType::kU64);
  BOOST_CHECK(kind({T::kU32, T::kF32, T::kU8}) == PhysicalType::kBytes);
  BOOST_CHECK(kind({T::kU8, T::kText}) == PhysicalType::kBytes);
  BOOST_CHECK(kind({T::kU16}, NullPolicy::kFirst) == PhysicalType::kU32);
  BOOST_CHECK(kind({T::kU32}, NullPolicy::kLast) == PhysicalType::kU64);
  BOOST_CHECK(kind({T::kU64}, NullPolicy::kLast) == PhysicalType::kBytes);
}

BOOST_AUTO_TEST_CASE(refuses_no_parts_and_more_than_16) {
  BOOST_CHECK(absl::IsInvalidArgument(KeyCodec::Create({}).status()));
  const std::vector<DataType> many(17, DataType::kU8);
  BOOST_CHECK(Mentions(KeyCodec::Create(many).status(), "found 17"));
  BOOST_CHECK(KeyCodec::Create(absl::MakeConstSpan(many).subspan(1)).ok());
}

BOOST_AUTO_TEST_CASE(all_u8_and_i8_pairs_are_in_order) {
  for (const DataType type : {DataType::kU8, DataType::kI8}) {
    std::vector<std::vector<DataValue>> tuples;
    for (const DataValue& value : Corners(type)) tuples.push_back({value});
    CheckOrderAndDecoding(Codec({type}), tuples);
  }
}

BOOST_AUTO_TEST_CASE(every_type_is_in_order_at_its_corners_and_at_random) {
  auto random = TestRandom();
  for (const DataType type : kAllTypes) {
    for (const NullPolicy nulls : kAllNulls) {
      std::vector<std::vector<DataValue>> tuples;
      for (const DataValue& value : Corners(type)) tuples.push_back({value});
      for (int i = 0; i < 200; ++i) tuples.push_back({RandomValue(type, random)});
      if (nulls != NullPolicy::kSkip) tuples.push_back({std::monostate()});
      CheckOrderAndDecoding(Codec({type}, nulls), tuples);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_single_number_is_its_own_key_and_floats_map_as_published) {
  EncodedKeys keys(PhysicalType::kU32);
  RequireOk(Codec({DataType::kU8}).Append({uint64_t{200}}, &keys));
  RequireOk(Codec({DataType::kI32}).Append({int64_t{-5}}, &keys));
  RequireOk(Codec({DataType::kF32}).Append({-2.5}, &keys));
  BOOST_TEST(keys.u32(0) == 200u);
  BOOST_TEST(keys.u32(1) == OrderPreserving(int32_t{-5}));
  BOOST_TEST(keys.u32(2) == OrderPreserving(-2.5f));
  EncodedKeys wide(PhysicalType::kU64);
  RequireOk(Codec({DataType::kI64}).Append({INT64_MIN}, &wide));
  RequireOk(Codec({DataType::kF64}).Append({1e300}, &wide));
  BOOST_TEST(wide.u64(0) == 0u);
  BOOST_TEST(wide.u64(1) == OrderPreserving(1e300));
  BOOST_TEST(OrderPreserving(-0.0) + 1 == OrderPreserving(0.0));
  BOOST_TEST(OrderPreserving(std::nan("")) == OrderPreserving(-std::nan("7")));
  BOOST_CHECK(OrderPreserving(std::nan("")) >
              OrderPreserving(std::numeric_limits<double>::infinity()));
}

BOOST_AUTO_TEST_CASE(composites_are_in_order_with_zeros_prefixes_and_nulls) {
  using T = DataType;
  auto random = TestRandom(1);
  std::vector<std::vector<DataType>> composites = {{T::kText, T::kText},
                                                   {T::kText, T::kU8},
                                                   {T::kU8, T::kI8},
                                                   {T::kI16, T::kF32},
                                                   {T::kF64, T::kText},
                                                   {T::kBytes, T::kText, T::kBytes},
                                                   {T::kU8, T::kU8, T::kI16},
                                                   {T::kU64, T::kU64},
                                                   {T::kU16, T::kText, T::kF32},
                                                   {T::kU8, T::kU8, T::kU8},
                                                   {T::kI8, T::kI16, T::kI32},
                                                   {T::kText, T::kI64, T::kText},
                                                   std::vector<T>(16, T::kText),
                                                   {T::kI8, T::kU8}};
  for (const auto& parts : composites) {
    for (const NullPolicy nulls : kAllNulls) {
      const auto tuples = Tuples(parts, nulls, 250, random);
      const KeyCodec codec = Codec(parts, nulls);
      CheckOrderAndDecoding(codec, tuples);
      EncodedKeys keys(codec.kind());
      for (const auto& tuple : tuples) RequireOk(codec.Append(tuple, &keys));
      CheckText(codec, keys);
    }
  }
}

BOOST_AUTO_TEST_CASE(refuses_values_that_do_not_fit_and_appends_nothing) {
  const auto refuses = [](DataType type, const DataValue& value, std::string_view mention) {
    const KeyCodec codec = Codec({DataType::kU8, type});
    EncodedKeys keys(codec.kind());
    const absl::Status status = codec.Append({uint64_t{1}, value}, &keys);
    BOOST_CHECK(absl::IsInvalidArgument(status));
    BOOST_CHECK(Mentions(status, "part 2"));
    BOOST_CHECK(Mentions(status, mention));
    BOOST_TEST(keys.empty());
  };
  refuses(DataType::kU8, uint64_t{256}, "found 256");
  refuses(DataType::kU8, int64_t{-1}, "found -1");
  refuses(DataType::kU64, -1.0, "found -1");
  refuses(DataType::kU64, 0x1p64, "found 18446744073709551616");
  refuses(DataType::kI64, uint64_t{1} << 63, "found 9223372036854775808");
  refuses(DataType::kI64, 0x1p63, "from -9223372036854775808");
  refuses(DataType::kI8, 1.5, "found 1.5");
  refuses(DataType::kI8, std::nan(""), "found nan");
  refuses(DataType::kI8, "7"sv, "found '7'");
  refuses(DataType::kF32, uint64_t{16777217}, "found 16777217");
  refuses(DataType::kF32, 3.5e38, "f32");
  refuses(DataType::kF32, -1e-60, "found -1e-60");
  refuses(DataType::kF64, UINT64_MAX, "found 18446744073709551615");
  refuses(DataType::kF64, INT64_MAX, "found 9223372036854775807");
  refuses(DataType::kF64, (int64_t{1} << 53) + 1, "f64");
  refuses(DataType::kText, uint64_t{5}, "expected text, found the number 5");
  refuses(DataType::kU32, std::monostate(), "null");
  refuses(DataType::kText, std::monostate(), "null");
  const std::string huge(KeyCodec::kMaxKeyBytes, 'x');
  refuses(DataType::kText, std::string_view(huge), "at most 16777216 bytes");
  EncodedKeys keys(PhysicalType::kBytes);
  BOOST_CHECK(Codec({DataType::kText}).Append({std::string_view(huge)}, &keys).ok());
  // Zero bytes grow in an earlier part.
  const std::string zeros(KeyCodec::kMaxKeyBytes / 2 + 1, '\0');
  const KeyCodec pair = Codec({DataType::kBytes, DataType::kU8});
  BOOST_CHECK(Mentions(pair.Append({std::string_view(zeros), uint64_t{1}}, &keys), "part 1"));
  BOOST_CHECK(
      Mentions(pair.Append({""sv}, &keys), "expected 2 values, one for each part, found 1"));
  EncodedKeys narrow(PhysicalType::kU32);
  BOOST_CHECK(Mentions(pair.Append({""sv, uint64_t{1}}, &narrow), "found one of u32"));
  BOOST_TEST(keys.size() == 1u);
}

BOOST_AUTO_TEST_CASE(accepts_exact_conversions_between_integers_and_floats) {
  const auto same = [](DataType type, const DataValue& a, const DataValue& b) {
    const KeyCodec codec = Codec({type});
    EncodedKeys keys(codec.kind());
    RequireOk(codec.Append({a}, &keys));
    RequireOk(codec.Append({b}, &keys));
    BOOST_CHECK(Compare(keys, 0, keys, 1) == 0);
  };
  same(DataType::kU8, int64_t{255}, 255.0);
  same(DataType::kU64, uint64_t{1} << 63, 0x1p63);
  same(DataType::kI64, INT64_MIN, -0x1p63);
  same(DataType::kI8, int64_t{0}, -0.0);
  same(DataType::kF64, INT64_MIN, -0x1p63);
  same(DataType::kF64, uint64_t{1} << 63, 0x1p63);
  same(DataType::kF32, int64_t{-16777216}, -16777216.0);
  same(DataType::kF32, 0.1, double{0.1f});
  same(DataType::kF32, double{std::numeric_limits<float>::max()}, 0x1.fffffefp127);
}

BOOST_AUTO_TEST_CASE(a_prefix_range_holds_exactly_the_keys_with_those_leading_parts) {
  using T = DataType;
  auto random = TestRandom(3);
  const std::vector<std::vector<DataType>> composites = {{T::kText},
                                                         {T::kU8},
                                                         {T::kU32},
                                                         {T::kU64},
                                                         {T::kF32},
                                                         {T::kText, T::kText},
                                                         {T::kU8, T::kU8},
                                                         {T::kU8, T::kU8, T::kI16},
                                                         {T::kI8, T::kText},
                                                         {T::kText, T::kU8},
                                                         {T::kU64, T::kU8},
                                                         {T::kU32, T::kI32},
                                                         {T::kBytes, T::kI8, T::kText}};
  size_t open_ends = 0;
  for (const auto& parts : composites) {
    for (const NullPolicy nulls : kAllNulls) {
      const KeyCodec codec = Codec(parts, nulls);
      const auto tuples = Tuples(parts, nulls, 200, random);
      EncodedKeys keys(codec.kind());
      for (const auto& tuple : tuples) RequireOk(codec.Append(tuple, &keys));
      for (size_t q = 0; q < 60; ++q) {
        const size_t given = 1 + random() % parts.size();
        std::vector<DataValue> values(tuples[q].begin(), tuples[q].begin() + given);
        const auto* text = std::get_if<std::string_view>(&values.back());
        const bool last_is_prefix = text != nullptr && random() % 2 == 0;
        if (last_is_prefix) values.back() = text->substr(0, random() % (text->size() + 1));
        EncodedKeys lower(codec.kind());
        EncodedKeys upper(codec.kind());
        bool open = false;
        RequireOk(codec.AppendPrefixRange(values, last_is_prefix, &lower, &upper, &open));
        BOOST_REQUIRE((lower.size() == 1 && upper.size() == 1));
        open_ends += open;
        const size_t whole = given - last_is_prefix;
        for (size_t i = 0; i < tuples.size(); ++i) {
          const auto head = absl::MakeConstSpan(tuples[i]);
          bool expected = Compare(head.subspan(0, whole),
                                  absl::MakeConstSpan(values).subspan(0, whole), nulls) == 0;
          if (last_is_prefix) {
            const auto* candidate = std::get_if<std::string_view>(&head[whole]);
            const auto prefix = std::get<std::string_view>(values[whole]);
            expected =
                expected && candidate != nullptr && candidate->substr(0, prefix.size()) == prefix;
          }
          const bool within =
              Compare(keys, i, lower, 0) >= 0 && (open || Compare(keys, i, upper, 0) < 0);
          if (within != expected) BOOST_FAIL("query " << q << ", tuple " << i);
        }
      }
    }
  }
  BOOST_TEST(open_ends > 0u);
}

BOOST_AUTO_TEST_CASE(a_prefix_range_at_the_top_of_the_kind_is_open) {
  const auto range = [](const KeyCodec& codec, absl::Span<const DataValue> values,
                        EncodedKeys* upper) {
    EncodedKeys lower(codec.kind());
    bool open = false;
    RequireOk(codec.AppendPrefixRange(values, false, &lower, upper, &open));
    return open;
  };
  EncodedKeys u32(PhysicalType::kU32);
  BOOST_TEST(range(Codec({DataType::kU32}), {uint64_t{UINT32_MAX}}, &u32));
  BOOST_TEST(!range(Codec({DataType::kU8}), {uint64_t{255}}, &u32));
  BOOST_TEST(u32.u32(1) == 256u);
  EncodedKeys u64(PhysicalType::kU64);
  BOOST_TEST(range(Codec({DataType::kU64}), {UINT64_MAX}, &u64));
  BOOST_TEST(range(Codec({DataType::kU32, DataType::kU32}), {uint64_t{UINT32_MAX}}, &u64));
  EncodedKeys bytes(PhysicalType::kBytes);
  BOOST_TEST(range(Codec({DataType::kU64, DataType::kText}), {UINT64_MAX}, &bytes));
}

BOOST_AUTO_TEST_CASE(refuses_prefixes_that_cannot_be) {
  const KeyCodec codec = Codec({DataType::kText, DataType::kU8}, NullPolicy::kFirst);
  EncodedKeys lower(PhysicalType::kBytes);
  EncodedKeys upper(PhysicalType::kBytes);
  bool open = false;
  const auto refuses = [&](std::vector<DataValue> values, bool prefix, std::string_view mention) {
    const absl::Status status = codec.AppendPrefixRange(values, prefix, &lower, &upper, &open);
    BOOST_CHECK(absl::IsInvalidArgument(status));
    BOOST_CHECK(Mentions(status, mention));
  };
  refuses({}, false, "1 to 2 values");
  refuses({"a"sv, uint64_t{1}, uint64_t{2}}, false, "found 3");
  refuses({"a"sv, uint64_t{1}}, true, "part 2 (u8): expected a prefix of text or bytes");
  refuses({std::monostate()}, true, "found null");
  refuses({uint64_t{1}}, false, "part 1 (text)");
  EncodedKeys narrow(PhysicalType::kU32);
  BOOST_CHECK(!codec.AppendPrefixRange({"a"sv}, true, &lower, &narrow, &open).ok());
  BOOST_CHECK(!codec.ParsePrefix("a,1,2", &lower, &upper, &open).ok());
  BOOST_CHECK(!codec.ParsePrefix("a,256", &lower, &upper, &open).ok());
  BOOST_TEST((lower.empty() && upper.empty()));
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_encoding_are_data_loss) {
  const auto refuses = [](const KeyCodec& codec, auto key, std::string_view mention) {
    EncodedKeys keys(codec.kind());
    if constexpr (std::is_same_v<decltype(key), uint32_t>) {
      keys.AppendU32(key);
    } else if constexpr (std::is_same_v<decltype(key), uint64_t>) {
      keys.AppendU64(key);
    } else {
      keys.AppendBytes(key);
    }
    const absl::Status status = codec.Format(keys, 0).status();
    BOOST_CHECK(absl::IsDataLoss(status));
    BOOST_CHECK(Mentions(status, "key 0"));
    BOOST_CHECK(Mentions(status, mention));
  };
  using T = DataType;
  refuses(Codec({T::kU8}), uint32_t{256}, "found 0x100");
  refuses(Codec({T::kF32}), uint32_t{0xFFC00001}, "an encoded f32");
  refuses(Codec({T::kF32}), uint32_t{0}, "an encoded f32");
  refuses(Codec({T::kF64}), UINT64_MAX, "an encoded f64");
  refuses(Codec({T::kU8}, NullPolicy::kFirst), uint32_t{1}, "zeros after a null");
  refuses(Codec({T::kU8}, NullPolicy::kFirst), uint32_t{0x200}, "found 2");
  refuses(Codec({T::kText, T::kU8}), "abc"sv, "part 1 (text)");
  refuses(Codec({T::kText, T::kU8}), "abc\0"sv, "00 00 at its end");
  refuses(Codec({T::kText, T::kU8}), "a\0\1c\0\0x"sv, "part 1 (text)");
  refuses(Codec({T::kText, T::kU16}), "a\0\0x"sv, "part 2 (u16): expected 2 bytes");
  refuses(Codec({T::kText, T::kU8}), "a\0\0xy"sv, "found 1 bytes more");
  refuses(Codec({T::kText}, NullPolicy::kLast), ""sv, "the key's end");
  refuses(Codec({T::kText}, NullPolicy::kLast), "\1x"sv, "found 1 bytes more");
  EncodedKeys keys(PhysicalType::kU32);
  BOOST_CHECK(absl::IsOutOfRange(Codec({T::kU8}).Format(keys, 0).status()));
  BOOST_CHECK(absl::IsInvalidArgument(Codec({T::kU64}).Format(keys, 0).status()));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
