#include "engine/live/live_index.h"

#include <string>
#include <utility>
#include <vector>
#include "cairn/aggregate.h"
#include "cairn/secondary_index.h"

namespace cairn {
namespace {

class Live final : public SecondaryIndex {
 public:
  Live(std::shared_ptr<const FollowedIndex> index, std::shared_ptr<LogFollower> follower)
      : index_(std::move(index)), follower_(std::move(follower)) {}

  const IndexSpec& spec() const override { return index_->spec(); }
  const KeyCodec& codec() const override { return index_->codec(); }
  SequenceNumber sequence() const override {
    const auto index = index_->index();
    return index == nullptr ? 0 : index->sequence();
  }

  absl::StatusOr<CatchUpReport> CatchUp(const SnapshotSource&, const CatchUpOptions&) override {
    return IsFollowed();
  }
  absl::Status Compact(const CompactOptions&) override { return IsFollowed(); }
  bool ShouldCompact() const override {
    const auto index = index_->index();
    return index != nullptr && index->ShouldCompact();
  }

  absl::Status Execute(const Batch& batch) const override {
    const auto now = Current(batch.options);
    return now.ok() ? (*now)->Execute(batch) : now.status();
  }
  absl::Duration PredictedTime(Operation operation, size_t queries) const override {
    const auto index = index_->index();
    return index == nullptr ? absl::ZeroDuration() : index->PredictedTime(operation, queries);
  }
  size_t BestBatch(Operation operation) const override {
    const auto index = index_->index();
    return index == nullptr ? 1 : index->BestBatch(operation);
  }

  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Pin(
      const QueryOptions& options) const override {
    const auto now = Current(options);
    return now.ok() ? (*now)->Pin(options) : now.status();
  }

  absl::Status PrimaryKeys(RowSpan rows, StringList* primary_keys) const override {
    const auto ready = index_->Ready();
    return ready.ok() ? (*ready)->PrimaryKeys(rows, primary_keys) : ready.status();
  }
  absl::Status Columns(RowSpan rows, absl::Span<const std::string> names,
                       std::vector<ColumnValues>* columns) const override {
    const auto ready = index_->Ready();
    return ready.ok() ? (*ready)->Columns(rows, names, columns) : ready.status();
  }
  absl::Status AggregateRanges(const RangeBatch& ranges, absl::Span<const Aggregate> aggregates,
                               std::vector<ColumnValues>* values,
                               const QueryOptions& options) const override {
    const auto now = Current(options);
    return now.ok() ? (*now)->AggregateRanges(ranges, aggregates, values, options) : now.status();
  }
  absl::Status AggregateGroups(const RangeBatch& ranges, size_t leading_parts,
                               absl::Span<const Aggregate> aggregates, const QueryOptions& options,
                               AggregateGroupsResult* groups) const override {
    const auto now = Current(options);
    return now.ok() ? (*now)->AggregateGroups(ranges, leading_parts, aggregates, options, groups)
                    : now.status();
  }
  absl::Status Fetch(const SnapshotSource& source, const RangeBatch& ranges,
                     const QueryOptions& options, FetchResult* rows) const override {
    const auto now = Current(options);
    return now.ok() ? (*now)->Fetch(source, ranges, options, rows) : now.status();
  }
  absl::Status Verify(const QueryOptions& options) const override {
    const auto ready = index_->Ready();
    return ready.ok() ? (*ready)->Verify(options) : ready.status();
  }
  absl::Status VerifyAgainst(const SnapshotSource& source, size_t max_differences,
                             std::vector<std::string>* differences,
                             const QueryOptions& options) const override {
    const auto now = Current(options);
    return now.ok() ? (*now)->VerifyAgainst(source, max_differences, differences, options)
                    : now.status();
  }
  absl::StatusOr<IndexStats> Stats() const override {
    const auto ready = index_->Ready();
    return ready.ok() ? (*ready)->Stats() : ready.status();
  }

 private:
  absl::StatusOr<std::shared_ptr<SecondaryIndex>> Current(const QueryOptions& options) const {
    return follower_->Current(*index_, StopCondition::Of(options));
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
