#include "engine/merge/merged_row_ids.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "engine/util/sorted_order.h"
#include "index/machine/parallel.h"

namespace cairn {
namespace {

// Number of rows per task.
constexpr uint64_t kGrain = uint64_t{1} << 20;

}  // namespace

MergedRowIds::MergedRowIds(const Delta& delta, int threads)
    : delta_rows_(delta.rows), ids_(delta.end_row) {
  FindLaterRows(delta);
  const uint64_t base_rows = delta.base_rows.rows();
  rows_ = base_rows - delta.dead_rows.size() + later_rows_.size();
  const uint64_t grains = std::max<uint64_t>(1, (base_rows + kGrain - 1) / kGrain);
  ParallelFor(threads, grains, [&](size_t grain) {
    const uint64_t begin = grain * kGrain;
    Number(delta.dead_rows, static_cast<RowId>(begin),
           static_cast<RowId>(std::min(base_rows, begin + kGrain)));
  });
}

void MergedRowIds::FindLaterRows(const Delta& delta) {
  const RowId base_rows = delta_rows_->base_rows();
  std::vector<bool> stays(delta.end_row - base_rows);
  for (const DeltaPart& part : delta.parts) {
    const absl::Span<const RowId> rows = part.segment->rows();
    for (size_t p = 0; p < rows.size(); ++p) {
      if (rows[p] >= base_rows && !part.removed.Contains(p)) stays[rows[p] - base_rows] = true;
    }
  }
  std::vector<RowId> rows;
  std::vector<std::string_view> primary_keys;
  for (RowId row = base_rows; row < delta.end_row; ++row) {
    if (!stays[row - base_rows]) continue;
    rows.push_back(row);
    primary_keys.push_back(delta_rows_->primary_key(row));
  }
  later_rows_.reserve(rows.size());
  for (uint32_t i : SortedOrder<std::string_view>(primary_keys)) later_rows_.push_back(rows[i]);
}

absl::Span<const RowId> MergedRowIds::LaterRowsAmong(RowId begin, RowId end) const {
  const auto first_from = [&](RowId row) {
    return std::partition_point(later_rows_.begin(), later_rows_.end(),
                                [&](RowId later) { return delta_rows_->rank(later) < row; });
  };
  const auto first = first_from(begin);
  const auto last = end == delta_rows_->base_rows() ? later_rows_.end() : first_from(end);
  return absl::MakeConstSpan(later_rows_)
      .subspan(static_cast<size_t>(first - later_rows_.begin()), static_cast<size_t>(last - first));
}

void MergedRowIds::Number(const PositionSet& dead_rows, RowId begin, RowId end) {
  const absl::Span<const RowId> later = LaterRowsAmong(begin, end);
  RowId id = begin - static_cast<RowId>(dead_rows.Rank(begin)) +
             static_cast<RowId>(later.data() - later_rows_.data());
  RowId row = begin;
  const auto number_base_rows = [&](RowId last) {
    while (row < last) {
      const auto dead = static_cast<RowId>(dead_rows.FirstMember(row, last));
      std::iota(&ids_[row], ids_.data() + dead, id);
      id += dead - row;
      row = static_cast<RowId>(dead_rows.FirstAbsent(dead, last));
      std::fill(ids_.data() + dead, ids_.data() + row, id);
    }
  };
  for (RowId later_row : later) {
    number_base_rows(delta_rows_->rank(later_row));
    ids_[later_row] = id++;
  }
  number_base_rows(end);
}

}  // namespace cairn
