// IndexVersion's aggregates of groups.

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/aggregates/aggregate_plan.h"
#include "engine/aggregates/key_prefix.h"
#include "engine/version/aggregate_evaluator.h"
#include "engine/version/index_version.h"
#include "engine/version/range_spans.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// A group's cursor: 'g', the number of leading parts, and their prefix: of keys that are numbers in
// 8 bytes, big-endian.
constexpr char kGroupCursor = 'g';

std::string CursorOf(size_t parts, uint64_t prefix) {
  std::string cursor = {kGroupCursor, static_cast<char>(parts)};
  AppendBigEndian(prefix, sizeof prefix, &cursor);
  return cursor;
}
std::string CursorOf(size_t parts, std::string_view prefix) {
  std::string cursor = {kGroupCursor, static_cast<char>(parts)};
  return cursor.append(prefix);
}

template <typename Prefix>
absl::StatusOr<Prefix> ReadCursor(std::string_view cursor, size_t parts, size_t range) {
  constexpr bool kIsNumber = std::is_same_v<Prefix, uint64_t>;
  if (cursor.size() < 2 || cursor[0] != kGroupCursor || cursor[1] != static_cast<char>(parts) ||
      (kIsNumber && cursor.size() != 2 + sizeof(uint64_t))) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "range %d: expected the cursor of a group of %d leading parts, found something else", range,
        parts));
  }
  if constexpr (kIsNumber) {
    return ReadBigEndian(cursor.substr(2));
  } else {
    return cursor.substr(2);
  }
}

// Goes through the groups of ranges. Key is uint32_t, uint64_t or std::string_view.
//
// A group's entries are side by side in each run, so that its end there is found by a search from
// its beginning, and it is skipped whole.
template <typename Key>
class GroupWalk {
 public:
  GroupWalk(const IndexVersion& version, const RangeBatch& ranges, size_t parts,
            const AggregatePlan& plan, const GroupOptions& options, int threads, Groups* groups)
      : ranges_(ranges),
        parts_(parts),
        options_(options),
        prefixes_(version.base->codec, parts),
        evaluator_(version, plan, threads),
        runs_(RunsOf(*version.delta)),
        spans_(runs_.size(), kQueryChunk),
        groups_(groups) {}

  // Takes ranges from number `at` on, which lie at `spans`.
  absl::Status Take(const RunSpans& spans, size_t at) {
    for (size_t i = 0; i < spans.size(); ++i) {
      for (size_t r = 0; r < runs_.size(); ++r) {
        runs_[r].begin = spans.begin(r)[i];
        runs_[r].end = std::max(spans.begin(r)[i], spans.end(r)[i]);
      }
      RETURN_IF_ERROR(TakeRange(at + i));
    }
    return absl::OkStatus();
  }
  // To be called behind the last one.
  absl::Status Finish() { return Evaluate(); }

 private:
  using Prefix = typename KeyPrefixes<Key>::Prefix;

  absl::Status TakeRange(size_t range) {
    if (!ranges_.after.empty() && !ranges_.after[range].empty()) {
      ASSIGN_OR_RETURN(const Prefix prefix,
                       ReadCursor<Prefix>(ranges_.after[range], parts_, range));
      for (RunRange& run : runs_) {
        run.begin =
            FirstBehind(run, [&](const Key& key) { return prefixes_.HasOrIsBefore(prefix, key); });
      }
    }
    std::string cursor;
    Prefix last = {};
    for (uint64_t count = 0; options_.limit != 0; ++count) {
      const RunRange* const least = Least();
      if (least == nullptr) break;
      if (count == options_.limit) {
        cursor = CursorOf(parts_, last);
        break;
      }
      ASSIGN_OR_RETURN(last, prefixes_.Of(ColumnOf<Key>(*least->run)[least->begin]));
      RETURN_IF_ERROR(TakeGroup(last));
    }
    groups_->offsets.push_back(size_);
    groups_->cursors.push_back(std::move(cursor));
    return absl::OkStatus();
  }

  // The run that has the least key that is left, at its beginning; null where none has any.
  const RunRange* Least() {
    const RunRange* least = nullptr;
    for (RunRange& run : runs_) {
      run.begin = run.removed->FirstAbsent(run.begin, run.end);
      if (run.begin == run.end) continue;
      if (least == nullptr ||
          ColumnOf<Key>(*run.run)[run.begin] < ColumnOf<Key>(*least->run)[least->begin]) {
        least = &run;
      }
    }
    return least;
  }

  absl::Status TakeGroup(const Prefix& prefix) {
    if (spans_.full()) RETURN_IF_ERROR(Evaluate());
    RETURN_IF_ERROR(prefixes_.AppendValues(prefix, &groups_->keys));
    Runs group = runs_;
    for (size_t r = 0; r < runs_.size(); ++r) {
      const auto column = ColumnOf<Key>(*runs_[r].run);
      runs_[r].begin = group[r].end = Gallop(
          runs_[r].begin, runs_[r].end, [&](size_t p) { return prefixes_.Has(prefix, column[p]); });
    }
    spans_.Append(group);
    ++size_;
    return absl::OkStatus();
  }

  // The first position of a run whose key is not `before`.
  template <typename Before>
  static uint64_t FirstBehind(const RunRange& run, Before before) {
    const auto column = ColumnOf<Key>(*run.run);
    uint64_t first = run.begin;
    for (uint64_t last = run.end; first < last;) {
      const uint64_t middle = first + (last - first) / 2;
      (before(column[middle]) ? first : last) = before(column[middle]) ? middle + 1 : middle;
    }
    return first;
  }

  absl::Status Evaluate() {
    const size_t first = size_ - spans_.size();
    const absl::Status status = evaluator_.Append(
        spans_, [&](size_t i) { return Described(first + i); }, absl::MakeSpan(groups_->values));
    spans_.Clear();
    return status;
  }

  std::string Described(size_t group) const {
    std::string text = "group ";
    for (const ColumnValues& part : groups_->keys) {
      absl::StrAppend(&text, &part == groups_->keys.data() ? "" : ",",
                      cairn::Described(part.value(group)));
    }
    return text;
  }

  const RangeBatch& ranges_;
  const size_t parts_;
  const GroupOptions& options_;
  const KeyPrefixes<Key> prefixes_;
  AggregateEvaluator evaluator_;
  Runs runs_;
  RunSpans spans_;   // of groups that are not evaluated yet
  size_t size_ = 0;  // groups so far
  Groups* const groups_;
};

}  // namespace

absl::Status IndexVersion::AggregateGroups(const RangeBatch& ranges, size_t leading_parts,
                                           absl::Span<const Aggregate> aggregates,
                                           const GroupOptions& options, int threads,
                                           Groups* groups) const {
  const absl::Span<const KeyType> parts = base->codec.parts();
  if (leading_parts < 1 || leading_parts > parts.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected groups by 1 to %d leading parts of the key, found %d",
                        parts.size(), leading_parts));
  }
  if (!ranges.after.empty() && ranges.after.size() != ranges.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d cursors for %d ranges", ranges.after.size(), ranges.size()));
  }
  ASSIGN_OR_RETURN(const AggregatePlan plan, AggregatePlan::Make(delta->base_columns, aggregates));
  const int all_threads = Topology::Get().Threads(threads);
  RETURN_IF_ERROR(base->Prove(all_threads));
  RangeBatch whole = ranges;
  whole.after = {};
  RangePositions positions;
  RETURN_IF_ERROR(positions.Find(*base, whole));
  groups->offsets.assign(1, 0);
  groups->cursors.clear();
  groups->keys.clear();
  for (size_t i = 0; i < leading_parts; ++i) groups->keys.emplace_back(parts[i]);
  groups->values = plan.Columns();
  const IndexVersion asked = ToAsk(ranges.size());
  return WithPhysicalKey(delta->base_run.kind(), [&](auto type) -> absl::Status {
    GroupWalk<typename decltype(type)::type> walk(asked, ranges, leading_parts, plan, options,
                                                  all_threads, groups);
    RETURN_IF_ERROR(
        ForEachSpans(*asked.delta, whole, positions, 0, ranges.size(),
                     [&](const RunSpans& spans, size_t at) { return walk.Take(spans, at); }));
    return walk.Finish();
  });
}

}  // namespace cairn
