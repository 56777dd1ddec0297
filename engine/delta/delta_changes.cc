#include "engine/delta/delta_changes.h"

#include <algorithm>
#include <new>

#include "absl/strings/str_format.h"
#include "engine/util/physical_key.h"

namespace cairn {
namespace {

// Calls body(p) for every member of a set.
template <typename Body>
void ForEachMember(const PositionSet& set, Body body) {
  const uint64_t end = set.universe();
  for (uint64_t p = set.FirstMember(0, end); p < end; p = set.FirstMember(p + 1, end)) {
    body(static_cast<uint32_t>(p));
  }
}

// Appends the rows that have entries that the base does not have, or lack some that it has.
void AppendChangedRows(const Delta& delta, std::vector<RowId>* rows) {
  ForEachMember(delta.removed, [&](Position p) { rows->push_back(delta.base_run.row_ids()[p]); });
  ForEachMember(delta.dead_rows, [&](RowId row) { rows->push_back(row); });
  for (const DeltaPart& part : delta.parts) {
    for (size_t p = 0; p < part.segment->size(); ++p) {
      if (!part.removed.Contains(p)) rows->push_back(part.segment->rows()[p]);
    }
  }
}

absl::Status NoMemory(const Delta& delta) {
  return absl::ResourceExhaustedError(
      absl::StrFormat("no memory for the changes of a delta of %d entries", delta.added_entries()));
}

}  // namespace

absl::StatusOr<DeltaChanges> DeltaChanges::SinceBase(std::shared_ptr<const Delta> delta) {
  return Find(nullptr, std::move(delta));
}

absl::StatusOr<DeltaChanges> DeltaChanges::Since(const Delta& since,
                                                 std::shared_ptr<const Delta> delta) {
  if (since.rows != delta->rows) {
    return absl::InvalidArgumentError("the changes between versions of two bases were asked for");
  }
  return Find(&since, std::move(delta));
}

absl::StatusOr<DeltaChanges> DeltaChanges::Find(const Delta* since,
                                                std::shared_ptr<const Delta> delta) {
  try {
    DeltaChanges changes(delta);
    const Delta& now = *changes.delta_;
    // A row that differs between two versions differs in one of them from the base.
    std::vector<RowId>& rows = changes.rows_;
    AppendChangedRows(now, &rows);
    if (since != nullptr) AppendChangedRows(*since, &rows);
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    std::sort(rows.begin(), rows.end(), [&](RowId a, RowId b) { return now.rows->Less(a, b); });

    absl::StatusOr<std::shared_ptr<const DeltaSegment>> added = now.AddedEntries();
    if (!added.ok()) return added.status();
    changes.added_ = *std::move(added);
    if (changes.added_ != nullptr) {
      for (size_t p = 0; p < changes.added_->size(); ++p) {
        changes.added_by_row_.emplace_back(changes.added_->rows()[p], p);
      }
      std::sort(changes.added_by_row_.begin(), changes.added_by_row_.end());
    }
    return changes;
  } catch (const std::bad_alloc&) {
    return NoMemory(*delta);
  }
}

absl::Status DeltaChanges::Append(size_t first, size_t count, RowUpdates* updates) const {
  const absl::Span<const RowId> rows = absl::MakeConstSpan(rows_).subspan(first, count);
  try {
    if (absl::Status s = delta_->PrimaryKeys(rows, &updates->primary_keys); !s.ok()) return s;
    WithPhysicalKey(delta_->base_run.kind(), [&](auto type) {
      using Key = typename decltype(type)::type;
      const auto base_keys = ColumnOf<Key>(delta_->base_run);
      for (RowId row : rows) {
        auto added = std::lower_bound(added_by_row_.begin(), added_by_row_.end(),
                                      std::pair<RowId, Position>(row, 0));
        const auto append_added_below = [&](const Key* end) {
          for (; added != added_by_row_.end() && added->first == row; ++added) {
            const auto keys = ColumnOf<Key>(added_->run());
            if (end != nullptr && keys[added->second] > *end) return;
            keys.Append(added->second, &updates->keys);
          }
        };
        if (row < delta_->base_rows.rows() && delta_->positions != nullptr) {
          for (Position p : (*delta_->positions)[row]) {
            if (delta_->removed.Contains(p)) continue;
            const Key key = base_keys[p];
            append_added_below(&key);
            base_keys.Append(p, &updates->keys);
          }
        }
        append_added_below(nullptr);
        updates->row_ends.push_back(updates->keys.size());
      }
    });
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return NoMemory(*delta_);
  }
}

}  // namespace cairn
