// The queries of the indexes.

#include <memory>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "cairn/rocksdb_status.h"
#include "engine/live/index_set.h"
#include "engine/live/live_index.h"
#include "engine/shards/lookup.h"
#include "engine/shards/open_index.h"
#include "engine/source/db_source.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"

namespace cairn {

namespace {

// A change past the log, such as the removal of a file, may have changed rows at a snapshot.
absl::Status CheckSameState(const FollowedIndex& index, const LogFollower::State& state) {
  RETURN_IF_ERROR(index.Ready().status());
  if (index.writer() == state.writer) return absl::OkStatus();
  return absl::UnavailableError(absl::StrFormat(
      "index %s was rebuilt while its rows were read; retry", Quoted(index.name())));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const SecondaryIndex>> IndexSet::Index(
    const std::string& name) const {
  ASSIGN_OR_RETURN(std::shared_ptr<FollowedIndex> index, indexes_.Find(name));
  return LiveIndex(std::move(index), follower_);
}

absl::StatusOr<LogFollower::State> IndexSet::StateOf(const FollowedIndex& index,
                                                     const LookupOptions& options) const {
  const StopCondition stop = StopCondition::Of(options);
  ASSIGN_OR_RETURN(LogFollower::State state,
                   options.snapshot == nullptr ? follower_->CurrentState(index, stop)
                                               : follower_->StateAt(index, options.snapshot, stop));
  if (options.transaction == nullptr) return state;
  if (auto view = views_.Find(options.transaction, state.version)) {
    state.version = std::move(view);
    return state;
  }
  ASSIGN_OR_RETURN(state.version,
                   views_.Make(db_->GetRootDB(), options.transaction, index,
                               std::move(state.version), state.snapshot->snapshot()));
  RETURN_IF_ERROR(CheckSameState(index, state));
  return state;
}

absl::StatusOr<std::shared_ptr<const IndexVersion>> IndexSet::VersionOf(
    const FollowedIndex& index, const LookupOptions& options) const {
  const StopCondition stop = StopCondition::Of(options);
  if (options.snapshot == nullptr) {
    ASSIGN_OR_RETURN(auto version, follower_->Current(index, stop));
    if (options.transaction == nullptr) return version;
    // Usually the transaction has not written since its last lookup.
    if (auto view = views_.Find(options.transaction, version)) return view;
  }
  RETURN_IF_ERROR(index.Ready().status());
  const auto column_family = index.HoldColumnFamily();
  ASSIGN_OR_RETURN(LogFollower::State state, StateOf(index, options));
  return std::move(state.version);
}

absl::StatusOr<std::shared_ptr<const SecondaryIndex>> IndexSet::Pin(
    const std::string& name, const LookupOptions& options) const {
  ASSIGN_OR_RETURN(const std::shared_ptr<FollowedIndex> index, indexes_.Find(name));
  ASSIGN_OR_RETURN(auto version, VersionOf(*index, options));
  return OverVersion(std::move(version));
}

absl::StatusOr<std::shared_ptr<const IndexGroup>> IndexSet::PinGroup(
    absl::Span<const std::string> names, const LookupOptions& options) const {
  IndexList::Indexes indexes;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(std::shared_ptr<FollowedIndex> index, indexes_.Find(name));
    indexes.push_back(std::move(index));
  }
  if (indexes.empty())
    return absl::InvalidArgumentError("PinGroup: expected at least one index, got none");
  const bool is_latest = options.snapshot == nullptr && options.transaction == nullptr;
  std::vector<std::shared_ptr<const IndexVersion>> versions;
  if (is_latest) {
    ASSIGN_OR_RETURN(versions, follower_->CurrentTogether(indexes, StopCondition::Of(options)));
  } else {
    // Until these are released, the database is open.
    std::vector<std::shared_lock<std::shared_mutex>> column_families;
    for (const auto& index : indexes) {
      column_families.push_back(index->HoldColumnFamily());
      RETURN_IF_ERROR(index->Ready().status());
    }
    LookupOptions at = options;
    if (at.snapshot == nullptr) at.snapshot = follower_->snapshots().Take();
    const absl::Cleanup release = [&] {
      if (options.snapshot == nullptr) follower_->snapshots().Release(at.snapshot);
    };
    for (const auto& index : indexes) {
      ASSIGN_OR_RETURN(LogFollower::State state, StateOf(*index, at));
      versions.push_back(std::move(state.version));
    }
  }
  std::vector<IndexGroup::Member> members;
  for (auto& version : versions) members.push_back({OverVersion(std::move(version))});
  return groups_.Create(names, std::move(members), /*keep=*/is_latest);
}

absl::StatusOr<FoundKeys> IndexSet::Lookup(const std::string& name, const KeyQuery& keys,
                                           const LookupOptions& options) const {
  ASSIGN_OR_RETURN(const std::shared_ptr<FollowedIndex> index, indexes_.Find(name));
  ASSIGN_OR_RETURN(auto version, VersionOf(*index, options));
  FoundKeys found;
  RETURN_IF_ERROR(LookUpKeys(OpenIndex(std::move(version)), keys, options, &found));
  return found;
}

absl::StatusOr<FoundRows> IndexSet::LookupRows(const std::string& name, const KeyQuery& keys,
                                               const LookupOptions& options) const {
  ASSIGN_OR_RETURN(const std::shared_ptr<FollowedIndex> index, indexes_.Find(name));
  return RowsOf(index, keys, options);
}

absl::StatusOr<FoundRows> IndexSet::RowsOf(const std::shared_ptr<FollowedIndex>& index,
                                           const KeyQuery& keys,
                                           const LookupOptions& options) const {
  RETURN_IF_ERROR(index->Ready().status());
  const auto column_family = index->HoldColumnFamily();
  ASSIGN_OR_RETURN(LogFollower::State state, StateOf(*index, options));
  const OpenIndex version(std::move(state.version));
  FoundRows found;
  // An index that ignores dropped rows may also have former keys of rows that a compaction filter
  // has changed.
  if (index->spec().dropped_rows != DroppedRows::kIgnore) {
    const auto read = [&](const StringList& keys, StringList* values,
                          std::vector<size_t>* value_of) {
      RETURN_IF_ERROR(ReadValues(db_->GetRootDB(), options.transaction, index->column_family(),
                                 state.snapshot->snapshot(), keys, StopCondition::Of(options),
                                 values, value_of));
      return CheckSameState(*index, state);
    };
    RETURN_IF_ERROR(LookUpRows(version, read, keys, options, &found));
    return found;
  }
  if (options.transaction != nullptr) {
    return absl::UnimplementedError(absl::StrFormat(
        "index %s ignores rows that compactions drop, so it cannot look up rows in a transaction; "
        "use Lookup and rocksdb::Transaction::Get",
        Quoted(index->name())));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<SnapshotSource> rows,
                   SourceAt(db_, index->column_family(), state.snapshot, Trial::kNone));
  RETURN_IF_ERROR(LookUpRows(version, *rows, keys, options, &found));
  return found;
}

absl::StatusOr<FoundRows> IndexSet::LookupForUpdate(const std::string& name, const KeyQuery& keys,
                                                    const LookupOptions& options) const {
  if (options.transaction == nullptr) {
    return absl::InvalidArgumentError("LookupForUpdate: expected a transaction, got none");
  }
  if (options.snapshot != nullptr) {
    return absl::InvalidArgumentError(
        "LookupForUpdate locks rows of the latest state, not of a snapshot");
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<FollowedIndex> index, indexes_.Find(name));
  const StopCondition stop = StopCondition::Of(options);
  std::set<std::string, std::less<>> locked;
  while (true) {
    ASSIGN_OR_RETURN(FoundRows found, RowsOf(index, keys, options));
    std::set<std::string_view> unlocked;  // in order, so that transactions rarely wait in a cycle
    for (const FoundRow& row : found) {
      if (!locked.contains(row.primary_key)) unlocked.insert(row.primary_key);
    }
    // A row that was locked before this lookup cannot have changed since.
    if (unlocked.empty()) return found;
    // This may wait for other transactions, so it does not hold the column family.
    for (const std::string_view primary_key : unlocked) {
      RETURN_IF_ERROR(stop.Check());
      const rocksdb::Status lock = options.transaction->GetForUpdate(
          rocksdb::ReadOptions(), index->column_family(), rocksdb::Slice(primary_key),
          static_cast<rocksdb::PinnableSlice*>(nullptr));
      if (!lock.ok() && !lock.IsNotFound()) {
        return FromRocksDb(lock, absl::StrFormat("cannot lock rows of index %s", Quoted(name)));
      }
      locked.emplace(primary_key);
    }
  }
}

absl::StatusOr<std::shared_ptr<const SecondaryIndex>> IndexSet::PinStale(
    const std::string& name) const {
  ASSIGN_OR_RETURN(std::shared_ptr<FollowedIndex> index, indexes_.Find(name));
  const std::shared_ptr<IndexWriter> writer = index->writer();
  if (writer == nullptr) {
    return absl::UnavailableError(absl::StrFormat("index %s has not been built yet", Quoted(name)));
  }
  return OverVersion(writer->version());
}

}  // namespace cairn
