#include "engine/version/version_branch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "engine/delta/compact_delta.h"
#include "engine/delta/delta.h"
#include "engine/delta/update_rows.h"
#include "engine/version/row_entries.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"
#include "index/query/physical_key.h"
#include "index/run/gallop.h"

namespace cairn {
namespace {

int Threads(const IndexVersion& version) {
  return Topology::Get().Threads(version.base->options.threads);
}

// Makes one branch. Key is uint32_t, uint64_t or std::string_view.
template <typename Key>
class Branch {
 public:
  Branch(const IndexVersion& version, const RowUpdates& updates)
      : updates_(updates),
        from_(*version.delta),
        rows_(std::make_shared<DeltaRows>(from_.rows, from_.end_row)),
        next_(std::make_shared<Delta>(from_)),
        removed_(1 + from_.parts.size()) {
    if (from_.tuples != nullptr) {
      tuples_ = std::make_shared<DeltaTuples>(from_.tuples, from_.end_tuple);
    }
    next_->is_branch = true;
    next_->compact = std::make_shared<CompactDelta>();
  }

  absl::StatusOr<std::shared_ptr<const Delta>> Make(const IndexVersion& version) {
    std::vector<std::string_view> primary_keys(updates_.rows());
    std::vector<uint32_t> order(updates_.rows());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return updates_.primary_keys[a] < updates_.primary_keys[b];
    });
    for (size_t i = 0; i < order.size(); ++i) primary_keys[i] = updates_.primary_keys[order[i]];
    std::vector<RowPlace> places(order.size());
    RETURN_IF_ERROR(from_.base_rows.Places(primary_keys, absl::MakeSpan(places)));
    if (next_->positions == nullptr) {
      ASSIGN_OR_RETURN(next_->positions, version.base->Positions(Threads(version)));
    }
    ASSIGN_OR_RETURN(const RowEntries entries, RowEntries::Of(version));
    for (size_t i = 0; i < order.size(); ++i) {
      RETURN_IF_ERROR(ChangeRow(order[i], places[i], entries));
    }
    RETURN_IF_ERROR(Finish());
    return std::shared_ptr<const Delta>(std::move(next_));
  }

 private:
  struct Existing {
    Key key;
    RowEntries::Place place;
  };

  // Returns the row with this primary key, or kNoRow.
  RowId Find(const RowPlace& place) const {
    if (place.found) return place.rank;
    for (const DeltaPart& part : from_.parts) {
      const absl::Span<const RowId> rows = part.segment->NewRows(*from_.rows);
      const auto row = std::partition_point(
          rows.begin(), rows.end(), [&](RowId r) { return from_.rows->Compare(r, place) < 0; });
      if (row != rows.end() && from_.rows->Compare(*row, place) == 0) return *row;
    }
    return kNoRow;
  }

  void FindExisting(RowId row, const RowEntries& entries) {
    existing_.clear();
    if (row == kNoRow) return;
    RowEntries::Places places;
    entries.AppendPlaces(row, &places);
    for (const RowEntries::Place& place : places) {
      const SortedRun& run =
          place.run == 0 ? from_.base_run : from_.parts[place.run - 1].segment->run();
      existing_.push_back({ColumnOf<Key>(run)[place.position], place});
    }
    std::sort(existing_.begin(), existing_.end(),
              [](const Existing& a, const Existing& b) { return a.key < b.key; });
  }

  absl::Status ChangeRow(uint32_t update, const RowPlace& place, const RowEntries& entries) {
    const uint64_t begin = update == 0 ? 0 : updates_.row_ends[update - 1];
    const uint64_t end = updates_.row_ends[update];
    wanted_.clear();
    for (uint64_t k = begin; k < end; ++k) wanted_.push_back(KeyAt<Key>(updates_.keys, k));
    std::sort(wanted_.begin(), wanted_.end());
    wanted_.erase(std::unique(wanted_.begin(), wanted_.end()), wanted_.end());

    RowId row = Find(place);
    FindExisting(row, entries);
    if (row == kNoRow) {
      if (wanted_.empty()) return absl::OkStatus();
      if (rows_->end() >= kMaxEntries) {
        return absl::ResourceExhaustedError(absl::StrFormat(
            "an index can have at most %d rows, including uncommitted ones", kMaxEntries));
      }
      row = rows_->Append(place.primary_key, place.rank);
    }
    // Entries with included columns are replaced, so that the values of an entry never change.
    const bool anew = tuples_ != nullptr && !wanted_.empty();
    if (anew) {
      if (tuples_->end() >= DeltaTuples::kMax) {
        return absl::ResourceExhaustedError("the index has too many changed rows; compact it");
      }
      next_->tuple_rows += from_.Tuple(row).has_value() ? 0 : 1;
      tuples_->Append(row, updates_.tuples[update]);
    }
    ReplaceEntries(row, anew);
    CountRow(row);
    return absl::OkStatus();
  }

  void ReplaceEntries(RowId row, bool anew) {
    auto has = existing_.begin();
    const auto remove = [&] {
      removed_[has->place.run].push_back(has->place.position);
      hashes_.push_back(KeyFilter::Hash(has->key));
      ++has;
    };
    for (const Key& key : wanted_) {
      while (has != existing_.end() && (anew || has->key < key)) remove();
      if (has != existing_.end() && has->key == key) {
        ++has;
        continue;
      }
      added_.push_back({key, row});
      hashes_.push_back(KeyFilter::Hash(key));
    }
    while (has != existing_.end()) remove();
  }

  void CountRow(RowId row) {
    if (row >= rows_->base_rows()) {
      next_->live_new_rows += wanted_.empty() ? 0 : 1;
      next_->live_new_rows -= existing_.empty() ? 0 : 1;
    } else if (wanted_.empty() != from_.dead_rows.Contains(row)) {
      (wanted_.empty() ? died_ : revived_).push_back(row);
    }
  }

  absl::Status Finish() {
    next_->removed = Without(from_.removed, removed_[0]);
    for (size_t i = 0; i < from_.parts.size(); ++i) {
      next_->parts[i].removed = Without(from_.parts[i].removed, removed_[i + 1]);
    }
    if (!died_.empty() || !revived_.empty()) {
      next_->dead_rows = from_.dead_rows.Copy().With(died_, revived_);
    }
    next_->rows = rows_;
    next_->end_row = rows_->end();
    if (tuples_ != nullptr) {
      next_->tuples = tuples_;
      next_->end_tuple = tuples_->end();
    }
    AddToFilter();
    if (added_.empty()) return absl::OkStatus();
    // The rows of one key stay in primary-key order.
    std::stable_sort(added_.begin(), added_.end(),
                     [](const auto& a, const auto& b) { return a.key < b.key; });
    FindPlaces();
    ASSIGN_OR_RETURN(std::shared_ptr<const DeltaSegment> segment,
                     DeltaSegment::Build<Key>(added_, from_.base_run.size(), next_->end_tuple));
    PositionSet none(added_.size());
    next_->parts.push_back({std::move(segment), std::move(none)});
    return absl::OkStatus();
  }

  // Only the writer of the version's sets may make others that share their memory.
  static PositionSet Without(const PositionSet& removed, absl::Span<const Position> more) {
    return more.empty() ? removed : removed.Copy().With(more, {});
  }

  void AddToFilter() {
    if (hashes_.empty()) return;
    std::shared_ptr<KeyFilter> filter = from_.filter == nullptr
                                            ? std::make_shared<KeyFilter>(hashes_.size())
                                            : std::shared_ptr<KeyFilter>(from_.filter->Copy());
    for (const uint64_t hash : hashes_) filter->Add(hash);
    next_->filter = std::move(filter);
  }

  // Sets the places of the added entries among the base's.
  void FindPlaces() {
    const auto keys = ColumnOf<Key>(from_.base_run);
    const absl::Span<const RowId> rows = from_.base_run.row_ids();
    const auto end = static_cast<Position>(from_.base_run.size());
    Position place = 0;
    for (DeltaEntry<Key>& entry : added_) {
      place = PartitionPoint(place, end, [&](Position p) {
        return keys[p] < entry.key || (keys[p] == entry.key && rows_->Less(rows[p], entry.row));
      });
      entry.place = place;
    }
  }

  const RowUpdates& updates_;
  const Delta& from_;
  const std::shared_ptr<DeltaRows> rows_;
  std::shared_ptr<DeltaTuples> tuples_;  // null without included columns
  std::shared_ptr<Delta> next_;
  std::vector<std::vector<Position>> removed_;  // from each run
  std::vector<Position> died_, revived_;        // rows of the base
  std::vector<DeltaEntry<Key>> added_;          // in primary-key order
  std::vector<uint64_t> hashes_;                // of changed keys
  std::vector<Key> wanted_;                     // by the current row
  std::vector<Existing> existing_;              // entries of the current row
};

}  // namespace

absl::StatusOr<std::shared_ptr<const IndexVersion>> BranchVersion(const IndexVersion& version,
                                                                  const RowUpdates& updates) {
  if (!updates.deleted_from.empty()) {
    return absl::UnimplementedError("a range of rows is deleted in the transaction");
  }
  // A delta relies on the contents of the base.
  RETURN_IF_ERROR(version.base->Prove(Threads(version)));
  const Delta& delta = *version.delta;
  const PhysicalType kind = delta.base_run.kind();
  RETURN_IF_ERROR(CheckIsOf(kind, delta.tuples != nullptr, updates));
  RETURN_IF_ERROR(CheckColumns(updates));
  absl::StatusOr<std::shared_ptr<const Delta>> branch = WithPhysicalKey(kind, [&](auto type) {
    using Key = typename decltype(type)::type;
    return Branch<Key>(version, updates).Make(version);
  });
  if (!branch.ok()) return branch.status();
  return std::make_shared<const IndexVersion>(
      IndexVersion{version.base, *std::move(branch), version.sequence});
}

}  // namespace cairn
