#include "engine/delta/delta_writer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "cpu_fast/simd/key_filter.h"
#include "engine/delta/change_log.h"
#include "engine/delta/compact_delta.h"
#include "engine/delta/delta.h"
#include "engine/delta/delta_rows.h"
#include "engine/delta/delta_segment.h"
#include "engine/delta/new_row_ids.h"
#include "engine/delta/new_row_order.h"
#include "engine/delta/renumbered_delta.h"
#include "engine/delta/row_keys.h"
#include "engine/delta/update_rows.h"
#include "engine/util/sorted_order.h"
#include "index/machine/guard.h"
#include "index/machine/mutex.h"
#include "index/machine/prefetch.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"
#include "index/run/gallop.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

// Removes entries from the parts of *next that contain them. Errors: Internal if no part has an
// entry. Key is uint32_t, uint64_t or std::string_view.
template <typename Key>
absl::Status TakeEntries(std::vector<DeltaEntry<Key>> taken, const DeltaRows& rows, Delta* next) {
  std::vector<Key> keys;
  std::vector<uint64_t> hashes;
  std::vector<Position> first, removed;
  for (size_t i = next->parts.size(); i-- > 0 && !taken.empty();) {
    DeltaPart& part = next->parts[i];
    const DeltaSegment& segment = *part.segment;
    const auto column = ColumnOf<Key>(segment.run());
    keys.resize(taken.size());
    hashes.resize(taken.size());
    for (size_t k = 0; k < keys.size(); ++k) {
      keys[k] = taken[k].key;
      hashes[k] = KeyFilter::Hash(keys[k]);
    }
    first.resize(taken.size());
    segment.Prefetch(hashes);
    RETURN_IF_ERROR(segment.FindFirst<Key>(keys, hashes, absl::MakeSpan(first)));
    removed.clear();
    size_t left = 0;
    for (size_t k = 0; k < taken.size(); ++k) {
      const auto& [key, row, place] = taken[k];
      size_t p = segment.size();
      if (first[k] != DeltaSegment::kNone) {
        p = Gallop(first[k], segment.size(), [&, key = key, row = row](size_t at) {
          return column[at] == key && rows.Less(segment.rows()[at], row);
        });
      }
      if (p < segment.size() && column[p] == key && segment.rows()[p] == row &&
          !part.removed.Contains(p)) {
        removed.push_back(static_cast<Position>(p));
      } else {
        taken[left++] = taken[k];
      }
    }
    taken.resize(left);
    part.removed = part.removed.With(removed, {});
  }
  if (taken.empty()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrFormat("%d removed entries are in no segment of the delta", taken.size()));
}

// Sets [begin[i], end[i]) to the entries with keys[i] in the run of `index`. Key is uint32_t,
// uint64_t or std::string_view.
template <typename Key>
absl::Status FindRuns(const OrderedIndex& index, absl::Span<const Key> keys,
                      absl::Span<Position> begin, absl::Span<Position> end) {
  if constexpr (std::is_same_v<Key, std::string_view>) {
    return index.Execute(Batch::EqualRange(keys, begin, end));
  } else {
    // A run that has more entries ends where the next greater key would begin. A search for that
    // key reads fewer cache lines than galloping through the run does.
    constexpr uint64_t kShortRun = 4;
    RETURN_IF_ERROR(index.Execute(Batch::LowerBound(keys, begin)));
    const auto column = ColumnOf<Key>(index.run());
    const uint64_t entries = index.run().size();
    PrefetchKeys(column, entries, begin);
    std::vector<Key> next_keys;
    std::vector<size_t> in_long_runs;
    for (size_t i = 0; i < keys.size(); ++i) {
      const uint64_t bound = std::min(begin[i] + kShortRun, entries);
      end[i] = static_cast<Position>(PartitionPoint<uint64_t>(
          begin[i], bound, [&](size_t p) { return column[p] == keys[i]; }));
      if (end[i] < bound || end[i] == entries) continue;
      in_long_runs.push_back(i);
      next_keys.push_back(keys[i] + 1);
    }
    std::vector<Position> ends(next_keys.size());
    RETURN_IF_ERROR(index.Execute(Batch::LowerBound(next_keys, absl::MakeSpan(ends))));
    // The greatest key has no next one. Its run ends with the last entry.
    for (size_t i = 0; i < ends.size(); ++i) {
      end[in_long_runs[i]] = next_keys[i] == 0 ? static_cast<Position>(entries) : ends[i];
    }
    return absl::OkStatus();
  }
}

// A segment is merged with the entries after it unless it is at least this many times larger. A
// larger ratio makes fewer segments, but copies an entry more often: with 4, updates take 8% to 15%
// longer (Delta/apply), and queries are not faster (Delta/first, find, count, scan).
constexpr uint64_t kSegmentRatio = 2;
// Rows whose reads are in flight at the same time.
constexpr size_t kAhead = 32;
// A writer keeps the memory for the rows of a batch, and uses it for the next batch. This is the
// maximum number of rows for which it does so.
constexpr size_t kMaxKeptRows = size_t{1} << 20;

template <typename Key>
class TypedDeltaWriter final : public DeltaWriter {
 public:
  TypedDeltaWriter(std::shared_ptr<const Delta> delta, std::shared_ptr<DeltaRows> rows,
                   std::shared_ptr<DeltaTuples> tuples, int threads)
      : DeltaWriter(std::move(delta)),
        rows_(std::move(rows)),
        tuples_(std::move(tuples)),
        threads_(threads),
        new_rows_(rows_.get()),
        new_row_order_(rows_.get()),
        row_keys_(rows_->base_rows()) {}

  absl::StatusOr<std::shared_ptr<const Delta>> Apply(const RowUpdates& updates) override {
    const MutexLock lock(&mutex_);
    absl::StatusOr<std::shared_ptr<const Delta>> next = Guarded("applying updates of rows", [&] {
      if (stale_) Restore();
      return Next(updates);
    });
    stale_ = !next.ok();
    if (update_rows_.capacity() > kMaxKeptRows) update_rows_ = {};
    if (next.ok()) Publish(*next);
    return next;
  }

  void RollBack(std::shared_ptr<const Delta> delta) override {
    const MutexLock lock(&mutex_);
    Publish(std::move(delta));
    TakeBack();
    filter_ = nullptr;  // it may lack keys that were removed since
    stale_ = true;
  }

  absl::StatusOr<Renumbered> Renumber(const Delta& since, const Delta& delta,
                                      Sharing sharing) override {
    return Guarded("renumbering the rows of a delta",
                   [&] { return RenumberRows(since, delta, sharing); });
  }

 private:
  using Entries = std::vector<DeltaEntry<Key>>;

  // The effects of a batch on a version, computed before anything is applied. Byte-string keys are
  // views into the updates, or into row_keys_ for removed entries.
  struct Changes {
    std::vector<Position> removed, restored;  // entries of the base
    Entries added, taken;                     // entries of the delta; `added` is by primary key
    std::vector<uint64_t> hashes;             // of the keys of added and removed entries
    std::vector<RowId> died, revived;         // rows of the base
    uint64_t new_rows_died = 0, new_rows_revived = 0;
    // The rows whose keys in the delta change: row id, and the end of its keys in `keys`.
    std::vector<std::pair<RowId, size_t>> rows;
    std::vector<Key> keys;
    KeysOfRows all{kKindOf<Key>};  // rows whose keys change, in the base or the delta
  };

  absl::StatusOr<std::shared_ptr<const Delta>> Next(const RowUpdates& updates);
  absl::Status FindChanges(const RowUpdates& updates, const Delta& version, Changes* changes);
  void Change(const Delta& version, RowId row, absl::Span<const Key> wanted, bool anew,
              Changes* changes);
  absl::Status AddEntries(const Entries& added, Delta* next) const;
  absl::Status FindPlaces(const Delta& version, absl::Span<DeltaEntry<Key>> entries) const;
  void AddToFilter(const Changes& changes, const Delta& version, Delta* next);
  absl::StatusOr<Renumbered> RenumberRows(const Delta& since, const Delta& delta, Sharing sharing);

  // Removes the rows and changes after the latest version.
  void TakeBack();
  // After an error, rebuilds the writer's own structures from the version.
  void Restore();

  Mutex mutex_;  // guards the members below
  std::shared_ptr<DeltaRows> rows_;
  std::shared_ptr<DeltaTuples> tuples_;  // null unless the index includes columns
  const int threads_;
  bool stale_ = false;
  // Both are null before the first update.
  std::shared_ptr<const RowFinder> finder_;
  std::shared_ptr<const OrderedIndex> base_index_;
  NewRowIds new_rows_;
  NewRowOrder new_row_order_;
  RowKeys<Key> row_keys_;
  std::shared_ptr<KeyFilter> filter_;   // the version's
  std::vector<UpdateRow> update_rows_;  // scratch, as are the next two
  std::vector<Key> wanted_, lacking_;
};

template <typename Key>
absl::StatusOr<std::shared_ptr<const Delta>> TypedDeltaWriter<Key>::Next(
    const RowUpdates& updates) {
  const std::shared_ptr<const Delta> version = delta();
  RETURN_IF_ERROR(CheckIsOf(kKindOf<Key>, tuples_ != nullptr, updates));
  auto next = std::make_shared<Delta>(*version);
  next->compact = std::make_shared<CompactDelta>();
  if (finder_ == nullptr) {
    ASSIGN_OR_RETURN(finder_, RowFinder::Build(next->base_rows, threads_));
  }
  if (base_index_ == nullptr) {
    ASSIGN_OR_RETURN(std::unique_ptr<const OrderedIndex> index, MakeCheapIndex(next->base_run));
    base_index_ = std::move(index);
  }
  if (next->positions == nullptr) {
    ASSIGN_OR_RETURN(std::shared_ptr<const RowPositions> positions,
                     RowPositions::Build(next->base_run, next->base_rows.rows(), threads_));
    next->positions = std::move(positions);
  }
  Changes changes;
  RETURN_IF_ERROR(FindChanges(updates, *next, &changes));

  AddToFilter(changes, *version, next.get());
  next->removed = next->removed.With(changes.removed, changes.restored);
  next->dead_rows = next->dead_rows.With(changes.died, changes.revived);
  RETURN_IF_ERROR(TakeEntries<Key>(std::move(changes.taken), *rows_, next.get()));
  RETURN_IF_ERROR(AddEntries(changes.added, next.get()));
  next->end_row = rows_->end();
  if (tuples_ != nullptr) {
    next->end_tuple = tuples_->end();
    next->tuple_rows = tuples_->rows();
  }
  if (!changes.all.rows.empty()) {
    next->place = ChangeLog::Append(*version->place, std::move(changes.all));
  }
  next->live_new_rows += changes.new_rows_revived - changes.new_rows_died;
  size_t begin = 0;
  for (size_t i = 0; i < changes.rows.size(); ++i) {
    if (i + kAhead < changes.rows.size()) row_keys_.Prefetch(changes.rows[i + kAhead].first);
    const auto& [row, end] = changes.rows[i];
    row_keys_.Set(row, absl::MakeConstSpan(changes.keys).subspan(begin, end - begin));
    begin = end;
  }
  return next;
}

template <typename Key>
absl::Status TypedDeltaWriter<Key>::FindChanges(const RowUpdates& updates, const Delta& version,
                                                Changes* changes) {
  RETURN_IF_ERROR(FindUpdateRows(updates, *finder_, new_rows_, &update_rows_));
  const RowId base_end = rows_->base_rows();
  const auto of_base = [&](RowId row) { return row < base_end; };
  const size_t size = update_rows_.size();
  for (size_t i = 0; i < size + kAhead; ++i) {
    // Reads are prefetched in two steps, each kAhead / 2 rows before the next.
    if (i < size && update_rows_[i].row != kNoRow) {
      row_keys_.Prefetch(update_rows_[i].row);
      if (of_base(update_rows_[i].row)) version.positions->Prefetch(update_rows_[i].row);
    }
    if (i >= kAhead / 2 && i - kAhead / 2 < size && of_base(update_rows_[i - kAhead / 2].row)) {
      for (Position p : (*version.positions)[update_rows_[i - kAhead / 2].row]) {
        ColumnOf<Key>(version.base_run).PrefetchKey(p);
        version.removed.Prefetch(p);
      }
    }
    if (i < kAhead) continue;
    UpdateRow& row = update_rows_[i - kAhead];
    const uint64_t begin = row.update == 0 ? 0 : updates.row_ends[row.update - 1];
    const uint64_t end = updates.row_ends[row.update];
    wanted_.clear();
    for (uint64_t k = begin; k < end; ++k) wanted_.push_back(KeyAt<Key>(updates.keys, k));
    if (wanted_.size() > 1) {
      std::sort(wanted_.begin(), wanted_.end());
      wanted_.erase(std::unique(wanted_.begin(), wanted_.end()), wanted_.end());
    }
    if (row.row == kNoRow) {
      if (wanted_.empty()) continue;
      if (rows_->end() >= kMaxEntries) {
        return absl::ResourceExhaustedError(absl::StrFormat(
            "an index can have at most %d rows, including rows that were added since its base",
            kMaxEntries));
      }
      row.row = rows_->Append(row.primary_key, row.rank);
      new_rows_.Add(row.row);
    }
    bool anew = false;
    if (tuples_ != nullptr && !wanted_.empty()) {
      ASSIGN_OR_RETURN(anew, tuples_->Give(row.row, updates.tuples[row.update]));
    }
    Change(version, row.row, wanted_, anew, changes);
  }
  return ForEachDeletedRow(updates, *finder_, version.dead_rows, &new_row_order_, update_rows_,
                           [&](RowId row) { Change(version, row, {}, false, changes); });
}

// Finds the changes that give `row` the keys `wanted`, which ascend. If `anew`, all entries of the
// row are replaced by new ones.
template <typename Key>
void TypedDeltaWriter<Key>::Change(const Delta& version, RowId row, absl::Span<const Key> wanted,
                                   bool anew, Changes* changes) {
  const bool of_base = row < rows_->base_rows();
  // Entries of the base are valid only for rows with the base's values.
  const bool leaves_base = tuples_ != nullptr && tuples_->Find(row).has_value();
  const absl::Span<const Key> in_delta = row_keys_.Find(row);
  bool had_entries = !in_delta.empty();
  const bool has_entries = !wanted.empty();

  // Keys that the row has in the base are removed or restored there. The delta gets the others.
  lacking_.clear();
  size_t next = 0;
  bool changed = false;  // anything
  if (of_base) {
    const auto column = ColumnOf<Key>(version.base_run);
    for (Position p : (*version.positions)[row]) {
      const Key key = column[p];
      while (next < wanted.size() && wanted[next] < key) lacking_.push_back(wanted[next++]);
      const bool wants = !leaves_base && next < wanted.size() && wanted[next] == key;
      const bool has = !version.removed.Contains(p);
      next += wants ? 1 : 0;
      had_entries |= has;
      changed |= has != wants;
      if (has && !wants) {
        changes->removed.push_back(p);
        changes->hashes.push_back(KeyFilter::Hash(key));
      }
      if (wants && !has) changes->restored.push_back(p);
    }
  }
  lacking_.insert(lacking_.end(), wanted.begin() + static_cast<ptrdiff_t>(next), wanted.end());

  bool delta_changed = false;
  auto has = in_delta.begin();
  for (const Key& key : lacking_) {
    for (; has != in_delta.end() && (anew || *has < key); ++has, delta_changed = true) {
      changes->taken.push_back({*has, row});
    }
    if (has != in_delta.end() && *has == key) {
      ++has;
    } else {
      changes->added.push_back({key, row});
      changes->hashes.push_back(KeyFilter::Hash(key));
      delta_changed = true;
    }
  }
  for (; has != in_delta.end(); ++has, delta_changed = true) changes->taken.push_back({*has, row});
  if (delta_changed) {
    changes->keys.insert(changes->keys.end(), lacking_.begin(), lacking_.end());
    changes->rows.emplace_back(row, changes->keys.size());
  }

  if (!of_base) {
    if (has_entries && !had_entries) {
      ++changes->new_rows_revived;
      new_row_order_.Add(row);
    }
    changes->new_rows_died += had_entries && !has_entries ? 1 : 0;
  } else if (!has_entries) {
    changed |= !version.dead_rows.Contains(row);  // even if the row had no entries
    if (!version.dead_rows.Contains(row)) changes->died.push_back(row);
  } else if (!version.dead_rows.empty() && version.dead_rows.Contains(row)) {
    changes->revived.push_back(row);
  }
  if (!changed && !delta_changed) return;
  for (const Key& key : wanted) AppendKey(key, &changes->all.keys);
  changes->all.EndRow(row);
}

// Makes one segment of `added`, which is sorted by primary key, and of the last segments that are
// too small to keep or have lost too many entries.
template <typename Key>
absl::Status TypedDeltaWriter<Key>::AddEntries(const Entries& added, Delta* next) const {
  std::vector<DeltaPart>& parts = next->parts;
  size_t first = parts.size();
  uint64_t behind = added.size();  // entries of `added` and of the parts after part `i`
  for (size_t i = parts.size(); i-- > 0;) {
    const uint64_t entries = parts[i].entries();
    const bool much_removed = 2 * entries < parts[i].segment->size();
    if (entries < kSegmentRatio * behind || much_removed) first = i;
    behind += entries;
  }

  std::vector<Key> keys(added.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = added[i].key;
  const std::vector<uint32_t> order = SortedOrder<Key>(keys);
  Entries entries(added.size());
  for (size_t i = 0; i < entries.size(); ++i) entries[i] = added[order[i]];
  RETURN_IF_ERROR(FindPlaces(*next, absl::MakeSpan(entries)));
  for (size_t i = parts.size(); i-- > first;) MergePart(parts[i], *rows_, &entries);

  absl::StatusOr<std::shared_ptr<const DeltaSegment>> segment = nullptr;
  if (!entries.empty()) {
    segment = DeltaSegment::Build<Key>(entries, next->base_run.size(),
                                       tuples_ == nullptr ? 0 : tuples_->end());
  }
  if (!segment.ok()) return segment.status();
  if (first == parts.size() && entries.empty()) return absl::OkStatus();
  parts.resize(first);
  if (!entries.empty()) parts.push_back({*segment, PositionSet(entries.size())});
  return absl::OkStatus();
}

// Sets the places of new entries among the base's entries. The new entries are in order.
template <typename Key>
absl::Status TypedDeltaWriter<Key>::FindPlaces(const Delta& version,
                                               absl::Span<DeltaEntry<Key>> entries) const {
  std::vector<Key> keys(entries.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = entries[i].key;
  std::vector<Position> places(entries.size()), ends(entries.size());
  RETURN_IF_ERROR(FindRuns<Key>(*base_index_, keys, absl::MakeSpan(places), absl::MakeSpan(ends)));
  const absl::Span<const RowId> rows = version.base_run.row_ids();
  for (size_t i = 0; i < ends.size(); ++i) {
    if (places[i] < ends[i]) Prefetch(rows.data() + ends[i] - 1);
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto precedes = [&, row = entries[i].row](size_t p) { return rows_->Less(rows[p], row); };
    // Newer rows mostly have greater primary keys as well.
    const bool at_end = places[i] == ends[i] || precedes(ends[i] - 1);
    entries[i].place = at_end ? ends[i] : PartitionPoint(places[i], ends[i] - 1, precedes);
  }
  return absl::OkStatus();
}

// Adds the keys of all added and removed entries. If the filter is full, builds a new one for twice
// the number of changed keys; it leaves out entries that were added and then removed.
template <typename Key>
void TypedDeltaWriter<Key>::AddToFilter(const Changes& changes, const Delta& version, Delta* next) {
  const uint64_t more = changes.hashes.size();
  if (more == 0) return;
  if (filter_ == nullptr || filter_->size() + more > filter_->capacity()) {
    const uint64_t there = version.removed.size() + version.added_entries();
    filter_ = std::make_shared<KeyFilter>(2 * (there + more));
    const auto column = ColumnOf<Key>(version.base_run);
    const uint64_t end = version.base_run.size();
    for (uint64_t p = version.removed.FirstMember(0, end); p < end;
         p = version.removed.FirstMember(p + 1, end)) {
      filter_->Add(KeyFilter::Hash(column[p]));
    }
    for (const DeltaPart& part : version.parts) {
      const auto keys = ColumnOf<Key>(part.segment->run());
      for (uint64_t p = 0; p < part.segment->size(); ++p) {
        if (!part.removed.Contains(p)) filter_->Add(KeyFilter::Hash(keys[p]));
      }
    }
  }
  for (uint64_t hash : changes.hashes) filter_->Add(hash);
  next->filter = filter_;
}

template <typename Key>
void TypedDeltaWriter<Key>::TakeBack() {
  const std::shared_ptr<const Delta> version = delta();
  rows_->Truncate(version->end_row);
  if (tuples_ != nullptr) tuples_->TakeBack(version->end_tuple);
  ChangeLog::Truncate(*version->place);
}

template <typename Key>
void TypedDeltaWriter<Key>::Restore() {
  TakeBack();
  const std::shared_ptr<const Delta> version = delta();
  new_rows_.Clear();
  new_row_order_.Clear();
  row_keys_.Clear();
  for (RowId row = rows_->base_rows(); row < version->end_row; ++row) new_rows_.Add(row);
  const absl::StatusOr<std::shared_ptr<const DeltaSegment>> added = version->AddedEntries();
  if (!added.ok()) throw std::bad_alloc();
  if (*added == nullptr) return;
  const auto column = ColumnOf<Key>((*added)->run());
  std::vector<uint64_t> by_row((*added)->size());  // row id, position
  for (size_t p = 0; p < by_row.size(); ++p) by_row[p] = uint64_t{(*added)->rows()[p]} << 32 | p;
  std::sort(by_row.begin(), by_row.end());
  std::vector<Key> keys;  // of one row
  for (size_t i = 0; i < by_row.size(); ++i) {
    keys.push_back(column[static_cast<uint32_t>(by_row[i])]);
    const RowId row = static_cast<RowId>(by_row[i] >> 32);
    if (i + 1 < by_row.size() && by_row[i + 1] >> 32 == row) continue;
    row_keys_.Set(row, keys);
    keys.clear();
  }
}

template <typename Key>
absl::StatusOr<DeltaWriter::Renumbered> TypedDeltaWriter<Key>::RenumberRows(const Delta& since,
                                                                            const Delta& delta,
                                                                            Sharing sharing) {
  ASSIGN_OR_RETURN(RenumberedDelta next, RenumberDelta(since, delta));
  if (sharing == Sharing::kNone) {
    next.delta->removed = next.delta->removed.Copy();
    next.delta->dead_rows = next.delta->dead_rows.Copy();
  }
  auto writer = std::make_unique<TypedDeltaWriter>(std::move(next.delta), std::move(next.rows),
                                                   std::move(next.tuples), threads_);
  writer->stale_ = true;  // the first Apply reads the rest from the version
  const MutexLock lock(&mutex_);
  writer->finder_ = finder_;
  writer->base_index_ = base_index_;
  return Renumbered{std::move(writer), std::move(next.since)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeltaWriter>> DeltaWriter::Create(SortedRun base_run,
                                                                 RowTable base_rows, int threads,
                                                                 ColumnTable base_columns) try {
  auto rows = std::make_shared<DeltaRows>(static_cast<RowId>(base_rows.rows()));
  auto delta = std::make_shared<Delta>();
  delta->removed = PositionSet(base_run.size());
  delta->dead_rows = PositionSet(base_rows.rows());
  delta->rows = rows;
  auto tuples = base_columns.columns().empty() ? nullptr : std::make_shared<DeltaTuples>();
  delta->tuples = tuples;
  delta->end_row = rows->end();
  delta->place = ChangeLog::Begin();
  delta->base_run = std::move(base_run);
  delta->base_rows = std::move(base_rows);
  delta->base_columns = std::move(base_columns);
  return WithPhysicalKey(delta->base_run.kind(),
                         [&](auto type) -> absl::StatusOr<std::unique_ptr<DeltaWriter>> {
                           using Key = typename decltype(type)::type;
                           return std::make_unique<TypedDeltaWriter<Key>>(
                               delta, std::move(rows), std::move(tuples), threads);
                         });
} catch (...) {
  return StatusOfException("making a delta");
}

}  // namespace cairn
