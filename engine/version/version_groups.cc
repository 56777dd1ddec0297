// IndexVersion's aggregates of groups.

#include <algorithm>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/aggregates/aggregate_plan.h"
#include "engine/aggregates/aggregate_results.h"
#include "engine/aggregates/group_results.h"
#include "engine/aggregates/key_prefix.h"
#include "engine/aggregates/shared_keys.h"
#include "engine/version/aggregate_evaluator.h"
#include "engine/version/index_version.h"
#include "engine/version/range_chunk.h"
#include "engine/version/range_spans.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/machine/topology.h"
#include "index/query/batch_check.h"

namespace cairn {
namespace {

// Groups between two checks of the flag.
constexpr size_t kGroupsTogether = 64;

template <typename Prefix>
absl::StatusOr<Prefix> ReadCursor(const CursorTag& tag, const RangeBatch& ranges, size_t range) {
  ASSIGN_OR_RETURN(const std::string_view bytes, ReadGroupCursor(tag, ranges, range));
  absl::StatusOr<Prefix> prefix = PrefixOf<Prefix>(bytes);
  if (prefix.ok()) return prefix;
  return absl::InvalidArgumentError(
      absl::StrFormat("range %d: not a cursor of this index's groups: %s", range,
                      std::string(prefix.status().message())));
}

// Walks through the groups of ranges of several versions, and computes values from their results,
// or keeps the results of a single version. Key is uint32_t, uint64_t or std::string_view.
//
// A group's entries are contiguous in each run, so its end is found by a search from its start, and
// the group is skipped as a whole.
template <typename Key>
class GroupWalk {
 public:
  // `threads` is at least 1; all arguments must outlive it. One of `groups` and `results` is null.
  GroupWalk(absl::Span<const IndexVersion* const> versions, const SharedKeys* shared,
            const RangeBatch& ranges, size_t parts, const AggregatePlan& plan,
            const QueryOptions& options, int threads, AggregateGroupsResult* groups,
            GroupResults* results)
      : ranges_(ranges),
        parts_(parts),
        plan_(plan),
        options_(options),
        stop_(StopCondition::Of(options)),
        prefixes_(versions[0]->base->codec, parts),
        shared_(shared),
        repeats_(kQueryChunk),
        groups_(groups),
        results_(results) {
    for (const IndexVersion* version : versions) {
      versions_.push_back(
          std::make_unique<OfVersion>(*version, versions_.size(), plan, ranges, threads));
    }
    partial_.resize(versions.size() > 1 ? versions.size() : 0, {AggregateResults(plan), {}});
  }

  // Walks through all ranges. `whole`: the same ranges without cursors.
  absl::Status Run(const RangeBatch& whole) {
    for (const auto& version : versions_) {
      RETURN_IF_ERROR(version->positions.Find(*version->version.base, whole, stop_));
    }
    const size_t size = whole.size();
    for (size_t at = 0; at < size; at += kQueryChunk) {
      const size_t some = std::min(kQueryChunk, size - at);
      for (const auto& version : versions_) {
        const RangePositions& found = version->positions;
        version->chunk.Take(at, absl::MakeConstSpan(found.begin).subspan(at, some),
                            absl::MakeConstSpan(found.end).subspan(at, some));
      }
      RETURN_IF_ERROR(stop_.Check());
      for (size_t i = 0; i < some; ++i) {
        for (const auto& version : versions_) version->Begin(i);
        RETURN_IF_ERROR(TakeRange(at + i));
      }
    }
    return Evaluate();
  }

 private:
  using Prefix = typename KeyPrefixes<Key>::Prefix;

  // One version, and the rest of a range in it.
  struct OfVersion {
    OfVersion(const IndexVersion& of, size_t at, const AggregatePlan& plan,
              const RangeBatch& ranges, int threads)
        : version(of),
          number(at),
          chunk(*of.delta, ranges, std::min(kQueryChunk, ranges.size())),
          evaluator(of, plan, threads),
          runs(RunsOf(*of.delta)),
          spans(runs.size(), kQueryChunk) {}

    // Begins the i-th range of the chunk.
    void Begin(size_t i) {
      const absl::Span<RunRange> found = chunk.Get(i);
      for (size_t r = 0; r < runs.size(); ++r) {
        runs[r].begin = found[r].begin;
        runs[r].end = std::max(found[r].begin, found[r].end);  // crossed ends contain nothing
      }
    }
    // Finds the lowest remaining key. Returns false if there is none.
    bool FindLeast() {
      bool any = false;
      for (RunRange& run : runs) {
        run.begin = run.removed->FirstAbsent(run.begin, run.end);
        if (run.begin == run.end) continue;
        const Key key = ColumnOf<Key>(*run.run)[run.begin];
        if (!any || key < least) least = key;
        any = true;
      }
      return any;
    }

    const IndexVersion& version;
    const size_t number;
    RangePositions positions;
    RangeChunk<Key> chunk;
    AggregateEvaluator evaluator;
    Runs runs;
    Key least = {};
    RunSpans spans;  // of groups that are not evaluated yet
  };

  struct IsLater {
    bool operator()(const OfVersion* a, const OfVersion* b) const { return b->least < a->least; }
  };
  // Adds a version to the heap if it has remaining entries.
  void Push(OfVersion* version) {
    if (version->FindLeast()) heap_.push(version);
  }
  OfVersion* Pop() {
    OfVersion* const version = heap_.top();
    heap_.pop();
    return version;
  }

  // The tag of a range's cursors.
  CursorTag TagOf(size_t range) const {
    return CursorTag::OfGroups(versions_[0]->version.base->cursor_checksum, ranges_, range, parts_);
  }

  absl::Status TakeRange(size_t range) {
    if (!ranges_.after.empty() && !ranges_.after[range].empty()) {
      ASSIGN_OR_RETURN(const Prefix prefix, ReadCursor<Prefix>(TagOf(range), ranges_, range));
      for (const auto& version : versions_) {
        for (RunRange& run : version->runs) {
          const auto column = ColumnOf<Key>(*run.run);
          run.begin = PartitionPoint(run.begin, run.end, [&](uint64_t p) {
            return prefixes_.HasOrIsBefore(prefix, column[p]);
          });
        }
      }
    }
    if (shared_ != nullptr) shared_left_ = shared_->Find(ranges_, range);
    heap_ = {};
    if (options_.limit != 0) {
      for (const auto& version : versions_) Push(version.get());
    }
    Prefix last = {};
    for (uint64_t count = 0; !heap_.empty() && count < options_.limit; ++count) {
      ASSIGN_OR_RETURN(last, prefixes_.Of(heap_.top()->least));
      RETURN_IF_ERROR(TakeGroup(last));
    }
    if (results_ != nullptr) {
      results_->offsets.push_back(size_);
      results_->more.push_back(heap_.empty() ? 0 : 1);
      results_->tags.push_back(TagOf(range).checksum());
      return absl::OkStatus();
    }
    groups_->offsets.push_back(size_);
    groups_->cursors.push_back(heap_.empty() ? std::string()
                                             : GroupCursor(TagOf(range), PrefixBytes(last)));
    return absl::OkStatus();
  }

  absl::Status TakeGroup(const Prefix& prefix) {
    if (pending_ == kQueryChunk) RETURN_IF_ERROR(Evaluate());
    if (size_ % kGroupsTogether == 0) RETURN_IF_ERROR(stop_.Check());
    if (results_ != nullptr) {
      results_->prefixes.Append(PrefixBytes(prefix));
    } else {
      RETURN_IF_ERROR(prefixes_.AppendValues(prefix, &groups_->keys));
    }
    while (!heap_.empty() && prefixes_.Has(prefix, heap_.top()->least)) {
      OfVersion* const version = Pop();
      Runs group = version->runs;
      for (size_t r = 0; r < group.size(); ++r) {
        RunRange& run = version->runs[r];
        const auto column = ColumnOf<Key>(*run.run);
        run.begin = group[r].end =
            Gallop(run.begin, run.end, [&](size_t p) { return prefixes_.Has(prefix, column[p]); });
      }
      version->spans.Append(group);
      if (!partial_.empty()) {
        partial_[version->number].ranges.push_back(static_cast<uint32_t>(pending_));
      }
      Push(version);
    }
    repeats_[pending_] = shared_ == nullptr ? 0 : TakeShared(prefix);
    ++pending_;
    ++size_;
    return absl::OkStatus();
  }

  // How often keys of the group are counted too often.
  uint64_t TakeShared(const Prefix& prefix) {
    const EncodedKeys& keys = shared_->keys();
    SharedKeys::Stretch group = shared_left_;
    group.begin = PartitionPoint(group.begin, group.end, [&](uint64_t i) {
      const Key key = KeyAt<Key>(keys, i);
      return prefixes_.HasOrIsBefore(prefix, key) && !prefixes_.Has(prefix, key);
    });
    group.end = Gallop(group.begin, group.end,
                       [&](size_t i) { return prefixes_.Has(prefix, KeyAt<Key>(keys, i)); });
    shared_left_.begin = group.end;
    return shared_->Repeats(group);
  }

  // Evaluates the pending groups.
  absl::Status Evaluate() {
    if (results_ != nullptr) {
      AggregateResults next(plan_);
      RETURN_IF_ERROR(versions_[0]->evaluator.Evaluate(versions_[0]->spans, &next));
      versions_[0]->spans.Clear();
      pending_ = 0;
      results_->results.Append(next);
      return absl::OkStatus();
    }
    const size_t first = size_ - pending_;
    const auto described = [&](size_t i) { return GroupText(groups_->keys, first + i); };
    const auto columns = absl::MakeSpan(groups_->values);
    const size_t count = std::exchange(pending_, 0);
    if (partial_.empty()) {
      const absl::Status status =
          versions_[0]->evaluator.Append(versions_[0]->spans, described, columns);
      versions_[0]->spans.Clear();
      return status;
    }
    for (size_t v = 0; v < versions_.size(); ++v) {
      if (partial_[v].ranges.empty()) continue;
      RETURN_IF_ERROR(versions_[v]->evaluator.Evaluate(versions_[v]->spans, &partial_[v].results));
    }
    AggregateResults results = CombineResults(plan_, partial_, count);
    for (size_t i = 0; i < results.keys.size(); ++i) results.keys[i] -= repeats_[i];
    for (size_t v = 0; v < versions_.size(); ++v) {
      versions_[v]->spans.Clear();
      partial_[v].ranges.clear();
    }
    return results.Output(plan_, count, described, columns);
  }

  const RangeBatch& ranges_;
  const size_t parts_;
  const AggregatePlan& plan_;
  const QueryOptions& options_;
  const StopCondition stop_;
  const KeyPrefixes<Key> prefixes_;
  const SharedKeys* const shared_;
  SharedKeys::Stretch shared_left_;  // the rest of the range's
  std::vector<std::unique_ptr<OfVersion>> versions_;
  // Versions with remaining entries; the top has the lowest key.
  std::priority_queue<OfVersion*, std::vector<OfVersion*>, IsLater> heap_;
  std::vector<PartialResults> partial_;  // of each version, if there are several
  std::vector<uint64_t> repeats_;        // of the pending groups
  size_t pending_ = 0;                   // groups that are not evaluated yet
  size_t size_ = 0;                      // groups so far
  AggregateGroupsResult* const groups_;
  GroupResults* const results_;
};

// Checks the arguments of a query of groups.
absl::Status CheckGroups(const IndexVersion& version, const RangeBatch& ranges,
                         size_t leading_parts) {
  RETURN_IF_ERROR(CheckLeadingParts(version.base->codec, leading_parts));
  if (!ranges.after.empty() && ranges.after.size() != ranges.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d cursors for %d ranges", ranges.after.size(), ranges.size()));
  }
  return absl::OkStatus();
}

// Runs a walk with checked arguments.
absl::Status Walk(absl::Span<const IndexVersion* const> versions, const SharedKeys* shared,
                  const RangeBatch& ranges, size_t leading_parts, const AggregatePlan& plan,
                  const QueryOptions& options, int threads, AggregateGroupsResult* groups,
                  GroupResults* results) {
  const int all_threads = Topology::Get().Threads(threads);
  for (const IndexVersion* version : versions) RETURN_IF_ERROR(version->base->Prove(all_threads));
  RangeBatch whole = ranges;
  whole.after = {};
  RETURN_IF_ERROR(CheckQueries(versions[0]->base->codec.kind(), Batch::Scan(whole, nullptr)));
  return WithPhysicalKey(versions[0]->delta->base_run.kind(), [&](auto type) -> absl::Status {
    GroupWalk<typename decltype(type)::type> walk(versions, plan.counts_keys ? shared : nullptr,
                                                  ranges, leading_parts, plan, options, all_threads,
                                                  groups, results);
    return walk.Run(whole);
  });
}

}  // namespace

absl::Status AggregateGroupsOf(absl::Span<const IndexVersion* const> versions,
                               const SharedKeys* shared, const RangeBatch& ranges,
                               size_t leading_parts, absl::Span<const Aggregate> aggregates,
                               const QueryOptions& options, int threads,
                               AggregateGroupsResult* groups) {
  const IndexVersion& first = *versions[0];
  RETURN_IF_ERROR(CheckGroups(first, ranges, leading_parts));
  ASSIGN_OR_RETURN(const AggregatePlan plan,
                   AggregatePlan::Make(first.delta->base_columns.columns(), aggregates));
  groups->offsets.assign(1, 0);
  groups->cursors.clear();
  groups->keys.clear();
  for (size_t i = 0; i < leading_parts; ++i) {
    groups->keys.emplace_back(first.base->codec.parts()[i]);
  }
  groups->values = plan.Columns();
  return Walk(versions, shared, ranges, leading_parts, plan, options, threads, groups, nullptr);
}

absl::Status IndexVersion::AggregateGroups(const RangeBatch& ranges, size_t leading_parts,
                                           absl::Span<const Aggregate> aggregates,
                                           const QueryOptions& options, int threads,
                                           AggregateGroupsResult* groups) const {
  const IndexVersion* const self = this;
  return AggregateGroupsOf(absl::MakeConstSpan(&self, 1), nullptr, ranges, leading_parts,
                           aggregates, options, threads, groups);
}

absl::Status IndexVersion::AggregateGroups(const RangeBatch& ranges, size_t leading_parts,
                                           const AggregatePlan& plan, const QueryOptions& options,
                                           int threads, GroupResults* results) const {
  RETURN_IF_ERROR(CheckGroups(*this, ranges, leading_parts));
  const IndexVersion* const self = this;
  *results = GroupResults(plan);
  return Walk(absl::MakeConstSpan(&self, 1), nullptr, ranges, leading_parts, plan, options, threads,
              nullptr, results);
}

}  // namespace cairn
