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

// One index of a group, or one shard of an index by key range, as it answers which entries a row
// has there. Thread-safe.
class GroupMember {
 public:
  // `shards`: how many the index has, which stand side by side in the group, in the order of keys.
  // `shard`: which of them this is. `shares_rows`: whether a row may have entries in several.
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

  // Makes what the rest needs, where it is not there: to be called first. DataLoss. Throws
  // std::bad_alloc.
  absl::Status Prepare() const;
  // Whether no row can have several entries, in this version.
  bool is_single() const { return is_single_; }
  const RowPositions& positions() const { return entries_->positions(); }

  // Whether one of a row's entries is in `set`, and whether it has any.
  struct Entries {
    bool any = false;
    bool in_set = false;
  };
  Entries Look(RowId row, const EntrySet& set) const;
  using Place = RowEntries::Place;
  // Appends the places of all entries of a row.
  void AppendPlaces(RowId row, RowEntries::Places* places) const {
    entries_->AppendPlaces(row, places);
  }

  // Rows that have entries in the delta or had entries removed in the base: for all others, the
  // base alone tells. Ascending. Made by the first call, and kept.
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
  // Set once, by Prepare.
  mutable std::optional<const RowEntries> entries_;
  mutable bool is_single_ = false;
};

}  // namespace cairn
