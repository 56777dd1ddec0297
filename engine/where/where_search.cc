#include "engine/where/where_search.h"

#include <algorithm>
#include <utility>

#include "index/machine/prefetch.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"

namespace cairn {
namespace {

using Kind = WhereNode::Kind;
using Mode = WhereNode::Mode;

// Number of rows that are tested together.
constexpr size_t kChunk = 256;
// Number of rows whose positions are prefetched ahead of the current row.
constexpr size_t kAhead = 16;
// A list with more than one in kSparse rows is sorted with a bitmap.
constexpr size_t kSparse = 256;

}  // namespace

absl::Status WhereSearch::Prepare(const WhereNode& node) const {
  if (node.kind == Kind::kLeaf) return members_[node.member]->Prepare();
  for (const WhereNode& child : node.children) RETURN_IF_ERROR(Prepare(child));
  return absl::OkStatus();
}

void WhereSearch::TestLeaf(const WhereNode& leaf, absl::Span<const RowId> rows, bool* pass) const {
  const GroupMember& member = *members_[leaf.member];
  const RowId base_rows = static_cast<RowId>(member.delta().base_rows.rows());
  const bool identity = space_->IsIdentity(leaf.member);
  const auto local = [&](size_t i) {
    return identity ? rows[i] : space_->ToMember(leaf.member, rows[i]);
  };
  const RowPositions& positions = member.positions();
  if (identity && leaf.mode == Mode::kSome && member.delta().empty() &&
      !positions.single().empty() && leaf.set.run(0).size() == 1) {
    // One comparison per row is enough, and many reads are in flight at a time.
    const PositionRange range = leaf.set.run(0)[0];
    const Position* const position = positions.single().data();
    const RowId end = base_rows - 1;
    for (size_t i = 0; i < rows.size(); ++i) {
      pass[i] = position[std::min(rows[i], end)] - range.begin < range.end - range.begin &&
                rows[i] <= end;
    }
    return;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kAhead < rows.size()) {
      const RowId ahead = local(i + kAhead);
      if (ahead < base_rows) positions.Prefetch(ahead);
    }
    const RowId row = local(i);
    GroupMember::Entries entries;
    if (row != kNoRow) entries = member.Look(row, leaf.set);
    pass[i] = leaf.mode == Mode::kSome     ? entries.in_set
              : leaf.mode == Mode::kNoneOf ? entries.any && !entries.in_set
                                           : !entries.any;
  }
}

void WhereSearch::Test(const WhereNode& node, absl::Span<const RowId> rows, bool* pass) const {
  switch (node.kind) {
    case Kind::kNothing:
      std::fill_n(pass, rows.size(), false);
      return;
    case Kind::kLeaf:
      TestLeaf(node, rows, pass);
      return;
    case Kind::kAnd:
    case Kind::kOr:
      break;
  }
  // Each child tests only the rows whose result is still open.
  const bool is_and = node.kind == Kind::kAnd;
  RowId left[kChunk];
  uint32_t place[kChunk];
  bool passed[kChunk];
  size_t size = rows.size();
  for (size_t i = 0; i < size; ++i) left[i] = rows[i], place[i] = static_cast<uint32_t>(i);
  std::fill_n(pass, rows.size(), is_and);
  for (const WhereNode& child : node.children) {
    Test(child, absl::MakeConstSpan(left, size), passed);
    size_t kept = 0;
    for (size_t i = 0; i < size; ++i) {
      if (passed[i] != is_and) {
        pass[place[i]] = passed[i];
      } else {
        left[kept] = left[i];
        place[kept++] = place[i];
      }
    }
    size = kept;
    if (size == 0) return;
  }
}

absl::Status WhereSearch::Filter(const WhereNode& node, std::vector<RowId>* rows,
                                 const StopCondition& stop) const {
  bool pass[kChunk];
  size_t kept = 0;
  for (size_t first = 0; first < rows->size(); first += kChunk) {
    RETURN_IF_ERROR(stop.Check());
    const size_t some = std::min(kChunk, rows->size() - first);
    Test(node, absl::MakeConstSpan(*rows).subspan(first, some), pass);
    for (size_t i = 0; i < some; ++i) {
      (*rows)[kept] = (*rows)[first + i];
      kept += pass[i];
    }
  }
  rows->resize(kept);
  return absl::OkStatus();
}

void WhereSearch::SortOnce(std::vector<RowId>* rows) const {
  if (rows->size() > space_->end_row() / kSparse) {
    RowBitmap bitmap(space_->end_row());
    for (const RowId row : *rows) bitmap.Add(row);
    rows->clear();
    bitmap.AppendTo(rows);
    return;
  }
  std::sort(rows->begin(), rows->end());
  rows->erase(std::unique(rows->begin(), rows->end()), rows->end());
}

void WhereSearch::Sort(std::vector<RowId>* rows) const {
  if (!std::is_sorted(rows->begin(), rows->end())) SortOnce(rows);
  const auto later = std::lower_bound(rows->begin(), rows->end(), space_->base_rows());
  const auto less = [this](RowId a, RowId b) { return space_->Less(a, b); };
  std::sort(later, rows->end(), less);
  std::inplace_merge(rows->begin(), later, rows->end(), less);
}

absl::Status WhereSearch::Gather(const WhereNode& node, std::vector<RowId>* rows,
                                 const StopCondition& stop) const {
  rows->clear();
  switch (node.kind) {
    case Kind::kNothing:
      return absl::OkStatus();
    case Kind::kLeaf: {
      const GroupMember& member = *members_[node.member];
      if (node.mode != Mode::kSome) {
        RowBitmap bitmap;
        RETURN_IF_ERROR(Bitmap(node, &bitmap, stop));
        bitmap.AppendTo(rows);
        return absl::OkStatus();
      }
      rows->reserve(node.entries);
      const bool identity = space_->IsIdentity(node.member);
      for (size_t run = 0; run <= member.delta().parts.size(); ++run) {
        RETURN_IF_ERROR(ForEachEntry(member.delta(), node.set, run, stop, [&](Position, RowId row) {
          rows->push_back(identity ? row : space_->FromMember(node.member, row));
        }));
      }
      if (!member.is_single()) SortOnce(rows);
      return absl::OkStatus();
    }
    case Kind::kAnd: {
      // Children are sorted by their expected number of rows.
      RETURN_IF_ERROR(Gather(node.children[0], rows, stop));
      for (size_t i = 1; i < node.children.size(); ++i) {
        RETURN_IF_ERROR(Prepare(node.children[i]));
        RETURN_IF_ERROR(Filter(node.children[i], rows, stop));
      }
      return absl::OkStatus();
    }
    case Kind::kOr:
      break;
  }
  std::vector<RowId> more;
  for (const WhereNode& child : node.children) {
    RETURN_IF_ERROR(stop.Check());
    RETURN_IF_ERROR(Gather(child, &more, stop));
    rows->insert(rows->end(), more.begin(), more.end());
  }
  SortOnce(rows);
  return absl::OkStatus();
}

absl::StatusOr<const RowBitmap*> WhereSearch::Present(size_t m) const {
  const MutexLock lock(&mutex_);
  if (present_[m] == nullptr) {
    const Delta& delta = members_[m]->delta();
    auto present = std::make_unique<RowBitmap>(space_->end_row());
    const EntrySet all = EntrySet(delta).Complement(delta);
    for (size_t run = 0; run <= delta.parts.size(); ++run) {
      RETURN_IF_ERROR(ForEachEntry(delta, all, run, StopCondition(), [&](Position, RowId row) {
        present->Add(space_->FromMember(m, row));
      }));
    }
    present_[m] = std::move(present);
  }
  return present_[m].get();
}

absl::Status WhereSearch::Bitmap(const WhereNode& node, RowBitmap* rows,
                                 const StopCondition& stop) const {
  RETURN_IF_ERROR(stop.Check());
  *rows = RowBitmap(space_->end_row());
  switch (node.kind) {
    case Kind::kNothing:
      return absl::OkStatus();
    case Kind::kLeaf: {
      const Delta& delta = members_[node.member]->delta();
      const bool identity = space_->IsIdentity(node.member);
      for (size_t run = 0; run <= delta.parts.size(); ++run) {
        RETURN_IF_ERROR(ForEachEntry(delta, node.set, run, stop, [&](Position, RowId row) {
          rows->Add(identity ? row : space_->FromMember(node.member, row));
        }));
      }
      if (node.mode == Mode::kSome) return absl::OkStatus();
      ASSIGN_OR_RETURN(const RowBitmap* const present, Present(node.member));
      if (node.mode == Mode::kNoneOf) {
        rows->SubtractFrom(*present);
      } else {
        *rows = *present;
        rows->Complement();
      }
      return absl::OkStatus();
    }
    case Kind::kAnd:
    case Kind::kOr:
      break;
  }
  RETURN_IF_ERROR(Bitmap(node.children[0], rows, stop));
  RowBitmap more;
  for (size_t i = 1; i < node.children.size(); ++i) {
    RETURN_IF_ERROR(Bitmap(node.children[i], &more, stop));
    if (node.kind == Kind::kAnd) {
      rows->And(more);
    } else {
      rows->Or(more);
    }
  }
  return absl::OkStatus();
}

}  // namespace cairn
