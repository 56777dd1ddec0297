#include "engine/aggregates/base_aggregates.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "index/columns/column_type.h"
#include "index/keys/key_number.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Versions whose structures are kept: the latest, and one that a reader has pinned.
constexpr size_t kVersions = 2;

template <typename Structure>
absl::StatusOr<std::unique_ptr<const Structure>> MakeStructure(const ColumnTable& columns,
                                                               size_t column,
                                                               absl::Span<const RowId> row_ids,
                                                               int threads) {
  if constexpr (std::is_same_v<Structure, RangeSums>) {
    const DataType type = columns.columns()[column].type;
    if (!IsUnsigned(type) && !IsSigned(type)) {
      return RangeSums::BuildCounts(columns, column, row_ids, threads);
    }
  }
  return Structure::Build(columns, column, row_ids, threads);
}

}  // namespace

BaseAggregates::BaseAggregates(SortedRun run, ColumnTable columns)
    : run_(std::move(run)), columns_(std::move(columns)), base_(columns_.columns().size()) {}

template <typename Structure>
absl::StatusOr<const Structure*> BaseAggregates::Get(size_t column, int threads) const {
  return base_.column(column).of<Structure>().Get(
      [&] { return MakeStructure<Structure>(columns_, column, run_.row_ids(), threads); });
}

absl::StatusOr<const DistinctRanks*> BaseAggregates::Distinct(int threads) const {
  return distinct_.Get([&]() -> absl::StatusOr<std::unique_ptr<const DistinctRanks>> {
    ASSIGN_OR_RETURN(DistinctRanks ranks, DistinctRanks::Build(run_, threads));
    return std::make_unique<const DistinctRanks>(std::move(ranks));
  });
}

std::shared_ptr<DeltaAggregates> BaseAggregates::Of(
    const std::shared_ptr<const Delta>& delta) const {
  const MutexLock lock(&mutex_);
  const auto found = std::find_if(deltas_.begin(), deltas_.end(),
                                  [&](const OfDelta& of) { return of.delta.lock() == delta; });
  if (found != deltas_.end()) {
    std::rotate(deltas_.begin(), found, found + 1);
    return deltas_.front().aggregates;
  }
  // A later version of a writer has all the removed entries of an earlier one. A branch has others.
  const auto of_writer =
      std::find_if(deltas_.begin(), deltas_.end(), [](const OfDelta& of) { return !of.is_branch; });
  DeltaAggregates* const before =
      of_writer == deltas_.end() || delta->is_branch ? nullptr : of_writer->aggregates.get();
  OfDelta made = {delta, std::make_shared<DeltaAggregates>(*delta, before), delta->is_branch};
  deltas_.insert(deltas_.begin(), std::move(made));
  if (deltas_.size() > kVersions) deltas_.pop_back();
  return deltas_.front().aggregates;
}

absl::Status BaseAggregates::Make(absl::Span<const std::string> columns, int threads) const {
  for (const std::string& name : columns) {
    const std::optional<size_t> column = columns_.Find(name);
    if (!column.has_value()) continue;
    RETURN_IF_ERROR(Get<RangeExtremes>(*column, threads).status());
    if (IsFloat(columns_.columns()[*column].type)) {
      RETURN_IF_ERROR(Get<RangeFloatSums>(*column, threads).status());
    } else {
      RETURN_IF_ERROR(Get<RangeSums>(*column, threads).status());
    }
  }
  return absl::OkStatus();
}

absl::Status BaseAggregates::MakeAs(const BaseAggregates& other, int threads) const {
  for (size_t i = 0; i < other.base_.columns(); ++i) {
    const std::optional<size_t> column = columns_.Find(other.columns_.columns()[i].name);
    if (!column.has_value()) continue;
    const RunAggregates::Column& made = other.base_.column(i);
    if (made.sums.get() != nullptr) RETURN_IF_ERROR(Get<RangeSums>(*column, threads).status());
    if (made.float_sums.get() != nullptr) {
      RETURN_IF_ERROR(Get<RangeFloatSums>(*column, threads).status());
    }
    if (made.extremes.get() != nullptr) {
      RETURN_IF_ERROR(Get<RangeExtremes>(*column, threads).status());
    }
  }
  if (other.distinct_.get() != nullptr) RETURN_IF_ERROR(Distinct(threads).status());
  return absl::OkStatus();
}

std::vector<IndexStats::Aggregates> BaseAggregates::Stats() const {
  std::vector<IndexStats::Aggregates> stats;
  for (size_t i = 0; i < base_.columns(); ++i) {
    const uint64_t bytes = base_.column(i).memory_bytes();
    if (bytes != 0) stats.push_back({columns_.columns()[i].name, bytes});
  }
  uint64_t others = distinct_.get() == nullptr ? 0 : distinct_.get()->memory_bytes();
  const MutexLock lock(&mutex_);
  for (const OfDelta& of : deltas_) others += of.aggregates->memory_bytes();
  if (others != 0) stats.push_back({"", others});
  return stats;
}

template absl::StatusOr<const RangeSums*> BaseAggregates::Get(size_t, int) const;
template absl::StatusOr<const RangeFloatSums*> BaseAggregates::Get(size_t, int) const;
template absl::StatusOr<const RangeExtremes*> BaseAggregates::Get(size_t, int) const;

}  // namespace cairn
