#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/types.h"
#include "engine/version/index_version.h"
#include "index/machine/mutex.h"

namespace cairn {

// One numbering of the rows of several versions, by primary key: first those of their bases, in
// primary-key order, then those that came since. Immutable; safe from any number of threads.
//
// Where the bases have one row table, as those of one build do, its numbers are the bases' own and
// nothing is stored for them. Else the tables are merged, once, and each base has an array of 4
// bytes a row, and another for the way back, unless it has few of the rows, as a shard does: then
// that is searched. Rows that came since take about 50 bytes and 4 an index; a space made `after`
// another of the same bases takes over what that one has found of them.
class RowSpace {
 public:
  // `versions` are of one column family and one sequence number. `after`: null, or one that may be
  // of other versions. DataLoss; ResourceExhausted beyond kMaxEntries rows. Throws std::bad_alloc.
  static absl::StatusOr<std::shared_ptr<const RowSpace>> Create(
      std::vector<std::shared_ptr<const IndexVersion>> versions,
      const std::shared_ptr<const RowSpace>& after);

  size_t members() const { return members_.size(); }
  RowId base_rows() const { return bases_->rows; }
  RowId end_row() const { return end_row_; }
  // Whether the member's rows all have its own numbers.
  bool IsIdentity(size_t member) const {
    const Member& m = members_[member];
    return m.has_own_numbers && m.from_later.empty();
  }

  // Whether those of its base do.
  bool HasOwnBaseNumbers(size_t member) const { return members_[member].has_own_numbers; }
  // Whether no row of a base is in two of the bases of members [first, end). Throws std::bad_alloc.
  bool HaveDisjointBases(size_t first, size_t end) const;

  // A member's row by the space's number, and back; requires a row of it. kNoRow where the member
  // does not know it.
  RowId FromMember(size_t member, RowId row) const {
    const Member& m = members_[member];
    if (row < m.base_rows) return m.has_own_numbers ? row : (*m.from_base)[row];
    return m.from_later.empty() ? row : m.from_later[row - m.base_rows];
  }
  RowId ToMember(size_t member, RowId row) const {
    const Member& m = members_[member];
    if (row >= base_rows()) {
      if (m.from_later.empty() && m.to_later.empty()) return row < m.end_row ? row : kNoRow;
      const RowId later = row - base_rows();
      return later < m.to_later.size() ? m.to_later[later] : kNoRow;
    }
    if (m.has_own_numbers) return row;
    const RowId there = bases_->ToBase(member, row);
    if (there != kNoRow || m.came_to_base.empty()) return there;
    const auto found = m.came_to_base.find(row);
    return found == m.came_to_base.end() ? kNoRow : found->second;
  }

  // Whether row `a`'s primary key is less than row `b`'s.
  bool Less(RowId a, RowId b) const {
    if (a < base_rows() && b < base_rows()) return a < b;
    return LessOfLater(a, b);
  }
  // Where a primary key stands among the rows.
  struct Place {
    RowId rank = 0;      // base rows whose primary keys are at most it
    RowId row = kNoRow;  // the base row that has it
    std::string_view primary_key;
  };
  absl::StatusOr<Place> PlaceOf(std::string_view primary_key) const;
  // Less than, equal to or greater than 0 as the row's primary key is than that of `place`.
  int Compare(RowId row, const Place& place) const;

  absl::Status PrimaryKeys(absl::Span<const RowId> rows, StringList* primary_keys) const;

 private:
  // The numbering of the bases' rows.
  struct Bases {
    std::vector<std::shared_ptr<const Base>> bases;
    RowId rows = 0;
    std::vector<bool> have_own;  // of each base: its numbers are these
    // Of each of the others: the numbers of its rows, ascending, and its rows by number, kNoRow
    // among them; that is empty where it has few.
    std::vector<std::shared_ptr<const std::vector<RowId>>> from, to;

    bool AllHaveOwn() const {
      return std::all_of(have_own.begin(), have_own.end(), [](bool own) { return own; });
    }
    // kNoRow where the base has no such row.
    RowId ToBase(size_t base, RowId row) const {
      if (have_own[base]) return row;
      if (!to[base]->empty()) return (*to[base])[row];
      const std::vector<RowId>& rows_of = *from[base];
      const auto found = std::lower_bound(rows_of.begin(), rows_of.end(), row);
      return found != rows_of.end() && *found == row ? static_cast<RowId>(found - rows_of.begin())
                                                     : kNoRow;
    }
  };
  struct LaterRow {
    std::string_view primary_key;  // the member's
    RowId rank = 0;                // base rows of the space whose primary keys are less
  };
  // What is known of the rows that came since, of the latest space over the same bases and rows.
  struct LaterRows {
    Mutex mutex;
    absl::flat_hash_map<std::string_view, RowId> ids ABSL_GUARDED_BY(mutex);
    std::vector<LaterRow> rows ABSL_GUARDED_BY(mutex);
    std::vector<std::vector<RowId>> from, to ABSL_GUARDED_BY(mutex);
    std::vector<absl::flat_hash_map<RowId, RowId>> came ABSL_GUARDED_BY(mutex);
    std::vector<std::shared_ptr<const DeltaRows>> owners;  // of the primary keys
  };
  struct Member {
    std::shared_ptr<const IndexVersion> version;
    RowId base_rows = 0;
    RowId end_row = 0;
    bool has_own_numbers = false;  // in its base
    std::shared_ptr<const std::vector<RowId>> from_base;
    std::vector<RowId> from_later, to_later;
    absl::flat_hash_map<RowId, RowId> came_to_base;  // rows of another member's base
  };

  static absl::StatusOr<std::shared_ptr<const Bases>> MergeBases(
      const std::vector<std::shared_ptr<const IndexVersion>>& versions);
  absl::Status NumberLater(const std::shared_ptr<const RowSpace>& after);
  absl::Status AddLater(size_t member, LaterRows* later) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(later->mutex);
  // rank: base rows whose primary keys are less; row: the base row with this one, or kNoRow.
  absl::Status Locate(std::string_view primary_key, RowId* rank, RowId* row) const;
  bool LessOfLater(RowId a, RowId b) const;
  RowId RankOf(RowId row) const { return row < base_rows() ? row : later_[row - base_rows()].rank; }

  std::shared_ptr<const Bases> bases_;
  std::vector<Member> members_;
  std::vector<LaterRow> later_;
  std::shared_ptr<LaterRows> shared_later_;
  RowId end_row_ = 0;
};

}  // namespace cairn
