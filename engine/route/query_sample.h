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

// Queries for trials: keys of a run from random positions, and ranges that start at them. Each
// batch has the next queries in turn, so that its keys are not in the caches because the previous
// batch was the same. For an empty run the keys are zero, or the empty string.
//
// Batches are valid until the next call. Not thread-safe. Throws std::bad_alloc.
class QuerySample {
 public:
  // The numbers of keys and ranges to draw. The memory that they touch exceeds a core's own caches,
  // and has mostly left them when a key is used again. Reading a key waits for memory as a query
  // does, so more keys would cost more than the trials.
  static constexpr size_t kMaxKeys = size_t{1} << 18;
  static constexpr size_t kMaxRanges = size_t{1} << 16;
  // Number of entries from the lower to the upper key of a range.
  static constexpr size_t kRangeEntries = 64;

  // Draws keys until there are kMaxKeys, or they take a few megabytes, or four milliseconds of
  // `now_ns` have passed; this happens soon if the run's file is not in memory. Draws ranges in
  // half that time. `run` must outlive this.
  QuerySample(const SortedRun& run, const std::function<int64_t()>& now_ns);

  // Returns the number of keys that were drawn.
  size_t size() const { return points_.drawn; }

  // Returns `count` keys in random order. If `count` is larger than size(), keys repeat.
  KeyBatch Next(size_t count);
  // Returns `count` ranges. Each has kRangeEntries entries if keys are distinct and the run does
  // not end before.
  RangeBatch NextRanges(size_t count);
  // Returns `count` ascending keys, as dense as in a sorted batch of `of` keys over the whole run.
  KeyBatch NextAscending(size_t count, size_t of);

 private:
  // The drawn keys, repeated as often as requested so far.
  struct Column {
    explicit Column(PhysicalType kind) : keys(kind) {}
    // Appends the keys at these positions. Returns the bytes of their texts.
    size_t Draw(const SortedRun& run, absl::Span<const Position> positions);
    // Makes at least `count` keys available. The bytes of byte-string keys are not copied again.
    void Repeat(size_t count);
    EncodedKeys keys;
    std::vector<std::string_view> views;  // of repeated byte-string keys
    KeyBatch batch;                       // of all keys
    size_t drawn = 0;
  };

  size_t Below(size_t n);  // random

  const SortedRun& run_;
  uint64_t random_ = 0x9E3779B97F4A7C15;
  Column points_, lower_, upper_;  // upper_ has the ends of the ranges that start at lower_
  size_t next_point_ = 0, next_range_ = 0;
  EncodedKeys ascending_;
  std::vector<std::string_view> long_keys_;  // views of the run, if copies would be too large
};

}  // namespace cairn
