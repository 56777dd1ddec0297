#include "index/columns/tuple.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(tuple_test)
namespace {

const std::vector<DataType> kAll = {DataType::kU8,  DataType::kU16,  DataType::kU32,
                                    DataType::kU64, DataType::kI8,   DataType::kI16,
                                    DataType::kI32, DataType::kI64,  DataType::kF32,
                                    DataType::kF64, DataType::kText, DataType::kBytes};

std::string Tuple(const std::vector<DataType>& types, const std::vector<DataValue>& values) {
  std::string tuple = "before";
  TupleWriter writer(types, &tuple);
  for (const DataValue& value : values) RequireOk(writer.Add(value));
  BOOST_TEST(writer.size() == types.size());
  BOOST_TEST(tuple.substr(0, 6) == "before");
  return tuple.substr(6);
}

std::vector<DataValue> Read(const std::vector<DataType>& types, const std::string& tuple) {
  std::vector<DataValue> values(types.size(), uint64_t{77});
  BOOST_REQUIRE(ReadTuple(types, tuple, absl::MakeSpan(values)));
  return values;
}

BOOST_AUTO_TEST_CASE(values_come_back) {
  const std::vector<DataValue> least = {uint64_t{0},
                                        uint64_t{0},
                                        uint64_t{0},
                                        uint64_t{0},
                                        int64_t{-128},
                                        int64_t{-32768},
                                        int64_t{INT32_MIN},
                                        int64_t{INT64_MIN},
                                        -0.0,
                                        -std::numeric_limits<double>::infinity(),
                                        std::string_view(),
                                        std::string_view("\0\xff", 2)};
  const std::vector<DataValue> most = {uint64_t{255},
                                       uint64_t{65535},
                                       uint64_t{UINT32_MAX},
                                       uint64_t{UINT64_MAX},
                                       int64_t{127},
                                       int64_t{32767},
                                       int64_t{INT32_MAX},
                                       int64_t{INT64_MAX},
                                       1.5,
                                       std::numeric_limits<double>::max(),
                                       std::string_view("text"),
                                       std::string_view("a\0", 2)};
  const std::vector<DataValue> nulls(kAll.size());
  for (const auto& values : {least, most, nulls}) {
    BOOST_CHECK(Read(kAll, Tuple(kAll, values)) == values);
  }
  BOOST_CHECK(std::signbit(std::get<double>(Read(kAll, Tuple(kAll, least))[8])));
  BOOST_TEST(Tuple(kAll, nulls).size() == 2u);
  BOOST_TEST(Tuple({}, {}).empty());
}

BOOST_AUTO_TEST_CASE(every_mix_of_nulls_comes_back) {
  const std::vector<DataType> types(9, DataType::kU16);
  for (uint64_t mask = 0; mask < 512; ++mask) {
    std::vector<DataValue> values(9);
    for (size_t i = 0; i < 9; ++i) {
      if ((mask >> i & 1) != 0) values[i] = uint64_t{i};
    }
    BOOST_CHECK(Read(types, Tuple(types, values)) == values);
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  std::string tuple;
  BOOST_TEST(absl::IsInvalidArgument(TupleWriter(kAll, &tuple).Add(uint64_t{256})));
  const DataType text[] = {DataType::kText};
  BOOST_TEST(absl::IsInvalidArgument(TupleWriter(text, &tuple).Add(uint64_t{1})));
  const std::string long_text(KeyCodec::kMaxKeyBytes + 1, 'x');
  BOOST_TEST(absl::IsInvalidArgument(TupleWriter(text, &tuple).Add(std::string_view(long_text))));
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_tuple_are_told) {
  auto random = TestRandom();
  const std::vector<DataType> types = {DataType::kU32, DataType::kText, DataType::kBytes,
                                       DataType::kI8};
  const std::string tuple =
      Tuple(types, {uint64_t{5}, std::string_view("some"), std::string_view("more"), int64_t{1}});
  std::vector<DataValue> values(types.size());
  for (size_t size = 0; size < tuple.size(); ++size) {
    BOOST_TEST(!ReadTuple(types, tuple.substr(0, size), absl::MakeSpan(values)));
  }
  BOOST_TEST(!ReadTuple(types, tuple + "x", absl::MakeSpan(values)));
  for (int i = 0; i < 100000; ++i) {
    std::string changed = tuple;
    changed[random() % changed.size()] = static_cast<char>(random());
    changed[random() % changed.size()] = static_cast<char>(random());
    const std::vector<char> exact(changed.begin(), changed.end());  // for AddressSanitizer
    const std::string_view bytes(exact.data(), exact.size());
    if (!ReadTuple(types, bytes, absl::MakeSpan(values))) continue;
    for (const DataValue& value : values) {
      const auto* const text = std::get_if<std::string_view>(&value);
      if (text == nullptr) continue;
      BOOST_REQUIRE(text->data() >= bytes.data());
      BOOST_REQUIRE(text->data() + text->size() <= bytes.data() + bytes.size());
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
