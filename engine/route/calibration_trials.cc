#include "engine/route/calibration_trials.h"

#include <algorithm>
#include <limits>

#include "index/machine/status_macros.h"

namespace cairn {
namespace {

using Kind = Ladder::Kind;

// Maximum number of batches per trial.
constexpr size_t kMaxRepeats = 15;
// A batch that takes this many times its expected time is repeated, at most kMaxDoubts times.
constexpr double kDoubtful = 2;
constexpr size_t kMaxDoubts = 3;

// Returns the order of results that a route supports.
ResultOrder OrderOf(const Route& route) {
  return route.Takes(Operation::kFindFirst, ResultOrder::kCaller) ? ResultOrder::kCaller
                                                                  : ResultOrder::kKey;
}

}  // namespace

CalibrationTrials::CalibrationTrials(absl::Span<const Route* const> routes, const SortedRun& run,
                                     const std::function<int64_t()>& now_ns)
    : routes_(routes),
      now_ns_(now_ns),
      sample_(run, now_ns),
      clock_ns_(std::numeric_limits<double>::max()) {
  for (int i = 0; i < 16; ++i) {
    const int64_t start = now_ns_();
    clock_ns_ = std::min(clock_ns_, static_cast<double>(now_ns_() - start));
  }
}

bool CalibrationTrials::Takes(const Route& route, Operation operation) {
  return route.Takes(operation, OrderOf(route));
}

absl::StatusOr<CostTrial> CalibrationTrials::Try(Ladder* ladder, size_t size, size_t least,
                                                 double expected, double* spent) {
  if (ladder->trials.empty()) {  // the first call allocates
    RETURN_IF_ERROR(Time(ladder, size).status());
  }
  const double most = kDoubtful * std::max(expected, Ladder::kTrialNanoseconds);
  std::vector<double> times;
  double sum = 0, shortest = std::numeric_limits<double>::max();
  do {
    ASSIGN_OR_RETURN(const double time, Time(ladder, size));
    times.push_back(time);
    sum += time;
    shortest = std::min(shortest, time);
  } while (times.size() < least ||
           (sum < Ladder::kTrialNanoseconds && times.size() < kMaxRepeats) ||
           (shortest > most && times.size() < kMaxDoubts));
  const auto median = times.begin() + static_cast<ptrdiff_t>((times.size() - 1) / 2);
  std::nth_element(times.begin(), median, times.end());
  *spent += *median * static_cast<double>(times.size());
  ladder->last_ns = *median;
  const double whole = static_cast<double>(size) / static_cast<double>(ladder->Asked(size));
  return CostTrial{size, *median * whole};
}

absl::StatusOr<double> CalibrationTrials::Time(Ladder* ladder, size_t size) {
  const size_t count = ladder->Asked(size);
  KeyBatch keys;
  RangeBatch ranges;
  if (ladder->kind == Kind::kSlices || ladder->kind == Kind::kSortedPoint) {
    keys = sample_.NextAscending(count, size);
  } else if (ladder->kind == Kind::kCount || ladder->kind == Kind::kRows) {
    ranges = sample_.NextRanges(count);
  } else {
    keys = sample_.Next(count);
  }
  row_ids_.resize(std::max(row_ids_.size(), count));
  query_of_.resize(std::max(query_of_.size(), count));
  counts_.resize(std::max(counts_.size(), ladder->kind == Kind::kCount ? count : 0));

  const int64_t start = now_ns_();
  absl::Status status = Ask(*routes_[ladder->route], ladder->kind, keys, ranges);
  const auto ns = static_cast<double>(now_ns_() - start);
  if (!status.ok()) return status;
  if (ladder->kind == Kind::kFind || ladder->kind == Kind::kRows) {
    ladder->queries += count;
    ladder->rows += matches_.row_ids.size();
  }
  return std::max(ns - clock_ns_, 1.0);
}

absl::Status CalibrationTrials::Ask(const Route& route, Kind kind, KeyBatch keys,
                                    const RangeBatch& ranges) {
  const absl::Span<RowId> row_ids = absl::MakeSpan(row_ids_).first(keys.size());
  switch (kind) {
    case Kind::kPoint:
    case Kind::kSortedPoint:
    case Kind::kFanOut: {
      Batch batch = Batch::FindFirst(keys, row_ids);
      batch.options.sorted_input = kind == Kind::kSortedPoint;
      batch.options.result_order = OrderOf(route);
      if (batch.options.result_order == ResultOrder::kKey) {
        batch.query_of = absl::MakeSpan(query_of_).first(keys.size());
      }
      return route.Execute(batch);
    }
    case Kind::kSlices:
      return route.index().Execute(Batch::FindFirst(keys, row_ids));
    case Kind::kFind:
      return route.Execute(Batch::Find(keys, &matches_));
    case Kind::kCount:
      return route.Execute(Batch::Count(ranges, absl::MakeSpan(counts_).first(ranges.size())));
    case Kind::kRows:
      break;
  }
  return route.Execute(Batch::Scan(ranges, &matches_));
}

}  // namespace cairn
