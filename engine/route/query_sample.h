#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"

namespace cairn {

// Queries for trials: keys of a run, each drawn from a place of its own, and ranges that start at
// them. Every batch is of the next queries in turn, so that none finds its keys in the caches
// because the batch before was the same. Of an empty run the keys are zero, or the empty string.
//
// Batches are valid until the next call. Not thread-safe. Throws std::bad_alloc.
class QuerySample {
 public:
  // So many keys and ranges are drawn: what they touch exceeds a core's own caches, and what a
  // trial touched has mostly left them when its keys come again. Reading a key waits for memory as
  // a query does, so more would cost more than the trials.
  static constexpr size_t kMaxKeys = size_t{1} << 18;
  static constexpr size_t kMaxRanges = size_t{1} << 16;
  // Entries from the lower to the upper key of a range.
  static constexpr size_t kRangeEntries = 64;

  // Draws keys until there are kMaxKeys, they are some megabytes, or four milliseconds of `now_ns`
  // have passed, as they soon do where the run's file is not in memory; and ranges in half the
  // time. `run` must outlive this.
  QuerySample(const SortedRun& run, const std::function<int64_t()>& now_ns);

  // The keys that were drawn.
  size_t size() const { return points_.drawn; }

  // `count` keys in random order. More than were drawn come again.
  KeyBatch Next(size_t count);
  // As many ranges, each of kRangeEntries entries as far as keys are distinct and the run goes.
  RangeBatch NextRanges(size_t count);
  // `count` ascending keys, as they follow each other in a sorted batch of `of` over the whole run.
  KeyBatch NextAscending(size_t count, size_t of);

 private:
  // Keys that were drawn, and behind them the same again, as far as they were asked for.
  struct Column {
    explicit Column(PhysicalType kind) : keys(kind) {}
    // Appends the keys at these positions. Returns the bytes of texts that they take.
    size_t Draw(const SortedRun& run, absl::Span<const Position> positions);
    // At least `count` keys. Those of bytes are not copied again.
    void Repeat(size_t count);
    EncodedKeys keys;
    std::vector<std::string_view> views;  // of keys of bytes that come again
    KeyBatch batch;                       // of all
    size_t drawn = 0;
  };

  size_t Below(size_t n);  // random

  const SortedRun& run_;
  uint64_t random_ = 0x9E3779B97F4A7C15;
  Column points_, lower_, upper_;  // upper_ ends the ranges that start at lower_
  size_t next_point_ = 0, next_range_ = 0;
  EncodedKeys ascending_;
  std::vector<std::string_view> long_keys_;  // the run's own, where copies would be too large
};

}  // namespace cairn
