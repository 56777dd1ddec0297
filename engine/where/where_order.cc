#include "engine/where/where_order.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "engine/util/make_room.h"
#include "engine/util/scan_cursor.h"
#include "engine/version/version_ranges.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/query/physical_key.h"
#include "index/run/gallop.h"

namespace cairn {
namespace {

using Kind = WhereNode::Kind;

// Number of entries that are walked before the first test, and its maximum.
constexpr uint64_t kFirstWalk = 256, kMaxWalk = 16384;

}  // namespace

absl::StatusOr<WhereOrder> WhereOrder::Create(const GroupMembers& members,
                                              const WhereSearch& search, size_t member, Order order,
                                              std::string_view after, bool or_at,
                                              const StopCondition& stop) {
  WhereOrder whole(members, search, member, order);
  whole.stop_ = stop;
  for (size_t m = whole.first_; m < whole.end_; ++m) RETURN_IF_ERROR(members[m]->Prepare());
  whole.is_single_ = IsSingle(members, member);
  whole.or_at_ = or_at;
  if (after.empty()) return whole;
  whole.has_cursor_ = true;
  std::string_view primary_key = after.substr(1);
  if (after[0] == kOfAbsent) {
    whole.cursor_is_absent_ = true;
  } else if (after[0] == kOfEntry) {
    ASSIGN_OR_RETURN(const ScanCursor cursor, ScanCursor::Decode(after.substr(1), whole.kind()));
    whole.cursor_number_ = cursor.number;
    whole.cursor_bytes_ = cursor.bytes;
    primary_key = cursor.primary_key;
  } else {
    return absl::InvalidArgumentError("WhereOptions::after: expected a cursor of this order");
  }
  ASSIGN_OR_RETURN(whole.cursor_place_, search.space().PlaceOf(primary_key));
  return whole;
}

const SortedRun& WhereOrder::RunOf(size_t member, uint32_t run) const {
  const Delta& delta = members_[member]->delta();
  return run == 0 ? delta.base_run : delta.parts[run - 1].segment->run();
}

bool WhereOrder::Less(const Entry& a, const Entry& b) const {
  if (a.member != b.member) return a.member < b.member;
  if (a.place != b.place) return a.place < b.place;
  if (a.run == b.run) return a.position < b.position;
  return WithPhysicalKey(kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    const Key x = ColumnOf<Key>(RunOf(a.member, a.run))[a.position];
    const Key y = ColumnOf<Key>(RunOf(b.member, b.run))[b.position];
    return x != y ? x < y : search_.space().Less(a.row, b.row);
  });
}

bool WhereOrder::FirstEntry(RowId row, Entry* first) const {
  // Shards are in key order, so the first shard with an entry of the row has its first entry.
  for (size_t i = first_; i < end_; ++i) {
    const size_t m = descending_ ? end_ - 1 - (i - first_) : i;
    const RowId local = search_.space().ToMember(m, row);
    if (local == kNoRow) continue;
    const GroupMember& member = *members_[m];
    RowEntries::Places places;
    member.AppendPlaces(local, &places);
    for (size_t p = 0; p < places.size(); ++p) {
      const auto [run, position] = places[p];
      const uint64_t place =
          run == 0 ? uint64_t{position} * 2 + 1
                   : uint64_t{member.delta().parts[run - 1].segment->places()[position]} * 2;
      const Entry entry{static_cast<uint32_t>(m), place, run, position, row};
      if (p == 0 || Before(entry, *first)) *first = entry;
    }
    if (!places.empty()) return true;
  }
  return false;
}

size_t WhereOrder::AppendKeys(absl::Span<const RowId> rows, EncodedKeys* keys) const {
  return WithPhysicalKey(kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    size_t count = 0;
    for (Entry entry; count < rows.size() && FirstEntry(rows[count], &entry); ++count) {
      AppendKey<Key>(ColumnOf<Key>(RunOf(entry.member, entry.run))[entry.position], keys);
    }
    return count;
  });
}

int WhereOrder::CompareWithCursor(size_t member, uint32_t run, Position position, RowId row) const {
  return WithPhysicalKey(kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    const Key key = ColumnOf<Key>(RunOf(member, run))[position];
    Key of_cursor;
    if constexpr (std::is_same_v<Key, std::string_view>) {
      of_cursor = cursor_bytes_;
    } else {
      of_cursor = static_cast<Key>(cursor_number_);
    }
    if (key != of_cursor) return key < of_cursor ? -1 : 1;
    return search_.space().Compare(row, cursor_place_);
  });
}

absl::Status WhereOrder::Sort(uint64_t limit, std::vector<RowId>* rows) const {
  std::vector<Entry> entries;
  std::vector<RowId> absent;
  for (size_t i = 0; i < rows->size(); ++i) {
    if (i % kFirstWalk == 0) RETURN_IF_ERROR(stop_.Check());
    const RowId row = (*rows)[i];
    Entry entry;
    if (FirstEntry(row, &entry)) {
      if (IsBehindCursor(entry)) entries.push_back(entry);
    } else if (!cursor_is_absent_ ||
               search_.space().Compare(row, cursor_place_) >= (or_at_ ? 0 : 1)) {
      absent.push_back(row);
    }
  }
  const auto before = [this](const Entry& a, const Entry& b) { return Before(a, b); };
  if (limit < entries.size()) {
    const auto end = entries.begin() + static_cast<std::ptrdiff_t>(limit);
    std::nth_element(entries.begin(), end, entries.end(), before);
    entries.erase(end, entries.end());
  }
  std::sort(entries.begin(), entries.end(), before);
  rows->clear();
  for (const Entry& entry : entries) rows->push_back(entry.row);
  if (rows->size() == limit) return absl::OkStatus();
  search_.Sort(&absent);
  absent.resize(std::min<uint64_t>(absent.size(), limit - rows->size()));
  rows->insert(rows->end(), absent.begin(), absent.end());
  return absl::OkStatus();
}

template <typename Key>
absl::Status WhereOrder::WalkEntries(size_t member, const WhereNode& node, uint64_t limit,
                                     absl::flat_hash_set<RowId>* seen,
                                     std::vector<RowId>* rows) const {
  const Delta& delta = members_[member]->delta();
  const RowSpace& space = search_.space();
  Runs runs = RunsOf(delta);
  const WhereNode* leaf = nullptr;  // all rows of this index satisfy it
  if (const WhereNode* entries = EntriesOf(node, first_, end_); entries != nullptr && is_single_) {
    leaf = LeafOf(*entries, member);
    if (leaf == nullptr) return absl::OkStatus();
  }
  uint64_t left = 0;
  for (size_t r = 0; r < runs.size(); ++r) {
    RunRange& run = runs[r];
    run.end = run.run->size();
    if (leaf != nullptr) {
      const std::vector<PositionRange>& ranges = leaf->set.run(r);
      run.begin = ranges.empty() ? 0 : ranges.front().begin;
      run.end = ranges.empty() ? 0 : ranges.back().end;
    }
    if (has_cursor_) {
      // Returns whether the entry is before the part of the run to walk, which is on one side of
      // the cursor.
      const auto stays = [&](uint64_t position) {
        const int compared =
            CompareWithCursor(member, static_cast<uint32_t>(r), static_cast<Position>(position),
                              space.FromMember(member, run.rows[position]));
        return descending_ == or_at_ ? compared <= 0 : compared < 0;
      };
      (descending_ ? run.end : run.begin) = PartitionPoint(run.begin, run.end, stays);
    }
    left += run.entries();
  }
  RangeMerge<Key> merge(*delta.rows, absl::MakeSpan(runs));
  std::vector<RowId> some;
  bool pass[256];
  for (uint64_t step = kFirstWalk; left > 0 && rows->size() < limit;
       step = std::min(2 * step, kMaxWalk)) {
    RETURN_IF_ERROR(stop_.Check());
    some.resize(std::min(step, left));
    if (descending_) {
      merge.Descend(some.size(), some.data(), nullptr);
    } else {
      merge.Ascend(some.size(), some.data(), nullptr);
    }
    left -= some.size();
    for (RowId& row : some) row = space.FromMember(member, row);
    for (size_t first = 0; first < some.size() && rows->size() < limit; first += std::size(pass)) {
      const auto chunk = absl::MakeConstSpan(some).subspan(first, std::size(pass));
      search_.Test(node, chunk, pass);
      for (size_t i = 0; i < chunk.size() && rows->size() < limit; ++i) {
        if (!pass[i]) continue;
        if (!is_single_) {
          // If this is not the row's first entry, the row has been found already or is before the
          // cursor.
          Entry entry;
          if (!FirstEntry(chunk[i], &entry) || !IsBehindCursor(entry)) continue;
          MakeRoomForOne(seen);
          if (!seen->insert(chunk[i]).second) continue;
        }
        rows->push_back(chunk[i]);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status WhereOrder::Walk(const WhereNode& node, uint64_t limit,
                              std::vector<RowId>* rows) const {
  rows->clear();
  if (node.kind == Kind::kNothing) return absl::OkStatus();
  RETURN_IF_ERROR(search_.Prepare(node));
  absl::flat_hash_set<RowId> seen;
  for (size_t i = first_; i < end_ && rows->size() < limit && !cursor_is_absent_; ++i) {
    const size_t m = descending_ ? end_ - 1 - (i - first_) : i;
    RETURN_IF_ERROR(WithPhysicalKey(kind(), [&](auto type) {
      return WalkEntries<typename decltype(type)::type>(m, node, limit, &seen, rows);
    }));
  }
  if (rows->size() == limit || EntriesOf(node, first_, end_) != nullptr) return absl::OkStatus();
  // Then the rows without entries in this index.
  const uint64_t all = search_.space().end_row();
  std::vector<RowId> absent;
  RETURN_IF_ERROR(search_.Gather(AllOf({node, AbsentRows(members_, first_, all)}, members_, all),
                                 &absent, stop_));
  RETURN_IF_ERROR(Sort(limit - rows->size(), &absent));
  rows->insert(rows->end(), absent.begin(), absent.end());
  return absl::OkStatus();
}

absl::StatusOr<std::string> WhereOrder::CursorBehind(RowId row) const {
  StringList primary_keys;
  RETURN_IF_ERROR(search_.space().PrimaryKeys(absl::MakeConstSpan(&row, 1), &primary_keys));
  EncodedKeys keys(kind());
  AppendKeys(absl::MakeConstSpan(&row, 1), &keys);
  return WhereCursor(keys, 0, primary_keys[0]);
}

std::string WhereCursor(const EncodedKeys& keys, size_t i, std::string_view primary_key) {
  if (i >= keys.size()) return std::string(1, kOfAbsent).append(primary_key);
  std::string cursor(1, kOfEntry);
  ScanCursor::After(keys, i, primary_key).AppendTo(&cursor);
  return cursor;
}

}  // namespace cairn
