#include "engine/where/row_space.h"

#include <algorithm>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/util/make_room.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Number of rows whose primary keys are read at a time.
constexpr RowId kBatch = 4096;

// If a table has less than 1/kFew of the rows, it is searched to map a number back to its row.
constexpr uint64_t kFew = 4;

// Scans the primary keys of a row table in order.
class TableCursor {
 public:
  explicit TableCursor(const RowTable& table) : table_(table) {}

  bool at_end() const { return row_ == table_.rows(); }
  RowId row() const { return row_; }
  std::string_view primary_key() const { return keys_[row_ - first_]; }
  absl::Status Start() { return at_end() ? absl::OkStatus() : Read(); }
  absl::Status Next() {
    ++row_;
    return at_end() || row_ - first_ < keys_.size() ? absl::OkStatus() : Read();
  }

 private:
  absl::Status Read() {
    first_ = row_;
    std::vector<RowId> rows;
    for (uint64_t row = row_; row < std::min<uint64_t>(table_.rows(), uint64_t{row_} + kBatch);
         ++row) {
      rows.push_back(static_cast<RowId>(row));
    }
    keys_.Clear();
    return table_.PrimaryKeys(rows, &keys_);
  }

  const RowTable& table_;
  RowId row_ = 0;
  RowId first_ = 0;
  StringList keys_;
};

bool HaveOneTable(const Base& a, const Base& b) {
  const ManifestFile* const x = a.manifest.FindFile("rows");
  const ManifestFile* const y = b.manifest.FindFile("rows");
  return &a == &b ||
         (x != nullptr && y != nullptr && x->size == y->size &&
          x->header_checksum == y->header_checksum && a.rows().rows() == b.rows().rows());
}

absl::Status TooManyRows() {
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the indexes of a group have more than %d rows in total; build them in shards "
      "by source, each of up to that number",
      kMaxEntries));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const RowSpace::Bases>> RowSpace::MergeBases(
    const std::vector<std::shared_ptr<const IndexVersion>>& versions) {
  using Ids = std::vector<RowId>;
  auto merged = std::make_shared<Bases>();
  // The table of each base.
  std::vector<size_t> table_of;
  std::vector<const Base*> tables;
  for (const auto& version : versions) {
    const Base& base = *version->base;
    merged->bases.push_back(version->base);
    size_t table = 0;
    while (table < tables.size() && !HaveOneTable(*tables[table], base)) ++table;
    if (table == tables.size()) tables.push_back(&base);
    table_of.push_back(table);
  }
  const auto none = std::make_shared<const Ids>();
  if (tables.size() == 1) {
    merged->rows = static_cast<RowId>(tables[0]->rows().rows());
    merged->have_own.assign(versions.size(), true);
    merged->from.assign(versions.size(), none);
    merged->to = merged->from;
    return merged;
  }
  std::vector<std::shared_ptr<Ids>> from;
  std::vector<TableCursor> cursors;
  for (const Base* table : tables) {
    from.push_back(std::make_shared<Ids>(table->rows().rows()));
    cursors.emplace_back(table->rows());
    RETURN_IF_ERROR(cursors.back().Start());
  }
  // Tables with remaining rows; the one with the smallest primary key is on top of the heap.
  const auto later = [&](size_t a, size_t b) {
    return cursors[b].primary_key() < cursors[a].primary_key();
  };
  std::priority_queue heap(later, std::vector<size_t>());
  for (size_t t = 0; t < tables.size(); ++t) {
    if (!cursors[t].at_end()) heap.push(t);
  }
  uint64_t row = 0;
  std::string key;
  for (; !heap.empty(); ++row) {
    if (row == kMaxEntries) return TooManyRows();
    key.assign(cursors[heap.top()].primary_key());
    while (!heap.empty() && cursors[heap.top()].primary_key() == key) {
      const size_t t = heap.top();
      heap.pop();
      (*from[t])[cursors[t].row()] = static_cast<RowId>(row);
      RETURN_IF_ERROR(cursors[t].Next());
      if (!cursors[t].at_end()) heap.push(t);
    }
  }
  merged->rows = static_cast<RowId>(row);
  std::vector<std::shared_ptr<Ids>> to;
  for (const auto& rows : from) {
    to.push_back(std::make_shared<Ids>());
    if (rows->size() == row || rows->size() * kFew < row) continue;
    to.back()->assign(row, kNoRow);
    for (size_t i = 0; i < rows->size(); ++i) (*to.back())[(*rows)[i]] = static_cast<RowId>(i);
  }
  for (const size_t table : table_of) {
    // The rows of a table that has all rows have the same numbers as in the space.
    const bool has_all = from[table]->size() == row;
    merged->have_own.push_back(has_all);
    merged->from.push_back(has_all ? none : from[table]);
    merged->to.push_back(has_all ? none : to[table]);
  }
  return merged;
}

bool RowSpace::HaveDisjointBases(size_t first, size_t end) const {
  std::vector<bool> seen(base_rows());
  for (size_t m = first; m < end; ++m) {
    for (RowId row = 0; row < members_[m].base_rows; ++row) {
      const RowId of_space = FromMember(m, row);
      if (seen[of_space]) return false;
      seen[of_space] = true;
    }
  }
  return true;
}

absl::StatusOr<std::shared_ptr<const RowSpace>> RowSpace::Create(
    std::vector<std::shared_ptr<const IndexVersion>> versions,
    const std::shared_ptr<const RowSpace>& after) {
  auto space = std::make_shared<RowSpace>();
  bool same_bases = after != nullptr && after->members() == versions.size();
  for (size_t i = 0; same_bases && i < versions.size(); ++i) {
    same_bases = after->bases_->bases[i] == versions[i]->base;
  }
  if (same_bases) {
    space->bases_ = after->bases_;
  } else {
    ASSIGN_OR_RETURN(space->bases_, MergeBases(versions));
  }
  for (size_t i = 0; i < versions.size(); ++i) {
    Member member;
    member.base_rows = static_cast<RowId>(versions[i]->base->rows().rows());
    member.end_row = versions[i]->delta->end_row;
    member.has_own_numbers = space->bases_->have_own[i];
    member.from_base = space->bases_->from[i];
    member.version = std::move(versions[i]);
    space->members_.push_back(std::move(member));
  }
  space->end_row_ = space->base_rows();
  RETURN_IF_ERROR(space->NumberLater(same_bases ? after : nullptr));
  return space;
}

absl::Status RowSpace::NumberLater(const std::shared_ptr<const RowSpace>& after) {
  bool any = false, same_rows = after != nullptr && after->shared_later_ != nullptr;
  for (size_t i = 0; i < members_.size(); ++i) {
    const Delta& delta = *members_[i].version->delta;
    any |= members_[i].end_row > members_[i].base_rows;
    same_rows = same_rows && after->shared_later_->owners[i] == delta.rows;
  }
  if (!any) return absl::OkStatus();
  if (members_.size() == 1) {
    // The member's own numbers can be used.
    const Member& member = members_[0];
    for (RowId row = member.base_rows; row < member.end_row; ++row) {
      const DeltaRows& rows = *member.version->delta->rows;
      later_.push_back({rows.primary_key(row), rows.rank(row)});
    }
    end_row_ = member.end_row;
    return absl::OkStatus();
  }
  if (same_rows) {
    shared_later_ = after->shared_later_;
  } else {
    shared_later_ = std::make_shared<LaterRows>();
    for (const Member& member : members_) {
      shared_later_->owners.push_back(member.version->delta->rows);
    }
    const MutexLock lock(&shared_later_->mutex);
    shared_later_->from.resize(members_.size());
    shared_later_->to.resize(members_.size());
    shared_later_->came.resize(members_.size());
  }
  LaterRows& later = *shared_later_;
  const MutexLock lock(&later.mutex);
  for (size_t i = 0; i < members_.size(); ++i) RETURN_IF_ERROR(AddLater(i, &later));
  // Rows that other spaces have added by now do no harm: no version here has entries of them.
  later_ = later.rows;
  for (size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    member.from_later = later.from[i];
    member.to_later = later.to[i];
    member.to_later.resize(later_.size(), kNoRow);
    for (RowId& row : member.to_later) {
      if (row != kNoRow && row >= member.end_row) row = kNoRow;
    }
    for (const auto& [row, there] : later.came[i]) {
      if (there >= member.end_row) continue;
      MakeRoomForOne(&member.came_to_base);
      member.came_to_base.emplace(row, there);
    }
  }
  end_row_ = base_rows() + static_cast<RowId>(later_.size());
  return absl::OkStatus();
}

absl::Status RowSpace::AddLater(size_t i, LaterRows* later) const {
  const Member& member = members_[i];
  const Delta& delta = *member.version->delta;
  std::vector<RowId>& from = later->from[i];
  std::vector<RowId>& to = later->to[i];
  for (RowId row = member.base_rows + static_cast<RowId>(from.size()); row < member.end_row;
       ++row) {
    const std::string_view key = delta.rows->primary_key(row);
    RowId rank = delta.rows->rank(row), in_base = kNoRow;
    if (base_rows() != member.base_rows || !bases_->AllHaveOwn()) {
      RETURN_IF_ERROR(Locate(key, &rank, &in_base));
    }
    if (in_base != kNoRow) {
      MakeRoomForOne(&later->came[i]);
      // A branch may have a deleted row's primary key again under a later id (BranchVersion).
      later->came[i].insert_or_assign(in_base, row);
      from.push_back(in_base);
      continue;
    }
    if (base_rows() + later->rows.size() == kMaxEntries) return TooManyRows();
    MakeRoomForOne(&later->ids);
    const auto next = static_cast<RowId>(base_rows() + later->rows.size());
    const RowId id = later->ids.try_emplace(key, next).first->second;
    if (id == next) later->rows.push_back({key, rank});
    to.resize(std::max<size_t>(to.size(), id - base_rows() + 1), kNoRow);
    to[id - base_rows()] = row;
    from.push_back(id);
  }
  return absl::OkStatus();
}

absl::Status RowSpace::Locate(std::string_view primary_key, RowId* rank, RowId* row) const {
  *rank = base_rows();
  *row = kNoRow;
  for (size_t i = 0; i < members_.size(); ++i) {
    const RowTable& table = members_[i].version->base->rows();
    RowPlace place;
    RETURN_IF_ERROR(table.Places(absl::MakeConstSpan(&primary_key, 1), absl::MakeSpan(&place, 1)));
    if (place.rank == table.rows()) continue;
    const RowId there = FromMember(i, place.rank);
    *rank = std::min(*rank, there);
    if (place.found) *row = there;
  }
  return absl::OkStatus();
}

bool RowSpace::LessOfLater(RowId a, RowId b) const {
  const RowId rank_a = RankOf(a), rank_b = RankOf(b);
  if (rank_a != rank_b) return rank_a < rank_b;
  // Later rows precede the base's row of the same rank.
  if (a < base_rows() || b < base_rows()) return a != b && b < base_rows();
  return later_[a - base_rows()].primary_key < later_[b - base_rows()].primary_key;
}

absl::StatusOr<RowSpace::Place> RowSpace::PlaceOf(std::string_view primary_key) const {
  RowId rank = 0, row = kNoRow;
  RETURN_IF_ERROR(Locate(primary_key, &rank, &row));
  return Place{row == kNoRow ? rank : rank + 1, row, primary_key};
}

int RowSpace::Compare(RowId row, const Place& place) const {
  if (row < base_rows()) return row >= place.rank ? 1 : row == place.row ? 0 : -1;
  const LaterRow& later = later_[row - base_rows()];
  if (later.rank != place.rank) return later.rank > place.rank ? 1 : -1;
  return later.primary_key.compare(place.primary_key);
}

absl::Status RowSpace::PrimaryKeys(absl::Span<const RowId> rows, StringList* primary_keys) const {
  for (const RowId row : rows) {
    if (row >= end_row_) {
      return absl::OutOfRangeError(
          absl::StrFormat("there is no row %d in the group; expected one of %d", row, end_row_));
    }
  }
  if (bases_->AllHaveOwn() && later_.empty()) {
    return members_[0].version->base->rows().PrimaryKeys(rows, primary_keys);
  }
  // The first member whose base has a row reads its key. Then the keys are put in order.
  std::vector<StringList> keys(members_.size());
  std::vector<std::vector<RowId>> wanted(members_.size());
  std::vector<size_t> owner;
  owner.reserve(rows.size());
  for (const RowId row : rows) {
    size_t i = 0;
    if (row >= base_rows()) {
      i = members_.size();
    } else {
      RowId there = bases_->ToBase(0, row);
      while (there == kNoRow) there = bases_->ToBase(++i, row);
      wanted[i].push_back(there);
    }
    owner.push_back(i);
  }
  for (size_t i = 0; i < members_.size(); ++i) {
    RETURN_IF_ERROR(members_[i].version->base->rows().PrimaryKeys(wanted[i], &keys[i]));
  }
  std::vector<size_t> next(members_.size());
  for (size_t j = 0; j < rows.size(); ++j) {
    const size_t i = owner[j];
    primary_keys->Append(i == members_.size() ? later_[rows[j] - base_rows()].primary_key
                                              : keys[i][next[i]++]);
  }
  return absl::OkStatus();
}

}  // namespace cairn
