#include "engine/where/where_order.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "engine/util/make_room.h"
#include "engine/util/scan_cursor.h"
#include "engine/version/version_ranges.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

using Kind = WhereNode::Kind;
using Mode = WhereNode::Mode;

// What a cursor begins with: of an entry, or of a row without any.
constexpr char kOfEntry = 'e';
constexpr char kOfAbsent = 'n';
// Entries that are walked before the first are tested, and at most.
constexpr uint64_t kFirstWalk = 256, kMostWalk = 16384;

// A leaf of `member` that all rows satisfy, or null.
const WhereNode* LeafOf(const WhereNode& node, size_t member) {
  if (node.kind == Kind::kLeaf && node.member == member && node.mode == Mode::kSome) return &node;
  if (node.kind != Kind::kAnd) return nullptr;
  for (const WhereNode& child : node.children) {
    if (child.kind == Kind::kLeaf && child.member == member && child.mode == Mode::kSome) {
      return &child;
    }
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<WhereOrder> WhereOrder::Create(const GroupMembers& members,
                                              const WhereSearch& search, size_t member, Order order,
                                              std::string_view after) {
  WhereOrder whole(members, search, member, order);
  RETURN_IF_ERROR(whole.member_.Prepare());
  if (after.empty()) return whole;
  whole.has_cursor_ = true;
  std::string_view primary_key = after.substr(1);
  if (after[0] == kOfAbsent) {
    whole.cursor_is_absent_ = true;
  } else if (after[0] == kOfEntry) {
    ASSIGN_OR_RETURN(const ScanCursor cursor,
                     ScanCursor::Decode(after.substr(1), whole.member_.codec().kind()));
    whole.cursor_number_ = cursor.number;
    whole.cursor_bytes_ = cursor.bytes;
    primary_key = cursor.primary_key;
  } else {
    return absl::InvalidArgumentError("WhereOptions::after: not a cursor of this order");
  }
  ASSIGN_OR_RETURN(whole.cursor_place_, search.space().PlaceOf(primary_key));
  return whole;
}

const SortedRun& WhereOrder::RunOf(uint32_t run) const {
  const Delta& delta = member_.delta();
  return run == 0 ? delta.base_run : delta.parts[run - 1].segment->run();
}

bool WhereOrder::Less(const Entry& a, const Entry& b) const {
  if (a.place != b.place) return a.place < b.place;
  if (a.run == b.run) return a.position < b.position;
  return WithPhysicalKey(RunOf(0).kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    const Key x = ColumnOf<Key>(RunOf(a.run))[a.position];
    const Key y = ColumnOf<Key>(RunOf(b.run))[b.position];
    return x != y ? x < y : search_.space().Less(a.row, b.row);
  });
}

bool WhereOrder::FirstEntry(RowId row, Entry* first) const {
  const RowId local = search_.space().ToMember(number_, row);
  if (local == kNoRow) return false;
  absl::InlinedVector<GroupMember::Place, 4> places;
  member_.AppendPlaces(local, &places);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto [run, position] = places[i];
    const uint64_t place =
        run == 0 ? uint64_t{position} * 2 + 1
                 : uint64_t{member_.delta().parts[run - 1].segment->places()[position]} * 2;
    const Entry entry{place, run, position, row};
    if (i == 0 || Before(entry, *first)) *first = entry;
  }
  return !places.empty();
}

int WhereOrder::CompareWithCursor(uint32_t run, Position position, RowId row) const {
  return WithPhysicalKey(RunOf(0).kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    const Key key = ColumnOf<Key>(RunOf(run))[position];
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

void WhereOrder::Sort(uint64_t limit, std::vector<RowId>* rows) const {
  std::vector<Entry> entries;
  std::vector<RowId> absent;
  for (const RowId row : *rows) {
    Entry entry;
    if (FirstEntry(row, &entry)) {
      if (IsBehindCursor(entry)) entries.push_back(entry);
    } else if (!cursor_is_absent_ || search_.space().Compare(row, cursor_place_) > 0) {
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
  if (rows->size() == limit) return;
  search_.Sort(&absent);
  absent.resize(std::min<uint64_t>(absent.size(), limit - rows->size()));
  rows->insert(rows->end(), absent.begin(), absent.end());
}

template <typename Key>
absl::Status WhereOrder::WalkEntries(const WhereNode& node, uint64_t limit,
                                     std::vector<RowId>* rows) const {
  const Delta& delta = member_.delta();
  const RowSpace& space = search_.space();
  Runs runs = RunsOf(delta);
  const WhereNode* const leaf = member_.is_single() ? LeafOf(node, number_) : nullptr;
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
      // How many entries of the run come before the cursor, or not behind it.
      const auto stays = [&](uint64_t position) {
        const int compared =
            CompareWithCursor(static_cast<uint32_t>(r), static_cast<Position>(position),
                              space.FromMember(number_, run.rows[position]));
        return descending_ ? compared < 0 : compared <= 0;
      };
      uint64_t begin = run.begin, end = run.end;
      while (begin < end) {
        const uint64_t middle = begin + (end - begin) / 2;
        if (stays(middle)) {
          begin = middle + 1;
        } else {
          end = middle;
        }
      }
      (descending_ ? run.end : run.begin) = begin;
    }
    left += run.entries();
  }
  RangeMerge<Key> merge(*delta.rows, absl::MakeSpan(runs));
  absl::flat_hash_set<RowId> seen;
  std::vector<RowId> some;
  bool pass[256];
  for (uint64_t step = kFirstWalk; left > 0 && rows->size() < limit;
       step = std::min(2 * step, kMostWalk)) {
    some.resize(std::min(step, left));
    if (descending_) {
      merge.Descend(some.size(), some.data(), nullptr);
    } else {
      merge.Ascend(some.size(), some.data(), nullptr);
    }
    left -= some.size();
    for (RowId& row : some) row = space.FromMember(number_, row);
    for (size_t first = 0; first < some.size() && rows->size() < limit; first += std::size(pass)) {
      const auto chunk = absl::MakeConstSpan(some).subspan(first, std::size(pass));
      search_.Test(node, chunk, pass);
      for (size_t i = 0; i < chunk.size() && rows->size() < limit; ++i) {
        if (!pass[i]) continue;
        if (!member_.is_single()) {
          // Where it is not the row's first entry, the row is there already, or before the cursor.
          Entry entry;
          if (!FirstEntry(chunk[i], &entry) || !IsBehindCursor(entry)) continue;
          MakeRoomForOne(&seen);
          if (!seen.insert(chunk[i]).second) continue;
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
  if (!cursor_is_absent_) {
    RETURN_IF_ERROR(WithPhysicalKey(RunOf(0).kind(), [&](auto type) {
      return WalkEntries<typename decltype(type)::type>(node, limit, rows);
    }));
  }
  if (rows->size() == limit || LeafOf(node, number_) != nullptr) return absl::OkStatus();
  // Then those without entries here.
  const uint64_t all = search_.space().end_row();
  std::vector<RowId> absent;
  RETURN_IF_ERROR(
      search_.Gather(AllOf({node, AbsentRows(members_, number_, all)}, members_, all), &absent));
  Sort(limit - rows->size(), &absent);
  rows->insert(rows->end(), absent.begin(), absent.end());
  return absl::OkStatus();
}

absl::StatusOr<std::string> WhereOrder::CursorBehind(RowId row) const {
  StringList keys;
  RETURN_IF_ERROR(search_.space().PrimaryKeys(absl::MakeConstSpan(&row, 1), &keys));
  Entry entry;
  if (!FirstEntry(row, &entry)) return std::string(1, kOfAbsent).append(keys[0]);
  ScanCursor cursor;
  cursor.kind = RunOf(0).kind();
  cursor.primary_key = keys[0];
  const SortedRun& run = RunOf(entry.run);
  switch (cursor.kind) {
    case KeyKind::kU32:
      cursor.number = run.u32()[entry.position];
      break;
    case KeyKind::kU64:
      cursor.number = run.u64()[entry.position];
      break;
    case KeyKind::kBytes:
      cursor.bytes = run.bytes()[entry.position];
      break;
  }
  return std::string(1, kOfEntry).append(cursor.Encode());
}

}  // namespace cairn
