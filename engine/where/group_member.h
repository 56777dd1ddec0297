#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/index_spec.h"
#include "cairn/types.h"
#include "engine/version/index_version.h"
#include "engine/version/row_entries.h"
#include "engine/where/entry_set.h"
#include "index/machine/mutex.h"

namespace cairn {

// One index of a group, or one shard of an index by key range: finds the entries of its rows.
// Thread-safe.
class GroupMember {
 public:
  // `shards`: the number of shards of the index, which are adjacent in the group, in key order.
  // `shard`: the number of this shard. `shares_rows`: whether a row may have entries in several
  // shards.
  GroupMember(std::string name, std::shared_ptr<const IndexVersion> version, size_t shard = 0,
              size_t shards = 1, bool shares_rows = false);

  const std::string& name() const { return name_; }
  size_t shard() const { return shard_; }
  size_t shards() const { return shards_; }
  bool shares_rows() const { return shares_rows_; }
  const IndexVersion& version() const { return *version_; }
  const Delta& delta() const { return *version_->delta; }
  const KeyCodec& codec() const { return version_->base->codec; }
  bool keeps_nulls() const { return codec().nulls() != NullPolicy::kSkip; }

  // Builds the structures that the following methods need, unless they exist. Must be called first.
  // DataLoss: the index is damaged. Throws std::bad_alloc.
  absl::Status Prepare() const;
  // Returns whether no row of this version can have several entries.
  bool is_single() const { return is_single_; }
  const RowPositions& positions() const { return entries_->positions(); }

  // Whether a row has any entries, and whether one of them is in the set.
  struct Entries {
    bool any = false;
    bool in_set = false;
  };
  Entries Look(RowId row, const EntrySet& set) const;
  using Place = RowEntries::Place;
  // Appends the positions of all entries of a row.
  void AppendPlaces(RowId row, RowEntries::Places* places) const {
    entries_->AppendPlaces(row, places);
  }

  // Returns the rows that have entries in the delta, or removed entries in the base, ascending. For
  // all others the base is sufficient. Computed by the first call, and kept.
  const std::vector<RowId>& ChangedRows() const;

 private:
  const std::string name_;
  const std::shared_ptr<const IndexVersion> version_;
  const size_t shard_;
  const size_t shards_;
  const bool shares_rows_;
  mutable Mutex mutex_;
  mutable bool is_prepared_ ABSL_GUARDED_BY(mutex_) = false;
  mutable std::unique_ptr<const std::vector<RowId>> changed_rows_ ABSL_GUARDED_BY(mutex_);
  // Prepare sets these once.
  mutable std::optional<const RowEntries> entries_;
  mutable bool is_single_ = false;
};

}  // namespace cairn
