#include "engine/version/aggregate_evaluator.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "index/columns/column_type.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"
#include "index/run/gallop.h"

namespace cairn {
namespace {

// Ranges of up to this many entries are searched for removed ones.
constexpr uint64_t kShortRange = 64;

uint64_t CountBetween(const std::vector<Position>& positions, Position begin, Position end) {
  const auto from = std::lower_bound(positions.begin(), positions.end(), begin);
  return static_cast<uint64_t>(std::lower_bound(from, positions.end(), end) - from);
}

// Appends the first and the last key of a run, if they are in the range.
template <typename Key>
void ListEnds(const RunRange& range, EncodedKeys* keys) {
  if (range.begin == range.end) return;
  const auto column = ColumnOf<Key>(*range.run);
  const Key first = column[0], last = column[range.run->size() - 1];
  if (range.begin == 0) AppendKey<Key>(first, keys);
  if (range.end == range.run->size() && (range.begin != 0 || first != last)) {
    AppendKey<Key>(last, keys);
  }
}

// Appends the distinct keys of a range, in order. Advances the runs' positions.
template <typename Key>
void ListAll(Runs* runs, EncodedKeys* keys) {
  while (true) {
    bool any = false;
    Key least = {};
    for (RunRange& run : *runs) {
      run.begin = run.removed->FirstAbsent(run.begin, run.end);
      if (run.begin == run.end) continue;
      const Key key = ColumnOf<Key>(*run.run)[run.begin];
      if (!any || key < least) least = key;
      any = true;
    }
    if (!any) return;
    AppendKey<Key>(least, keys);
    for (RunRange& run : *runs) {
      const auto column = ColumnOf<Key>(*run.run);
      run.begin = Gallop(run.begin, run.end, [&](size_t p) { return column[p] == least; });
    }
  }
}

}  // namespace

AggregateEvaluator::AggregateEvaluator(const IndexVersion& version, const AggregatePlan& plan,
                                       int threads)
    : version_(version),
      plan_(plan),
      threads_(threads),
      runs_(RunsOf(*version.delta)),
      results_(plan),
      masked_(plan.inputs.size() * runs_.size()) {}

DeltaAggregates& AggregateEvaluator::delta_aggregates() {
  if (delta_aggregates_ == nullptr) {
    delta_aggregates_ = version_.base->aggregates->Of(version_.delta);
  }
  return *delta_aggregates_;
}

template <typename Measure>
absl::StatusOr<const typename Measure::Structure*> AggregateEvaluator::StructureOf(size_t run,
                                                                                   size_t column) {
  using Structure = typename Measure::Structure;
  if (run == 0) return version_.base->aggregates->Get<Structure>(column, threads_);
  DeltaAggregates& delta = delta_aggregates();
  return delta.part(run - 1).column(column).of<Structure>().Get(
      [&]() -> absl::StatusOr<std::unique_ptr<const Structure>> {
        ASSIGN_OR_RETURN(const ColumnValues* const values,
                         delta.PartValues(*version_.delta, run - 1, column));
        if constexpr (std::is_same_v<Structure, RangeSums>) {
          if (IsTextOrBytes(values->type())) return RangeSums::BuildCounts(*values, 1);
        }
        return Structure::Build(*values, 1);
      });
}

// Prefetches the data that the ends of long ranges read.
template <typename Masked>
void PrefetchEnds(const Masked& masked, absl::Span<const Position> begin,
                  absl::Span<const Position> end) {
  const auto for_all = [&](auto prefetch) {
    for (size_t i = 0; i < begin.size(); ++i) {
      if (end[i] <= uint64_t{begin[i]} + kShortRange) continue;
      prefetch(begin[i]);
      prefetch(end[i] - 1);
    }
  };
  for_all([&](uint64_t p) { masked.PrefetchPage(p); });
  for_all([&](uint64_t p) { masked.PrefetchWord(p); });
  for_all([&](uint64_t p) { masked.PrefetchStretch(p); });
}

// Adds the values of each range in one run.
template <typename Measure>
absl::Status AggregateEvaluator::AddRun(const RunSpans& spans, size_t run, size_t column,
                                        absl::Span<typename Measure::Value> values) {
  const absl::Span<const Position> begin = spans.begin(run), end = spans.end(run);
  bool any = false;
  for (size_t i = 0; i < begin.size(); ++i) any |= begin[i] < end[i];
  if (!any) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto* const structure, StructureOf<Measure>(run, column));
  const PositionSet& removed = *runs_[run].removed;
  if (removed.empty() && run == 0 && runs_.size() == 1) {  // as if nothing has changed
    Measure::Of(*structure, begin, end, values);
    return absl::OkStatus();
  }

  piece_begin_.clear();
  piece_end_.clear();
  piece_of_.clear();
  auto& made = masked_[input_ * runs_.size() + run];
  const auto* masked = static_cast<const MaskedRun<Measure>*>(made.get());
  bool any_long = false;
  for (size_t i = 0; i < begin.size(); ++i) any_long |= end[i] > uint64_t{begin[i]} + kShortRange;
  if (any_long && !removed.empty()) {
    if (masked == nullptr) {
      auto mask = delta_aggregates().Masked<Measure>(*version_.delta, run, column, *structure);
      masked = mask.get();
      made = std::move(mask);
    }
    PrefetchEnds(*masked, begin, end);
  }
  for (size_t i = 0; i < begin.size(); ++i) {
    if (begin[i] >= end[i]) continue;
    const auto piece = [&](uint64_t from, uint64_t to) {
      piece_begin_.push_back(static_cast<Position>(from));
      piece_end_.push_back(static_cast<Position>(to));
      piece_of_.push_back(static_cast<uint32_t>(i));
    };
    if (removed.empty()) {
      piece(begin[i], end[i]);
    } else if (end[i] - begin[i] <= kShortRange) {
      for (uint64_t at = removed.FirstAbsent(begin[i], end[i]); at < end[i];) {
        const uint64_t stop = removed.FirstMember(at, end[i]);
        piece(at, stop);
        at = removed.FirstAbsent(stop, end[i]);
      }
    } else {
      masked->Add(begin[i], end[i], &values[i], piece);
    }
  }
  std::vector<typename Measure::Value> of_pieces(piece_of_.size());
  Measure::Of(*structure, piece_begin_, piece_end_, absl::MakeSpan(of_pieces));
  for (size_t i = 0; i < of_pieces.size(); ++i) {
    Measure::Add(of_pieces[i], &values[piece_of_[i]]);
  }
  return absl::OkStatus();
}

template <typename Measure>
absl::Status AggregateEvaluator::AddRuns(const RunSpans& spans, size_t column,
                                         std::vector<typename Measure::Value>* values) {
  values->assign(spans.size(), {});
  for (size_t run = 0; run < runs_.size(); ++run) {
    RETURN_IF_ERROR(AddRun<Measure>(spans, run, column, absl::MakeSpan(*values)));
  }
  return absl::OkStatus();
}

absl::Status AggregateEvaluator::ValuesAt(size_t run, size_t column,
                                          absl::Span<const Position> positions,
                                          ColumnValues* values) {
  if (run == 0) {
    std::vector<RowId> row_ids(positions.size());
    for (size_t i = 0; i < row_ids.size(); ++i) row_ids[i] = runs_[0].rows[positions[i]];
    return version_.delta->base_columns.Gather(column, row_ids, values);
  }
  ASSIGN_OR_RETURN(const ColumnValues* const all,
                   delta_aggregates().PartValues(*version_.delta, run - 1, column));
  for (const Position position : positions) values->AppendFrom(*all, position, 1);
  return absl::OkStatus();
}

// The numbers of values differ between runs, so the values themselves are compared.
template <typename Measure>
absl::Status AggregateEvaluator::FindExtremes(const RunSpans& spans, size_t column,
                                              ColumnValues* extremes) {
  constexpr uint32_t kNone = UINT32_MAX;
  const DataType type = version_.delta->base_columns.columns()[column].type;
  std::vector<ColumnValues> found(runs_.size(), ColumnValues(type));
  // run, and number in it
  std::vector<std::pair<uint32_t, uint32_t>> best(spans.size(), {kNone, 0});
  std::vector<Position> positions;
  std::vector<ExtremeAt> at;
  for (size_t run = 0; run < runs_.size(); ++run) {
    at.assign(spans.size(), {});
    RETURN_IF_ERROR(AddRun<Measure>(spans, run, column, absl::MakeSpan(at)));
    positions.clear();
    for (const ExtremeAt& extreme : at) {
      if (extreme.position != kNoPosition) positions.push_back(extreme.position);
    }
    RETURN_IF_ERROR(ValuesAt(run, column, positions, &found[run]));
    uint32_t next = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      if (at[i].position == kNoPosition) continue;
      const uint32_t mine = next++;
      const auto& [of, which] = best[i];
      const bool better = of == kNone || (Measure::kKind == MeasureKind::kMin
                                              ? IsValueLess(found[run], mine, found[of], which)
                                              : IsValueLess(found[of], which, found[run], mine));
      if (better) best[i] = {static_cast<uint32_t>(run), mine};
    }
  }
  extremes->Clear(type);
  for (const auto& [run, which] : best) {
    if (run == kNone) {
      extremes->AppendNull();
    } else {
      extremes->AppendFrom(found[run], which, 1);
    }
  }
  return absl::OkStatus();
}

absl::Status AggregateEvaluator::EvaluateInput(const AggregatePlan::Input& input,
                                               const RunSpans& spans,
                                               AggregateResults::Input* result) {
  switch (input.kind) {
    case MeasureKind::kSum:
      return AddRuns<SumMeasure>(spans, input.column, &result->sums);
    case MeasureKind::kFloatSum:
      return AddRuns<FloatSumMeasure>(spans, input.column, &result->float_sums);
    case MeasureKind::kMin:
      return FindExtremes<LeastMeasure>(spans, input.column, &result->extremes);
    case MeasureKind::kGreatest:
      break;
  }
  return FindExtremes<GreatestMeasure>(spans, input.column, &result->extremes);
}

void AggregateEvaluator::CountEntries(const RunSpans& spans, std::vector<uint64_t>* entries) const {
  entries->assign(spans.size(), 0);
  size_t run = 0;
  if (const SlottedArray* const removed = version_.delta->removed_positions.get()) {
    // The numbers of removed entries before both ends.
    std::vector<Position> before_begin(spans.size()), before_end(spans.size());
    std::vector<uint32_t> equal(spans.size());
    const absl::Span<const Position> begin = spans.begin(0), end = spans.end(0);
    removed->LowerBound(begin, absl::MakeSpan(before_begin), absl::MakeSpan(equal));
    removed->LowerBound(end, absl::MakeSpan(before_end), absl::MakeSpan(equal));
    for (size_t i = 0; i < begin.size(); ++i) {
      if (begin[i] >= end[i]) continue;
      (*entries)[i] = end[i] - begin[i] - (before_end[i] - before_begin[i]);
    }
    run = 1;
  }
  for (; run < runs_.size(); ++run) {
    const absl::Span<const Position> begin = spans.begin(run), end = spans.end(run);
    for (size_t i = 0; i < begin.size(); ++i) {
      if (begin[i] >= end[i]) continue;
      (*entries)[i] += end[i] - begin[i] - runs_[run].removed->Count(begin[i], end[i]);
    }
  }
}

absl::Status AggregateEvaluator::CountKeys(const RunSpans& spans, std::vector<uint64_t>* keys) {
  ASSIGN_OR_RETURN(const DistinctRanks* const ranks, version_.base->aggregates->Distinct(threads_));
  keys->resize(spans.size());
  ranks->Count(spans.begin(0), spans.end(0), absl::MakeSpan(*keys));
  if (version_.delta->empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const DistinctChanges* const changes,
                   delta_aggregates().Distinct(*version_.delta));
  const auto count = [&](const std::vector<Position>& positions, size_t run, size_t i) {
    const Position begin = spans.begin(run)[i], end = spans.end(run)[i];
    return begin < end ? CountBetween(positions, begin, end) : 0;
  };
  for (size_t i = 0; i < keys->size(); ++i) {
    const Position begin = spans.begin(0)[i], end = spans.end(0)[i];
    // Short ranges are searched directly if few entries are removed.
    if (end > uint64_t{begin} + kShortRange ||
        version_.delta->removed.FirstMember(begin, end) < end) {
      (*keys)[i] -= count(changes->lost, 0, i);
    }
    for (size_t part = 0; part < changes->gained.size(); ++part) {
      (*keys)[i] += count(changes->gained[part], part + 1, i);
    }
  }
  return absl::OkStatus();
}

void AggregateEvaluator::ListKeys(const RunSpans& spans, ListedKeys* listed) const {
  WithPhysicalKey(version_.delta->base_run.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    listed->offsets.assign(1, 0);
    listed->keys.Clear(kKindOf<Key>);
    const bool ends = plan_.lists_keys == KeyList::kEnds && version_.delta->empty();
    Runs runs = runs_;
    for (size_t i = 0; i < spans.size(); ++i) {
      for (size_t r = 0; r < runs.size(); ++r) {
        runs[r].begin = spans.begin(r)[i];
        runs[r].end = std::max(spans.begin(r)[i], spans.end(r)[i]);  // crossed ends contain nothing
      }
      if (ends) {
        ListEnds<Key>(runs[0], &listed->keys);
      } else {
        ListAll<Key>(&runs, &listed->keys);
      }
      listed->offsets.push_back(listed->keys.size());
    }
  });
}

absl::Status AggregateEvaluator::Evaluate(const RunSpans& spans, AggregateResults* results) {
  if (plan_.counts_entries) CountEntries(spans, &results->entries);
  if (plan_.counts_keys) RETURN_IF_ERROR(CountKeys(spans, &results->keys));
  if (plan_.lists_keys != KeyList::kNone) ListKeys(spans, &results->listed);
  for (input_ = 0; input_ < plan_.inputs.size(); ++input_) {
    RETURN_IF_ERROR(EvaluateInput(plan_.inputs[input_], spans, &results->inputs[input_]));
  }
  return absl::OkStatus();
}

absl::Status AggregateEvaluator::Append(const RunSpans& spans,
                                        absl::FunctionRef<std::string(size_t)> described,
                                        absl::Span<ColumnValues> columns) {
  RETURN_IF_ERROR(Evaluate(spans, &results_));
  return results_.Output(plan_, spans.size(), described, columns);
}

}  // namespace cairn
