#include "engine/live/live_index.h"

#include <string>
#include <utility>
#include <vector>

#include "cairn/aggregate.h"
#include "cairn/secondary_index.h"
#include "engine/shards/open_index.h"
#include "index/machine/guard.h"

namespace cairn {
namespace {

class Live final : public SecondaryIndex {
 public:
  Live(std::shared_ptr<const FollowedIndex> index, std::shared_ptr<LogFollower> follower)
      : index_(std::move(index)), follower_(std::move(follower)) {}

  const IndexSpec& spec() const override { return index_->spec(); }
  const KeyCodec& codec() const override { return index_->codec(); }
  SequenceNumber sequence() const override {
    const auto writer = index_->writer();
    return writer == nullptr ? 0 : writer->version()->sequence;
  }

  absl::StatusOr<CatchUpReport> CatchUp(const SnapshotSource&, const CatchUpOptions&) override {
    return IsFollowed();
  }
  absl::Status Compact(const CompactOptions&) override { return IsFollowed(); }
  bool ShouldCompact() const override {
    const auto writer = index_->writer();
    return writer != nullptr && writer->ShouldCompact();
  }

  absl::Status Execute(const Batch& batch) const override {
    return AtNow(batch.options, [&](const OpenIndex& now) { return now.Execute(batch); });
  }
  absl::Duration PredictedTime(Operation operation, size_t queries) const override {
    const auto writer = index_->writer();
    return writer == nullptr ? absl::ZeroDuration()
                             : OpenIndex(writer->version()).PredictedTime(operation, queries);
  }
  size_t BestBatch(Operation operation) const override {
    const auto writer = index_->writer();
    return writer == nullptr ? 1 : OpenIndex(writer->version()).BestBatch(operation);
  }

  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Pin(
      const QueryOptions& options) const override {
    return Guarded(
        "pinning an index", [&]() -> absl::StatusOr<std::shared_ptr<const SecondaryIndex>> {
          ASSIGN_OR_RETURN(auto version, follower_->Current(*index_, StopCondition::Of(options)));
          return OverVersion(std::move(version));
        });
  }

  using SecondaryIndex::Lookup;
  absl::Status Lookup(const KeyQuery& keys, const LookupOptions& options,
                      FoundKeys* found) const override {
    absl::Status s =
        AtNow(options, [&](const OpenIndex& now) { return now.Lookup(keys, options, found); });
    if (!s.ok()) *found = {};
    return s;
  }
  absl::Status PrimaryKeys(RowSpan rows, StringList* primary_keys) const override {
    return AtReady([&](const OpenIndex& ready) { return ready.PrimaryKeys(rows, primary_keys); });
  }
  absl::Status Columns(RowSpan rows, absl::Span<const std::string> names,
                       std::vector<ColumnValues>* columns) const override {
    return AtReady([&](const OpenIndex& ready) { return ready.Columns(rows, names, columns); });
  }
  absl::Status AggregateRanges(const RangeBatch& ranges, absl::Span<const Aggregate> aggregates,
                               std::vector<ColumnValues>* values,
                               const QueryOptions& options) const override {
    return AtNow(options, [&](const OpenIndex& now) {
      return now.AggregateRanges(ranges, aggregates, values, options);
    });
  }
  absl::Status AggregateGroups(const RangeBatch& ranges, size_t leading_parts,
                               absl::Span<const Aggregate> aggregates, const QueryOptions& options,
                               AggregateGroupsResult* groups) const override {
    return AtNow(options, [&](const OpenIndex& now) {
      return now.AggregateGroups(ranges, leading_parts, aggregates, options, groups);
    });
  }
  absl::Status Fetch(const SnapshotSource& source, const RangeBatch& ranges,
                     const QueryOptions& options, FetchResult* rows) const override {
    return AtNow(options,
                 [&](const OpenIndex& now) { return now.Fetch(source, ranges, options, rows); });
  }
  absl::Status Verify(const QueryOptions& options) const override {
    return AtReady([&](const OpenIndex& ready) { return ready.Verify(options); });
  }
  absl::Status VerifyAgainst(const SnapshotSource& source, size_t max_differences,
                             std::vector<std::string>* differences,
                             const QueryOptions& options) const override {
    return AtNow(options, [&](const OpenIndex& now) {
      return now.VerifyAgainst(source, max_differences, differences, options);
    });
  }
  absl::StatusOr<IndexStats> Stats() const override {
    return AtReady([&](const OpenIndex& ready) { return ready.Stats(); });
  }

 private:
  // Returns query(index) at the state with all commits that returned before the call.
  template <typename Options, typename Query>
  absl::Status AtNow(const Options& options, const Query& query) const {
    return Guarded("querying an index", [&]() -> absl::Status {
      ASSIGN_OR_RETURN(auto version, follower_->Current(*index_, StopCondition::Of(options)));
      return query(OpenIndex(std::move(version)));
    });
  }
  // The same at the state that the index has, if it is ready.
  template <typename Query>
  auto AtReady(const Query& query) const -> decltype(query(std::declval<const OpenIndex&>())) {
    using Result = decltype(query(std::declval<const OpenIndex&>()));
    return Guarded("querying an index", [&]() -> Result {
      ASSIGN_OR_RETURN(const auto writer, index_->Ready());
      return query(OpenIndex(writer->version()));
    });
  }
  static absl::Status IsFollowed() {
    return absl::FailedPreconditionError("an IndexedDB catches up and compacts its indexes itself");
  }

  const std::shared_ptr<const FollowedIndex> index_;
  const std::shared_ptr<LogFollower> follower_;
};

}  // namespace

std::shared_ptr<const SecondaryIndex> LiveIndex(std::shared_ptr<const FollowedIndex> index,
                                                std::shared_ptr<LogFollower> follower) {
  return std::make_shared<Live>(std::move(index), std::move(follower));
}

}  // namespace cairn
