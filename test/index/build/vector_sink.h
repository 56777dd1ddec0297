#pragma once

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "index/build/run_builder.h"
#include "test/require_ok.h"

namespace cairn {

// Collects entries, keys of fixed width as numbers; fails on request.
class VectorSink : public EntrySink {
 public:
  template <typename Key>
  using Entries = std::vector<std::pair<Key, RowId>>;

  absl::Status Begin(uint64_t entries, uint64_t key_bytes) override {
    BOOST_TEST(begins++ == 0);
    announced = entries;
    announced_bytes = key_bytes;
    return begin_status;
  }
  absl::Status Append(absl::Span<const uint32_t> keys, absl::Span<const RowId> row_ids) override {
    return Take(keys, row_ids, &numbers);
  }
  absl::Status Append(absl::Span<const uint64_t> keys, absl::Span<const RowId> row_ids) override {
    return Take(keys, row_ids, &numbers);
  }
  absl::Status Append(absl::Span<const std::string_view> keys,
                      absl::Span<const RowId> row_ids) override {
    return Take(keys, row_ids, &strings);
  }

  size_t size() const { return numbers.size() + strings.size(); }

  Entries<uint64_t> numbers;
  Entries<std::string> strings;
  uint64_t announced = 0;
  uint64_t announced_bytes = 0;
  int begins = 0;
  absl::Status begin_status;
  size_t fail_behind = SIZE_MAX;  // this many entries Append fails

 private:
  template <typename Key, typename Taken>
  absl::Status Take(absl::Span<const Key> keys, absl::Span<const RowId> row_ids, Taken* taken) {
    BOOST_REQUIRE(begins == 1);
    BOOST_REQUIRE(keys.size() == row_ids.size());
    BOOST_REQUIRE(!failed_);
    for (size_t i = 0; i < keys.size(); ++i) taken->emplace_back(keys[i], row_ids[i]);
    failed_ = taken->size() > fail_behind;
    return failed_ ? absl::InternalError("the sink is full") : absl::OkStatus();
  }

  bool failed_ = false;
};

}  // namespace cairn
