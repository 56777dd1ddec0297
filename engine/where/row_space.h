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

// A single numbering of the rows of several versions, by primary key: first the rows of their
// bases, in primary-key order, then later rows. Immutable and thread-safe.
//
// If the bases share one row table, as those of one build do, the numbers are the bases' own, and
// nothing is stored for them. Otherwise the tables are merged once. Then each base has an array of
// 4 bytes per row, and another one to map numbers back to rows. A base with few of the rows, such
// as a shard, has no second array; the first one is searched. A later row takes about 50 bytes, and
// 4 per index. A space made `after` another one of the same bases reuses its knowledge about later
// rows.
class RowSpace {
 public:
  // `versions` must have one column family and one sequence number. `after`: null, or a space that
  // may have other versions. DataLoss: an index is damaged. ResourceExhausted: there are more than
  // kMaxEntries rows. Throws std::bad_alloc.
  static absl::StatusOr<std::shared_ptr<const RowSpace>> Create(
      std::vector<std::shared_ptr<const IndexVersion>> versions,
      const std::shared_ptr<const RowSpace>& after);

  size_t members() const { return members_.size(); }
  RowId base_rows() const { return bases_->rows; }
  RowId end_row() const { return end_row_; }
  // Returns whether all rows of the member have its own numbers.
  bool IsIdentity(size_t member) const {
    const Member& m = members_[member];
    return m.has_own_numbers && m.from_later.empty();
  }

  // Returns whether all rows of the member's base have its own numbers.
  bool HasOwnBaseNumbers(size_t member) const { return members_[member].has_own_numbers; }
  // Returns whether no row is in two of the bases of members [first, end). Throws std::bad_alloc.
  bool HaveDisjointBases(size_t first, size_t end) const;

  // Convert a member's row to the space's number and back. Require an existing row. ToMember
  // returns kNoRow if the member does not have the row.
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

  // Returns whether row `a`'s primary key is less than row `b`'s.
  bool Less(RowId a, RowId b) const {
    if (a < base_rows() && b < base_rows()) return a < b;
    return LessOfLater(a, b);
  }
  // The position of a primary key among the rows.
  struct Place {
    RowId rank = 0;      // number of base rows whose primary keys are at most this one
    RowId row = kNoRow;  // the base row with this primary key
    std::string_view primary_key;
  };
  absl::StatusOr<Place> PlaceOf(std::string_view primary_key) const;
  // Returns a number less than, equal to or greater than 0 if the row's primary key is less than,
  // equal to or greater than that of `place`.
  int Compare(RowId row, const Place& place) const;

  absl::Status PrimaryKeys(absl::Span<const RowId> rows, StringList* primary_keys) const;

 private:
  // The numbering of the rows of the bases.
  struct Bases {
    std::vector<std::shared_ptr<const Base>> bases;
    RowId rows = 0;
    std::vector<bool> have_own;  // per base: whether its own numbers are used
    // Per base without its own numbers: the numbers of its rows, ascending; and its rows by number,
    // or kNoRow. `to` is empty for a base with few of the rows.
    std::vector<std::shared_ptr<const std::vector<RowId>>> from, to;

    bool AllHaveOwn() const {
      return std::all_of(have_own.begin(), have_own.end(), [](bool own) { return own; });
    }
    // Returns kNoRow if the base does not have the row.
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
    std::string_view primary_key;  // owned by the member
    RowId rank = 0;                // number of base rows of the space with smaller primary keys
  };
  // The later rows found so far by all spaces over the same bases and rows.
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
    absl::flat_hash_map<RowId, RowId> came_to_base;  // later rows that are in another member's base
  };

  static absl::StatusOr<std::shared_ptr<const Bases>> MergeBases(
      const std::vector<std::shared_ptr<const IndexVersion>>& versions);
  absl::Status NumberLater(const std::shared_ptr<const RowSpace>& after);
  absl::Status AddLater(size_t member, LaterRows* later) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(later->mutex);
  // Sets *rank to the number of base rows with smaller primary keys, and *row to the base row with
  // this one, or kNoRow.
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
