#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/container/fixed_array.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/aggregates/fan_tree.h"
#include "index/aggregates/range_extremes.h"
#include "index/aggregates/range_float_sums.h"
#include "index/aggregates/range_sums.h"

// A measure is a property of a stretch of a run's entries that can be added up from those of its
// pieces. Each measure has these members:
// - Value: default-constructed, it is the value of an empty stretch
// - Structure: returns the value of any stretch of positions
// - Of: queries the Structure
// - Add: adds one value to another
// - Sequence: adds up adjacent values

namespace cairn {

enum class MeasureKind : uint8_t { kSum, kFloatSum, kMin, kGreatest };

// For integers; for text, only the number of values.
struct SumMeasure {
  static constexpr MeasureKind kKind = MeasureKind::kSum;
  using Value = IntegerSum;
  using Structure = RangeSums;
  using Sequence = PrefixSums<SumMeasure>;

  static void Of(const RangeSums& sums, absl::Span<const Position> begin,
                 absl::Span<const Position> end, absl::Span<IntegerSum> values) {
    sums.Sum(begin, end, values);
  }
  static void Add(const IntegerSum& more, IntegerSum* value) {
    value->sum += more.sum;
    value->count += more.count;
  }
  static void Subtract(const IntegerSum& less, IntegerSum* value) {
    value->sum -= less.sum;
    value->count -= less.count;
  }
};

struct FloatSumMeasure {
  static constexpr MeasureKind kKind = MeasureKind::kFloatSum;
  using Value = FloatSum;
  using Structure = RangeFloatSums;
  using Sequence = FanTree<FloatSumMeasure>;

  static void Of(const RangeFloatSums& sums, absl::Span<const Position> begin,
                 absl::Span<const Position> end, absl::Span<FloatSum> values) {
    sums.Sum(begin, end, values);
  }
  static void Add(const FloatSum& more, FloatSum* value) {
    value->sum += more.sum;
    value->count += more.count;
  }
};

// The position of an extreme value, and a key to compare extremes of one run: the more extreme the
// value, the smaller the key.
struct ExtremeAt {
  uint64_t key = 0;
  Position position = kNoPosition;
};

template <Extreme kExtreme>
struct ExtremeMeasure {
  static constexpr MeasureKind kKind =
      kExtreme == Extreme::kMin ? MeasureKind::kMin : MeasureKind::kGreatest;
  using Value = ExtremeAt;
  using Structure = RangeExtremes;
  using Sequence = FanTree<ExtremeMeasure>;

  static void Of(const RangeExtremes& extremes, absl::Span<const Position> begin,
                 absl::Span<const Position> end, absl::Span<ExtremeAt> values) {
    absl::FixedArray<Position, 256> found(begin.size());
    extremes.Find(kExtreme, begin, end, absl::MakeSpan(found));
    for (size_t i = 0; i < found.size(); ++i) {
      values[i] = {};
      if (found[i] == kNoPosition) continue;
      const uint64_t code = extremes.Code(found[i]);
      values[i] = {kExtreme == Extreme::kMin ? code : ~code, found[i]};
    }
  }
  static void Add(const ExtremeAt& more, ExtremeAt* value) {
    if (more.position == kNoPosition) return;
    if (value->position == kNoPosition || more.key < value->key) *value = more;
  }
};
using LeastMeasure = ExtremeMeasure<Extreme::kMin>;
using GreatestMeasure = ExtremeMeasure<Extreme::kGreatest>;

}  // namespace cairn
