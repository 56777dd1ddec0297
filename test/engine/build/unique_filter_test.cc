#include "engine/build/unique_filter.h"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "cairn/key_codec.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(unique_filter_test)
namespace {

// Counts the entries that pass through.
class CountingSink : public EntrySink {
 public:
  absl::Status Begin(uint64_t, uint64_t) override { return absl::OkStatus(); }
  absl::Status Append(absl::Span<const uint32_t> keys, absl::Span<const RowId>) override {
    return Count(keys.size());
  }
  absl::Status Append(absl::Span<const uint64_t> keys, absl::Span<const RowId>) override {
    return Count(keys.size());
  }
  absl::Status Append(absl::Span<const std::string_view> keys, absl::Span<const RowId>) override {
    return Count(keys.size());
  }
  size_t entries = 0;

 private:
  absl::Status Count(size_t n) {
    entries += n;
    return absl::OkStatus();
  }
};

struct Duplicate {
  RowId first = kNoRow;
  RowId second = kNoRow;
};

UniqueFilter::Explain Into(Duplicate* duplicate) {
  return [duplicate](const EncodedKeys& key, RowId first, RowId second) {
    BOOST_TEST(key.size() == 1u);
    *duplicate = {first, second};
    return absl::AlreadyExistsError("duplicate");
  };
}

KeyCodec Codec(NullPolicy nulls = NullPolicy::kSkip) {
  return RequireOk(KeyCodec::Create({DataType::kU8}, nulls));
}

BOOST_AUTO_TEST_CASE(passes_keys_with_nulls_on) {
  CountingSink sink;
  Duplicate duplicate;
  UniqueFilter filter(&sink, Codec(NullPolicy::kFirst), Into(&duplicate));
  // An encoded null, and the number 7.
  RequireOk(filter.Append(std::vector<uint32_t>{0, 0, 0}, {1, 2, 3}));
  RequireOk(filter.Append(std::vector<uint32_t>{0, 0x107}, {4, 5}));
  BOOST_TEST(sink.entries == 5u);
  BOOST_CHECK(absl::IsAlreadyExists(filter.Append(std::vector<uint32_t>{0x107}, {6})));
  BOOST_TEST(duplicate.first == 5u);
  BOOST_TEST(duplicate.second == 6u);
}

BOOST_AUTO_TEST_CASE(passes_distinct_keys_on) {
  CountingSink sink;
  Duplicate duplicate;
  UniqueFilter filter(&sink, Codec(), Into(&duplicate));
  BOOST_CHECK(filter.Append(std::vector<uint32_t>{0, 1, 5}, {9, 8, 7}).ok());
  BOOST_CHECK(filter.Append(std::vector<uint32_t>{}, {}).ok());
  BOOST_CHECK(filter.Append(std::vector<uint32_t>{6, UINT32_MAX}, {0, 1}).ok());
  BOOST_TEST(sink.entries == 5u);
}

BOOST_AUTO_TEST_CASE(names_both_rows_of_a_key_that_comes_twice_in_a_batch) {
  CountingSink sink;
  Duplicate duplicate;
  UniqueFilter filter(&sink, Codec(), Into(&duplicate));
  BOOST_CHECK(absl::IsAlreadyExists(
      filter.Append(std::vector<std::string_view>{"a", "b", "b"}, {2, 4, 9})));
  BOOST_TEST(duplicate.first == 4u);
  BOOST_TEST(duplicate.second == 9u);
}

BOOST_AUTO_TEST_CASE(sees_a_key_that_comes_twice_across_batches) {
  CountingSink sink;
  Duplicate duplicate;
  UniqueFilter filter(&sink, Codec(), Into(&duplicate));
  BOOST_CHECK(filter.Append(std::vector<uint64_t>{3, 4}, {1, 2}).ok());
  BOOST_CHECK(filter.Append(std::vector<uint64_t>{}, {}).ok());
  BOOST_CHECK(absl::IsAlreadyExists(filter.Append(std::vector<uint64_t>{4, 5}, {6, 7})));
  BOOST_TEST(duplicate.first == 2u);
  BOOST_TEST(duplicate.second == 6u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
