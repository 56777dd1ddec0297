#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cairn/ordered_index.h"
#include "index/run/run_columns.h"

namespace cairn {

// Ends the process if an ordered index of any structure has other results than binary search in the
// run.
class EveryOrderedIndex {
 public:
  static void Check(const SortedRun& run) {
    switch (run.kind()) {
      case PhysicalType::kU32:
        return CheckNumbers<uint32_t>(run, run.u32());
      case PhysicalType::kU64:
        return CheckNumbers<uint64_t>(run, run.u64());
      case PhysicalType::kBytes:
        return CheckStrings(run);
    }
  }

 private:
  static constexpr size_t kMaxQueries = 3000;

  template <typename Key>
  static void CheckNumbers(const SortedRun& run, absl::Span<const Key> keys) {
    std::vector<Key> queries = {0, 1, std::numeric_limits<Key>::max() / 2,
                                std::numeric_limits<Key>::max() / 2 + 1,
                                std::numeric_limits<Key>::max()};
    for (size_t i = 0; i < keys.size(); i += 1 + keys.size() / (kMaxQueries / 3)) {
      for (const Key key :
           {keys[i], static_cast<Key>(keys[i] - 1), static_cast<Key>(keys[i] + 1)}) {
        queries.push_back(key);
      }
    }
    for (const char* factory : {"cpu:auto", "cpu:sorted_array", "cpu:fast", "cpu:packed",
                                "cpu:packed,directory=cells", "cpu:packed,directory=tree",
                                "cpu:packed,bits=16", "cpu:packed,bits=32", "cpu:packed,bits=64"}) {
      Compare(factory, run, keys, queries);
    }
  }

  static void CheckStrings(const SortedRun& run) {
    std::vector<std::string_view> keys(run.size());
    for (size_t i = 0; i < run.size(); ++i) keys[i] = run.bytes()[i];
    std::vector<std::string> texts = {"", std::string(1, '\0'), std::string(40, '\xff')};
    for (size_t i = 0; i < keys.size(); i += 1 + keys.size() / (kMaxQueries / 4)) {
      const std::string key(keys[i]);
      texts.push_back(key);
      texts.push_back(key + std::string(1, '\0'));
      texts.push_back(key.substr(0, key.size() / 2));
      if (!key.empty()) {
        std::string other = key;
        other.back() = static_cast<char>(other.back() + 1);
        texts.push_back(std::move(other));
      }
    }
    const std::vector<std::string_view> queries(texts.begin(), texts.end());
    for (const char* factory : {"cpu:auto", "cpu:sorted_array", "cpu:partial_key",
                                "cpu:partial_key,hash", "cpu:strings"}) {
      Compare(factory, run, absl::MakeConstSpan(keys), queries);
    }
  }

  template <typename Key>
  static void Compare(const char* factory, const SortedRun& run, absl::Span<const Key> keys,
                      const std::vector<Key>& queries) {
    const KeyBatch batch(queries);
    const auto index = MakeOrderedIndex(factory, run);
    if (!index.ok()) {
      // For example bits=16, if keys are too far apart.
      Require(absl::IsInvalidArgument(index.status()) ||
                  absl::IsFailedPrecondition(index.status()) ||
                  absl::IsResourceExhausted(index.status()),
              factory, "is not made");
      return;
    }
    std::vector<Position> positions(queries.size());
    std::vector<RowId> rows(queries.size());
    const auto found = std::make_unique<bool[]>(queries.size());
    std::vector<uint64_t> counts(queries.size());
    const OrderedIndex& searched = **index;
    Require(searched.Execute(Batch::LowerBound(batch, absl::MakeSpan(positions))).ok(), factory,
            "LowerBound");
    Require(searched.Execute(Batch::FindFirst(batch, absl::MakeSpan(rows))).ok(), factory,
            "FindFirst");
    Require(
        searched.Execute(Batch::Contains(batch, absl::MakeSpan(found.get(), queries.size()))).ok(),
        factory, "Contains");
    Require(searched.Execute(Batch::Count(RangeBatch::Equal(batch), absl::MakeSpan(counts))).ok(),
            factory, "Count");
    FindResult matches;
    Require(searched.Execute(Batch::Find(batch, &matches)).ok(), factory, "Find");
    for (size_t i = 0; i < queries.size(); ++i) {
      const auto [first, last] = std::equal_range(keys.begin(), keys.end(), queries[i]);
      const auto begin = static_cast<size_t>(first - keys.begin());
      const auto end = static_cast<size_t>(last - keys.begin());
      Require(positions[i] == begin, factory, "LowerBound is wrong");
      Require(rows[i] == (begin < end ? run.row_ids()[begin] : kNoRow), factory,
              "FindFirst is wrong");
      Require(found[i] == (begin < end), factory, "Contains is wrong");
      Require(counts[i] == end - begin, factory, "Count is wrong");
      const absl::Span<const RowId> expected = run.row_ids().subspan(begin, end - begin);
      Require(matches[i] == expected, factory, "Find is wrong");
    }
  }

  static void Require(bool condition, const char* factory, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "%s: %s\n", factory, what);
    std::abort();
  }
};

}  // namespace cairn
