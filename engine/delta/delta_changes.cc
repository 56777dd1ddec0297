#include "engine/delta/delta_changes.h"

#include <algorithm>
#include <string_view>

#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

absl::Status CheckIsOlder(const Delta& since, const Delta& delta) {
  if (since.place->IsUpTo(*delta.place)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "changes between versions: expected an earlier and a later version of one delta");
}

constexpr std::string_view kDoing = "finding the changes of a delta";

}  // namespace

absl::StatusOr<DeltaChanges> DeltaChanges::Since(const Delta& since,
                                                 std::shared_ptr<const Delta> delta) {
  RETURN_IF_ERROR(CheckIsOlder(since, *delta));
  try {
    DeltaChanges changes(delta);
    changes.changed_ = ChangeLog::Between(*since.place, *delta->place, delta->base_run.kind());
    const std::vector<RowId>& rows = changes.changed_.rows;
    // Rows of the base come first and are in primary-key order. The new rows are sorted and merged
    // with them.
    std::vector<uint32_t>& order = changes.order_;
    order.reserve(rows.size());
    for (uint32_t i = 0; i < rows.size(); ++i) {
      const bool came_and_went = rows[i] >= since.end_row && changes.changed_.Keys(i) == 0;
      if (!came_and_went) order.push_back(i);
    }
    const auto less = [&](uint32_t a, uint32_t b) { return delta->rows->Less(rows[a], rows[b]); };
    const auto later = std::partition_point(
        order.begin(), order.end(), [&](uint32_t i) { return rows[i] < delta->rows->base_rows(); });
    // New rows mostly arrive in primary-key order.
    if (!std::is_sorted(later, order.end(), less)) std::sort(later, order.end(), less);
    std::inplace_merge(order.begin(), later, order.end(), less);
    changes.rows_.reserve(order.size());
    for (uint32_t i : order) changes.rows_.push_back(rows[i]);
    return changes;
  } catch (...) {
    return StatusOfException(kDoing);
  }
}

absl::StatusOr<uint64_t> DeltaChanges::MostRowsSince(const Delta& since, const Delta& delta) {
  RETURN_IF_ERROR(CheckIsOlder(since, delta));
  try {
    return ChangeLog::MostRowsBetween(*since.place, *delta.place);
  } catch (...) {
    return StatusOfException(kDoing);
  }
}

absl::Status DeltaChanges::Append(size_t first, size_t count, RowUpdates* updates) const {
  try {
    RETURN_IF_ERROR(delta_->PrimaryKeys(absl::MakeConstSpan(rows_).subspan(first, count),
                                        &updates->primary_keys));
    WithPhysicalKey(delta_->base_run.kind(), [&](auto type) {
      using Key = typename decltype(type)::type;
      for (uint32_t i : absl::MakeConstSpan(order_).subspan(first, count)) {
        for (uint64_t k = changed_.KeysBegin(i); k < changed_.key_ends[i]; ++k) {
          AppendKey(KeyAt<Key>(changed_.keys, k), &updates->keys);
        }
        updates->row_ends.push_back(updates->keys.size());
        if (delta_->tuples == nullptr) continue;
        const bool has_keys = changed_.Keys(i) != 0;
        updates->tuples.Append(has_keys ? delta_->Tuple(changed_.rows[i]).value_or("") : "");
      }
    });
    return absl::OkStatus();
  } catch (...) {
    return StatusOfException(kDoing);
  }
}

}  // namespace cairn
