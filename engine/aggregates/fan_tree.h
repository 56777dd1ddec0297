#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "index/machine/prefetch.h"

namespace cairn {

// Adds up any range of a sequence of a measure's values, without subtracting, in time logarithmic
// in their number. Nodes of kFanOut children each are built over the values. Each level also stores
// two running totals within each group of siblings: from the group's start up to each node, and
// from each node to the group's end. So an end of a range takes one read per level (as in
// RangeFloatSums). Immutable.
template <typename Measure>
class FanTree {
 public:
  using Value = typename Measure::Value;

  FanTree() = default;
  // Throws std::bad_alloc.
  explicit FanTree(std::vector<Value> values) : size_(values.size()) {
    for (;;) {
      levels_.push_back(Level(std::move(values)));
      const Level& level = levels_.back();
      if (level.nodes.size() <= kFanOut) return;
      values.clear();
      for (size_t i = 0; i < level.nodes.size(); i += kFanOut) values.push_back(level.from_here[i]);
    }
  }

  size_t size() const { return size_; }

  // Adds values [begin, end) to *value; requires end <= size().
  void Add(size_t begin, size_t end, Value* value) const {
    for (const Level& level : levels_) {
      if (begin >= end) return;
      if (begin / kFanOut == (end - 1) / kFanOut) {
        for (; begin < end; ++begin) Measure::Add(level.nodes[begin], value);
        return;
      }
      if (begin % kFanOut != 0) Measure::Add(level.from_here[begin], value);
      if (end % kFanOut != 0) Measure::Add(level.up_to_here[end - 1], value);
      begin = (begin + kFanOut - 1) / kFanOut;
      end /= kFanOut;
    }
  }

  void Prefetch(size_t i) const {
    if (i >= size_) return;
    cairn::Prefetch(levels_[0].from_here.data() + i);
    cairn::Prefetch(levels_[0].up_to_here.data() + i);
  }
  uint64_t memory_bytes() const {
    uint64_t bytes = levels_.capacity() * sizeof(Level);
    for (const Level& level : levels_) bytes += 3 * level.nodes.capacity() * sizeof(Value);
    return bytes;
  }

 private:
  static constexpr size_t kFanOut = 16;

  struct Level {
    explicit Level(std::vector<Value> values)
        : nodes(std::move(values)), from_here(nodes.size()), up_to_here(nodes.size()) {
      for (size_t first = 0; first < nodes.size(); first += kFanOut) {
        const size_t behind = std::min(nodes.size(), first + kFanOut);
        Value before, after;
        for (size_t i = first; i < behind; ++i) {
          Measure::Add(nodes[i], &before);
          up_to_here[i] = before;
        }
        for (size_t i = behind; i-- > first;) {
          Measure::Add(nodes[i], &after);
          from_here[i] = after;
        }
      }
    }

    std::vector<Value> nodes, from_here, up_to_here;
  };

  size_t size_ = 0;
  std::vector<Level> levels_;
};

// The same for a measure that can be subtracted exactly: stores the total before each value.
template <typename Measure>
class PrefixSums {
 public:
  using Value = typename Measure::Value;

  PrefixSums() = default;
  // Throws std::bad_alloc.
  explicit PrefixSums(const std::vector<Value>& values) : before_(values.size() + 1) {
    for (size_t i = 0; i < values.size(); ++i) {
      before_[i + 1] = before_[i];
      Measure::Add(values[i], &before_[i + 1]);
    }
  }

  size_t size() const { return before_.empty() ? 0 : before_.size() - 1; }
  // Adds values [begin, end) to *value; requires end <= size().
  void Add(size_t begin, size_t end, Value* value) const {
    if (begin >= end) return;
    Measure::Add(before_[end], value);
    Measure::Subtract(before_[begin], value);
  }

  void Prefetch(size_t i) const { cairn::Prefetch(before_.data() + i); }
  uint64_t memory_bytes() const { return before_.capacity() * sizeof(Value); }

 private:
  std::vector<Value> before_;
};

}  // namespace cairn
