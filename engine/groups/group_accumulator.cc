#include "engine/groups/group_accumulator.h"

#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/numeric/int128.h"
#include "engine/aggregates/aggregate_values.h"
#include "engine/groups/value_codes.h"
#include "engine/util/make_room.h"
#include "index/columns/column_type.h"
#include "index/keys/key_encoding.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Counts values that are not null.
class CountedValues final : public GroupAccumulator {
 public:
  void Add(const ColumnValues& column, absl::Span<const uint32_t> groups, size_t end) override {
    counts_.resize(end);
    for (size_t i = 0; i < groups.size(); ++i) counts_[groups[i]] += column.is_null(i) ? 0 : 1;
  }
  absl::Status Append(size_t end, absl::FunctionRef<std::string(size_t)>,
                      ColumnValues* values) override {
    counts_.resize(end);
    for (const uint64_t count : counts_) values->AppendNumber(count);
    return absl::OkStatus();
  }

 private:
  std::vector<uint64_t> counts_;
};

class DistinctValues final : public GroupAccumulator {
 public:
  explicit DistinctValues(DataType type) : codes_(type) {}

  void Add(const ColumnValues& column, absl::Span<const uint32_t> groups, size_t end) override {
    counts_.resize(end);
    added_.resize(groups.size());
    codes_.Add(column, absl::MakeSpan(added_));
    for (size_t i = 0; i < groups.size(); ++i) {
      if (column.is_null(i)) continue;
      const uint64_t pair = uint64_t{groups[i]} << 32 | added_[i];
      if (seen_.contains(pair)) continue;
      MakeRoomForOne(&seen_);
      seen_.insert(pair);
      ++counts_[groups[i]];
    }
  }
  absl::Status Append(size_t end, absl::FunctionRef<std::string(size_t)>,
                      ColumnValues* values) override {
    counts_.resize(end);
    for (const uint64_t count : counts_) values->AppendNumber(count);
    return absl::OkStatus();
  }

 private:
  ValueCodes codes_;
  std::vector<uint32_t> added_;
  absl::flat_hash_set<uint64_t> seen_;  // pairs of group and value
  std::vector<uint64_t> counts_;
};

template <typename T>
class Sums final : public GroupAccumulator {
 public:
  explicit Sums(Aggregate aggregate) : aggregate_(std::move(aggregate)) {}

  void Add(const ColumnValues& column, absl::Span<const uint32_t> groups, size_t end) override {
    sums_.resize(end);
    const absl::Span<const T> numbers = column.numbers<T>();
    for (size_t i = 0; i < groups.size(); ++i) {
      if (column.is_null(i)) continue;
      Sum& sum = sums_[groups[i]];
      sum.sum += static_cast<Wide>(numbers[i]);
      ++sum.count;
    }
  }
  absl::Status Append(size_t end, absl::FunctionRef<std::string(size_t)> described,
                      ColumnValues* values) override {
    sums_.resize(end);
    for (size_t i = 0; i < end; ++i) {
      if constexpr (std::is_floating_point_v<T>) {
        AppendFloats(aggregate_.function, sums_[i].sum, sums_[i].count, values);
      } else {
        RETURN_IF_ERROR(AppendIntegers(
            aggregate_.function, sums_[i].sum, sums_[i].count, [&] { return described(i); },
            aggregate_.column, values));
      }
    }
    return absl::OkStatus();
  }

 private:
  using Wide = std::conditional_t<std::is_floating_point_v<T>, double, absl::int128>;
  struct Sum {
    Wide sum = 0;
    uint64_t count = 0;
  };

  const Aggregate aggregate_;
  std::vector<Sum> sums_;
};

// Returns a number's sort key. Floats are compared in key order.
template <typename T>
auto Comparable(T number) {
  if constexpr (std::is_floating_point_v<T>) {
    return OrderedBits(number);
  } else {
    return number;
  }
}

// The smallest or the largest value of each group.
template <typename T>
class Extremes final : public GroupAccumulator {
 public:
  explicit Extremes(bool greatest) : greatest_(greatest) {}

  void Add(const ColumnValues& column, absl::Span<const uint32_t> groups, size_t end) override {
    extremes_.resize(end);
    for (size_t i = 0; i < groups.size(); ++i) {
      if (column.is_null(i)) continue;
      Best& best = extremes_[groups[i]];
      if constexpr (kIsText) {
        const std::string_view text = column.bytes(i);
        if (best.any && (greatest_ ? text <= best.value : text >= best.value)) continue;
        best.value = text;
      } else {
        const T number = column.numbers<T>()[i];
        const auto is = Comparable(number), was = Comparable(best.value);
        if (best.any && (greatest_ ? is <= was : is >= was)) continue;
        best.value = number;
      }
      best.any = true;
    }
  }
  absl::Status Append(size_t end, absl::FunctionRef<std::string(size_t)>,
                      ColumnValues* values) override {
    extremes_.resize(end);
    for (const Best& best : extremes_) {
      if (!best.any) {
        values->AppendNull();
      } else if constexpr (kIsText) {
        values->AppendBytes(best.value);
      } else {
        values->AppendNumber(best.value);
      }
    }
    return absl::OkStatus();
  }

 private:
  static constexpr bool kIsText = std::is_same_v<T, std::string_view>;
  struct Best {
    bool any = false;
    std::conditional_t<kIsText, std::string, T> value = {};
  };

  const bool greatest_;
  std::vector<Best> extremes_;
};

}  // namespace

std::unique_ptr<GroupAccumulator> GroupAccumulator::Make(const Aggregate& aggregate,
                                                         DataType column) {
  const AggregateFunction function = aggregate.function;
  if (function == AggregateFunction::kCount) return std::make_unique<CountedValues>();
  if (function == AggregateFunction::kCountDistinct) {
    return std::make_unique<DistinctValues>(column);
  }
  return VisitColumnType(column, [&](auto tag) -> std::unique_ptr<GroupAccumulator> {
    using T = typename decltype(tag)::type;
    if (function == AggregateFunction::kMin || function == AggregateFunction::kMax) {
      return std::make_unique<Extremes<T>>(function == AggregateFunction::kMax);
    }
    if constexpr (std::is_same_v<T, std::string_view>) {
      return nullptr;  // AggregateType rejects these
    } else {
      return std::make_unique<Sums<T>>(aggregate);
    }
  });
}

}  // namespace cairn
