#include "engine/delta/renumbered_delta.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/delta/compact_delta.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

// Maps old row ids to new ones; rows of the base keep theirs.
class NewIds {
 public:
  // Keeps the new rows that have entries, and those that are in `changed` and that `since` has.
  NewIds(const Delta& since, const Delta& delta, const DeltaSegment* added,
         const KeysOfRows& changed)
      : old_rows_(*delta.rows),
        base_end_(old_rows_.base_rows()),
        ids_(delta.end_row - base_end_, kNoRow) {
    std::vector<bool> is_left(ids_.size());
    const auto keep = [&](RowId row) {
      if (row >= base_end_) is_left[row - base_end_] = true;
    };
    if (added != nullptr) std::for_each(added->rows().begin(), added->rows().end(), keep);
    for (const RowId row : changed.rows) {
      if (row < since.end_row) keep(row);
    }
    std::vector<RowId> known, others;
    for (RowId row = base_end_; row < delta.end_row; ++row) {
      if (is_left[row - base_end_]) (row < since.end_row ? known : others).push_back(row);
    }
    rows_ = std::make_shared<DeltaRows>(base_end_);
    Append(std::move(known));
    known_end_ = rows_->end();
    Append(std::move(others));
  }

  // Returns kNoRow for a row that is not kept.
  RowId operator[](RowId row) const { return row < base_end_ ? row : ids_[row - base_end_]; }
  const std::shared_ptr<DeltaRows>& rows() const { return rows_; }
  // The end of the kept rows that `since` has.
  RowId known_end() const { return known_end_; }

 private:
  void Append(std::vector<RowId> rows) {
    const auto less = [this](RowId a, RowId b) { return old_rows_.Less(a, b); };
    // Rows mostly arrive in primary-key order.
    if (!std::is_sorted(rows.begin(), rows.end(), less)) std::sort(rows.begin(), rows.end(), less);
    for (const RowId row : rows) {
      ids_[row - base_end_] = rows_->Append(old_rows_.primary_key(row), old_rows_.rank(row));
    }
  }

  const DeltaRows& old_rows_;
  const RowId base_end_;
  std::vector<RowId> ids_;  // of new rows
  std::shared_ptr<DeltaRows> rows_;
  RowId known_end_ = 0;
};

// Returns the last tuple of each row with entries; null if the index includes no columns.
std::shared_ptr<DeltaTuples> LastTuples(const Delta& delta, const DeltaSegment* added,
                                        const NewIds& ids) {
  if (delta.tuples == nullptr) return nullptr;
  auto tuples = std::make_shared<DeltaTuples>();
  if (added == nullptr) return tuples;
  for (const RowId row : added->rows()) {
    const RowId id = ids[row];
    if (tuples->Find(id).has_value()) continue;  // a row has several entries
    const std::optional<std::string_view> tuple = delta.Tuple(row);
    if (tuple.has_value()) tuples->Append(id, *tuple);
  }
  return tuples;
}

template <typename Key>
absl::StatusOr<std::shared_ptr<const DeltaSegment>> WithIds(const DeltaSegment& added,
                                                            const NewIds& ids,
                                                            uint64_t base_entries,
                                                            uint32_t end_tuple) {
  const auto column = ColumnOf<Key>(added.run());
  std::vector<DeltaEntry<Key>> entries(added.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    entries[i] = {column[i], ids[added.rows()[i]], added.places()[i]};
  }
  return DeltaSegment::Build<Key>(entries, base_entries, end_tuple);
}

KeysOfRows WithIds(const KeysOfRows& changed, const NewIds& ids) {
  KeysOfRows renumbered(changed.keys.kind());
  WithPhysicalKey(changed.keys.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    for (size_t i = 0; i < changed.rows.size(); ++i) {
      const RowId id = ids[changed.rows[i]];
      if (id == kNoRow) continue;
      for (uint64_t k = changed.KeysBegin(i); k < changed.key_ends[i]; ++k) {
        AppendKey(KeyAt<Key>(changed.keys, k), &renumbered.keys);
      }
      renumbered.EndRow(id);
    }
  });
  return renumbered;
}

}  // namespace

absl::StatusOr<RenumberedDelta> RenumberDelta(const Delta& since, const Delta& delta) {
  if (!since.place->IsUpTo(*delta.place)) {
    return absl::InvalidArgumentError(
        "renumbering rows: expected an earlier and a later version of one delta");
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const DeltaSegment> added, delta.AddedEntries());
  const PhysicalType kind = delta.base_run.kind();
  const KeysOfRows changed = ChangeLog::Between(*since.place, *delta.place, kind);
  const NewIds ids(since, delta, added.get(), changed);

  RenumberedDelta renumbered;
  renumbered.rows = ids.rows();
  renumbered.tuples = LastTuples(delta, added.get(), ids);
  auto next = std::make_shared<Delta>(delta);
  next->compact = std::make_shared<CompactDelta>();
  next->removed_positions = nullptr;
  next->rows = renumbered.rows;
  next->end_row = renumbered.rows->end();
  next->tuples = renumbered.tuples;
  if (renumbered.tuples != nullptr) {
    next->end_tuple = renumbered.tuples->end();
    next->tuple_rows = renumbered.tuples->rows();
  }
  next->parts.clear();
  if (added != nullptr) {
    ASSIGN_OR_RETURN(std::shared_ptr<const DeltaSegment> segment,
                     WithPhysicalKey(kind, [&](auto type) {
                       using Key = typename decltype(type)::type;
                       return WithIds<Key>(*added, ids, next->base_run.size(), next->end_tuple);
                     }));
    PositionSet none(segment->size());
    next->parts.push_back({std::move(segment), std::move(none)});
  }

  next->place = ChangeLog::Begin();
  renumbered.delta = next;
  renumbered.since = next;
  if (changed.rows.empty()) return renumbered;
  auto before = std::make_shared<Delta>();
  before->base_run = next->base_run;
  before->base_rows = next->base_rows;
  before->base_columns = next->base_columns;
  before->rows = next->rows;
  before->end_row = ids.known_end();
  before->tuples = next->tuples;
  before->place = next->place;
  next->place = ChangeLog::Append(*before->place, WithIds(changed, ids));
  renumbered.since = std::move(before);
  return renumbered;
}

}  // namespace cairn
