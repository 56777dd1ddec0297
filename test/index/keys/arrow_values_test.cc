// Arrow's arrays as columns of keys: one array or many, wherever they begin, aligned or not.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cairn/internal/arrow.h"
#include "test/require_ok.h"
#include "test/test_arrow.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(arrow_values_test)
namespace {

// A value of a column of this format; numbers fit every type.
DataValue ValueOf(std::string_view format, const std::string& text, uint64_t number) {
  if (format[0] == 'w') return std::string_view(text).substr(0, 2);
  if (format.find_first_of("uUzZ") != std::string_view::npos) return std::string_view(text);
  if (format == "f" || format == "g") return static_cast<double>(number);
  if (format.find_first_of("csil") != std::string_view::npos) return static_cast<int64_t>(number);
  return number;
}

// Value i of a part, as an extractor would give it.
DataValue At(const ColumnSpan& part, size_t i) {
  if (part.is_null(i)) return std::monostate();
  return std::visit(
      [&](const auto& values) -> DataValue {
        using T = typename std::decay_t<decltype(values)>::value_type;
        if constexpr (std::is_same_v<T, std::string_view>) {
          return values[i];
        } else if constexpr (std::is_floating_point_v<T>) {
          return static_cast<double>(values[i]);
        } else if constexpr (std::is_signed_v<T>) {
          return static_cast<int64_t>(values[i]);
        } else {
          return static_cast<uint64_t>(values[i]);
        }
      },
      part.values);
}

// Many values in consecutive arrays of these sizes.
struct Chunks {
  Chunks(const std::string& format, const std::vector<size_t>& sizes, bool with_nulls,
         std::mt19937_64* rng) {
    size_t total = 0;
    for (const size_t size : sizes) total += size;
    texts.reserve(total);
    for (size_t c = 0; c < sizes.size(); ++c) {
      std::vector<DataValue> values;
      for (size_t i = 0; i < sizes[c]; ++i) {
        const uint64_t number = (*rng)() % 100;
        texts.push_back(absl::StrCat("t", number, std::string((*rng)() % 30, 'x'), number));
        const bool is_null = with_nulls && c != 1 && number < 30;
        values.push_back(is_null ? DataValue() : ValueOf(format, texts.back(), number));
      }
      all.insert(all.end(), values.begin(), values.end());
      arrays.push_back(std::make_unique<TestArrow>(format, values, c == 2 ? 5 : 0));
    }
  }
  std::vector<ArrowColumn> Columns() const {
    std::vector<ArrowColumn> columns;
    for (const auto& array : arrays) {
      const auto column = ReadArrowColumn(&array->schema, &array->array, 0);
      RequireOk(column.status());
      columns.push_back(*column);
    }
    return columns;
  }
  void Check() const {
    const std::vector<ArrowColumn> columns = Columns();
    const std::optional<DataType> type = DataTypeOf(arrays[0]->schema);
    BOOST_REQUIRE(type.has_value());
    const auto values = ArrowValues::Of(*type, columns);
    RequireOk(values.status());
    BOOST_REQUIRE(values->part().size() == all.size());
    size_t i = 0;
    for (const ArrowColumn& column : columns) {
      BOOST_TEST((column.type() == *type));
      for (size_t k = 0; k < column.size(); ++k, ++i) {
        BOOST_TEST_REQUIRE((column.value(k) == all[i]), "value " << i);
        BOOST_TEST_REQUIRE((At(values->part(), i) == all[i]), "value " << i);
      }
    }
  }

  std::vector<std::string> texts;
  std::vector<DataValue> all;
  std::vector<std::unique_ptr<TestArrow>> arrays;
};

constexpr const char* kFormats[] = {"C", "S", "I", "L", "c", "s",  "i",  "l",  "f",
                                    "g", "u", "z", "U", "Z", "vu", "vz", "w:2"};

}  // namespace

BOOST_AUTO_TEST_CASE(arrays_one_behind_the_other) {
  std::mt19937_64 rng = TestRandom(1);
  for (const char* format : kFormats) {
    for (const bool with_nulls : {false, true}) {
      BOOST_TEST_CONTEXT("format " << format << (with_nulls ? " with nulls" : "")) {
        Chunks(format, {100}, with_nulls, &rng).Check();
        Chunks(format, {0}, with_nulls, &rng).Check();
        Chunks(format, {7, 9, 11, 0, 3}, with_nulls, &rng).Check();
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(no_arrays_have_no_values) {
  for (const DataType type : {DataType::kU8, DataType::kF64, DataType::kText, DataType::kBytes}) {
    const auto values = ArrowValues::Of(type, {});
    RequireOk(values.status());
    BOOST_TEST(values->part().size() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(numbers_are_copied_where_they_are_not_aligned) {
  const TestArrow aligned("L", {uint64_t{5}, uint64_t{7}, uint64_t{9}});
  const void* const numbers = aligned.array.buffers[1];
  auto column = ReadArrowColumn(&aligned.schema, &aligned.array, 0);
  RequireOk(column.status());
  auto values = ArrowValues::Of(DataType::kU64, {&*column, 1});
  RequireOk(values.status());
  BOOST_TEST(std::get<absl::Span<const uint64_t>>(values->part().values).data() == numbers);

  std::vector<char> shifted(3 * sizeof(uint64_t) + 1);
  std::memcpy(shifted.data() + 1, numbers, 3 * sizeof(uint64_t));
  aligned.array.buffers[1] = shifted.data() + 1;
  column = ReadArrowColumn(&aligned.schema, &aligned.array, 0);
  RequireOk(column.status());
  values = ArrowValues::Of(DataType::kU64, {&*column, 1});
  RequireOk(values.status());
  const auto copied = std::get<absl::Span<const uint64_t>>(values->part().values);
  BOOST_TEST(reinterpret_cast<uintptr_t>(copied.data()) % alignof(uint64_t) == 0u);
  BOOST_TEST(copied == (std::vector<uint64_t>{5, 7, 9}), boost::test_tools::per_element());
  aligned.array.buffers[1] = numbers;
}

BOOST_AUTO_TEST_CASE(values_move_with_what_they_own) {
  std::mt19937_64 rng = TestRandom(2);
  const Chunks chunks("u", {50, 60}, true, &rng);
  const std::vector<ArrowColumn> columns = chunks.Columns();
  auto values = ArrowValues::Of(DataType::kText, columns);
  RequireOk(values.status());
  std::vector<ArrowValues> kept;
  kept.push_back(*std::move(values));
  for (int i = 0; i < 5; ++i) {
    auto more = ArrowValues::Of(DataType::kText, columns);
    RequireOk(more.status());
    kept.push_back(*std::move(more));
  }
  kept[1] = std::move(kept[0]);
  for (size_t i = 0; i < chunks.all.size(); ++i) {
    BOOST_TEST((At(kept[1].part(), i) == chunks.all[i]));
    BOOST_TEST((At(kept[5].part(), i) == chunks.all[i]));
  }
}

// Large columns are read by several threads.
BOOST_AUTO_TEST_CASE(large_columns_of_text) {
  std::mt19937_64 rng = TestRandom(3);
  for (const char* format : {"u", "Z", "vu"}) {
    Chunks(format, {(size_t{1} << 17) + 12345, 77}, true, &rng).Check();
  }
}

// Indices of all types into dictionaries of all types, with nulls in both, slices and chunks.
BOOST_AUTO_TEST_CASE(dictionaries_are_read_as_their_values) {
  std::mt19937_64 rng = TestRandom(4);
  for (const char* format : kFormats) {
    for (const char* index : {"C", "S", "I", "L", "c", "s", "i", "l"}) {
      for (const bool with_nulls : {false, true}) {
        Chunks dictionary(format, {20}, with_nulls, &rng);
        Chunks chunks(format, {}, false, &rng);
        for (const size_t size : {30, 0, 9}) {
          std::vector<DataValue> indices;
          for (size_t i = 0; i < size; ++i) {
            const uint64_t at = rng() % dictionary.all.size();
            const bool is_null = with_nulls && rng() % 5 == 0;
            indices.push_back(is_null ? DataValue() : DataValue(at));
            chunks.all.push_back(is_null ? DataValue() : dictionary.all[at]);
          }
          chunks.arrays.push_back(
              std::make_unique<TestArrow>(index, indices, size % 2 == 0 ? 3 : 0));
          chunks.arrays.back()->SetDictionary(dictionary.arrays[0].get());
          const size_t all = chunks.arrays.size();
          if (all == 1) chunks.Check();  // one array, which others read in place
        }
        BOOST_TEST_CONTEXT(index << " into " << format) {
          chunks.Check();
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(dictionaries_that_break_the_rules) {
  const auto message = [](const TestArrow& array) {
    const auto column = ReadArrowColumn(&array.schema, &array.array, 0);
    BOOST_TEST(absl::IsInvalidArgument(column.status()));
    return std::string(column.status().message());
  };
  const auto contains = [](const std::string& text, std::string_view part) {
    BOOST_TEST((text.find(part) != std::string::npos), "'" << part << "' is not in: " << text);
  };
  TestArrow values("u", {"a", "b"});
  TestArrow array("c", {int64_t{0}, int64_t{1}, {}, int64_t{1}});
  array.SetDictionary(&values);
  BOOST_TEST(ReadArrowColumn(&array.schema, &array.array, 0).ok());
  TestArrow negative("c", {int64_t{0}, int64_t{-1}});
  negative.SetDictionary(&values);
  contains(message(negative), "element 1: expected an index of one of 2 values");
  contains(message(negative), "found -1");
  TestArrow large("L", {uint64_t{2}});
  large.SetDictionary(&values);
  contains(message(large), "element 0");
  TestArrow none("I", {uint64_t{0}});
  TestArrow empty("u", {});
  none.SetDictionary(&empty);
  contains(message(none), "one of 0 values");

  array.array.dictionary = nullptr;
  contains(message(array), "found one in the schema only");
  array.SetDictionary(&values);
  array.schema.dictionary = nullptr;
  contains(message(array), "found one in the array only");
  array.SetDictionary(&values);
  values.array.length = -1;
  contains(message(array), "length");
  values.array.length = 2;
  values.array.buffers[1] = nullptr;
  contains(message(array), "dictionary: expected 2 elements, found no buffer");
  values.schema.release = nullptr;
  contains(message(array), "released");

  TestArrow floats("f", {0.0, 1.0});
  TestArrow more("u", {"a", "b"});
  floats.SetDictionary(&more);
  contains(message(floats), "a dictionary of string");
  TestArrow truths("C", {uint64_t{0}});
  truths.schema.format = "b";
  TestArrow of_truths("C", {uint64_t{0}});
  of_truths.SetDictionary(&truths);
  contains(message(of_truths), "a dictionary of bool");
  BOOST_TEST(!DataTypeOf(of_truths.schema).has_value());
  of_truths.SetDictionary(&of_truths);
  contains(message(of_truths), "a dictionary of dictionaries");
}

BOOST_AUTO_TEST_CASE(types_and_children_that_there_are_not) {
  TestArrow array("I", {uint64_t{1}});
  for (const char* format : {"", "n", "b", "e", "tdD", "+s", "+l", "w:", "w:0", "w:x", "II"}) {
    array.schema.format = format;
    BOOST_TEST(!DataTypeOf(array.schema).has_value(), format);
  }
  array.schema.format = nullptr;
  BOOST_TEST(!DataTypeOf(array.schema).has_value());
  array.schema.format = "I";
  array.schema.dictionary = &array.schema;
  BOOST_TEST(!DataTypeOf(array.schema).has_value());
  array.schema.dictionary = nullptr;
  BOOST_TEST((ReadArrowColumn(&array.schema, &array.array, 1).status().code() ==
              absl::StatusCode::kInvalidArgument));
  BOOST_TEST((ReadArrowColumn(nullptr, &array.array, 0).status().code() ==
              absl::StatusCode::kInvalidArgument));
  BOOST_TEST((ArrowColumn::Read(array.schema, array.array, SIZE_MAX, 2).status().code() ==
              absl::StatusCode::kInvalidArgument));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
