#include "engine/aggregates/aggregate_results.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "engine/aggregates/aggregate_values.h"
#include "engine/aggregates/measures.h"
#include "index/columns/column_type.h"
#include "index/keys/key_encoding.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Outputs the sum, mean or count of one input's values. Sum is for integers or floats.
template <typename Sum>
absl::Status OutputSums(const AggregatePlan::Input& input, const AggregatePlan::Output& output,
                        absl::Span<const Sum> sums,
                        absl::FunctionRef<std::string(size_t)> described, ColumnValues* column) {
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto& [sum, count] = sums[i];
    if (output.function == AggregateFunction::kCount) {
      column->AppendNumber(count);
    } else if constexpr (std::is_same_v<Sum, IntegerSum>) {
      RETURN_IF_ERROR(AppendIntegers(
          output.function, sum, count, [&] { return described(i); }, input.name, column));
    } else {
      AppendFloats(output.function, sum, count, column);
    }
  }
  return absl::OkStatus();
}

template <typename T>
void AppendAll(const std::vector<T>& more, std::vector<T>* all) {
  all->insert(all->end(), more.begin(), more.end());
}

// Adds up each part's measures, range by range.
template <typename Measure>
void AddSums(absl::Span<const PartialResults> parts, size_t input,
             std::vector<typename Measure::Value> AggregateResults::Input::*sums, size_t size,
             AggregateResults* all) {
  auto& total = all->inputs[input].*sums;
  total.assign(size, {});
  for (const PartialResults& part : parts) {
    const auto& of_part = part.results.inputs[input].*sums;
    for (size_t i = 0; i < part.ranges.size(); ++i) {
      Measure::Add(of_part[i], &total[part.ranges[i]]);
    }
  }
}

void AddCounts(absl::Span<const PartialResults> parts,
               std::vector<uint64_t> AggregateResults::*counts, size_t size,
               AggregateResults* all) {
  (all->*counts).assign(size, 0);
  for (const PartialResults& part : parts) {
    for (size_t i = 0; i < part.ranges.size(); ++i) {
      (all->*counts)[part.ranges[i]] += (part.results.*counts)[i];
    }
  }
}

// For each range, subtracts the keys that several parts list, so that each key is counted once.
void SubtractRepeats(absl::Span<const PartialResults> parts, std::vector<uint64_t>* keys) {
  std::vector<KeyListOf> lists;
  for (const PartialResults& part : parts) {
    for (size_t i = 0; i < part.ranges.size(); ++i) {
      const ListedKeys& listed = part.results.listed;
      if (listed.size(i) != 0) lists.push_back({part.ranges[i], &listed, i});
    }
  }
  ForEachRepeated(&lists, [&](size_t range, uint64_t repeats) { (*keys)[range] -= repeats; });
}

ColumnValues ExtremesOf(const AggregatePlan::Input& plan, absl::Span<const PartialResults> parts,
                        size_t input, size_t size) {
  constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  std::vector<std::pair<uint32_t, uint32_t>> best(size, {kNone, 0});  // part, and its range in the
                                                                      // part
  for (size_t p = 0; p < parts.size(); ++p) {
    const ColumnValues& mine = parts[p].results.inputs[input].extremes;
    for (size_t i = 0; i < parts[p].ranges.size(); ++i) {
      if (mine.is_null(i)) continue;
      auto& [of, which] = best[parts[p].ranges[i]];
      if (of != kNone) {
        const ColumnValues& other = parts[of].results.inputs[input].extremes;
        const bool better = plan.kind == MeasureKind::kMin ? IsValueLess(mine, i, other, which)
                                                           : IsValueLess(other, which, mine, i);
        if (!better) continue;
      }
      of = static_cast<uint32_t>(p);
      which = static_cast<uint32_t>(i);
    }
  }
  ColumnValues extremes(plan.type);
  for (const auto& [of, which] : best) {
    if (of == kNone) {
      extremes.AppendNull();
    } else {
      extremes.AppendFrom(parts[of].results.inputs[input].extremes, which, 1);
    }
  }
  return extremes;
}

}  // namespace

bool IsValueLess(const ColumnValues& a, size_t i, const ColumnValues& b, size_t j) {
  return VisitColumnType(a.type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::string_view>) {
      return a.bytes(i) < b.bytes(j);
    } else if constexpr (std::is_floating_point_v<T>) {
      return OrderedBits(a.numbers<T>()[i]) < OrderedBits(b.numbers<T>()[j]);
    } else {
      return a.numbers<T>()[i] < b.numbers<T>()[j];
    }
  });
}

absl::Status AggregateResults::Output(const AggregatePlan& plan, size_t size,
                                      absl::FunctionRef<std::string(size_t)> described,
                                      absl::Span<ColumnValues> columns) const {
  for (size_t o = 0; o < plan.outputs.size(); ++o) {
    const AggregatePlan::Output& output = plan.outputs[o];
    ColumnValues* const column = &columns[o];
    if (!output.of_column) {
      const auto& counts = output.function == AggregateFunction::kCount ? entries : keys;
      std::copy_n(counts.begin(), size, column->ExtendNumbers<uint64_t>(size));
      continue;
    }
    const AggregatePlan::Input& input = plan.inputs[output.input];
    const Input& of = inputs[output.input];
    switch (input.kind) {
      case MeasureKind::kMin:
      case MeasureKind::kGreatest:
        column->AppendFrom(of.extremes, 0, size);
        break;
      case MeasureKind::kSum:
        RETURN_IF_ERROR(OutputSums<IntegerSum>(
            input, output, absl::MakeConstSpan(of.sums).subspan(0, size), described, column));
        break;
      case MeasureKind::kFloatSum:
        RETURN_IF_ERROR(OutputSums<FloatSum>(
            input, output, absl::MakeConstSpan(of.float_sums).subspan(0, size), described, column));
    }
  }
  return absl::OkStatus();
}

void AggregateResults::Append(const AggregateResults& more) {
  AppendAll(more.entries, &entries);
  AppendAll(more.keys, &keys);
  listed.Append(more.listed);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& from = more.inputs[i];
    AppendAll(from.sums, &inputs[i].sums);
    AppendAll(from.float_sums, &inputs[i].float_sums);
    inputs[i].extremes.AppendFrom(from.extremes, 0, from.extremes.size());
  }
}

AggregateResults CombineResults(const AggregatePlan& plan, absl::Span<const PartialResults> parts,
                                size_t size) {
  AggregateResults all(plan);
  if (plan.counts_entries) AddCounts(parts, &AggregateResults::entries, size, &all);
  if (plan.counts_keys) AddCounts(parts, &AggregateResults::keys, size, &all);
  if (plan.counts_keys && plan.lists_keys != KeyList::kNone) SubtractRepeats(parts, &all.keys);
  using Input = AggregateResults::Input;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    switch (plan.inputs[i].kind) {
      case MeasureKind::kSum:
        AddSums<SumMeasure>(parts, i, &Input::sums, size, &all);
        break;
      case MeasureKind::kFloatSum:
        AddSums<FloatSumMeasure>(parts, i, &Input::float_sums, size, &all);
        break;
      case MeasureKind::kMin:
      case MeasureKind::kGreatest:
        all.inputs[i].extremes = ExtremesOf(plan.inputs[i], parts, i, size);
    }
  }
  return all;
}

}  // namespace cairn
