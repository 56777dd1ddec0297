#include "engine/aggregates/combined_parts.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/aggregates/aggregate_part.h"
#include "engine/aggregates/aggregate_results.h"
#include "engine/aggregates/group_results.h"
#include "engine/aggregates/key_prefix.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

absl::Status CheckQueriesOf(const AggregatePart& part, size_t number, size_t ranges) {
  for (const uint32_t query : part.queries) {
    if (query < ranges) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("part %d: expected a range below %d, got %d", number, ranges, query));
  }
  return absl::OkStatus();
}

absl::Status InPart(const absl::Status& status, size_t number) {
  return absl::Status(status.code(),
                      absl::StrCat("part ", number, ": ", std::string(status.message())));
}

// Combines the groups of parts. Key is uint32_t, uint64_t or std::string_view.
template <typename Key>
class GroupParts {
 public:
  GroupParts(const AggregatePlan& plan, const KeyCodec& codec, size_t leading_parts, uint64_t limit,
             AggregateGroupsResult* groups)
      : plan_(plan), limit_(limit), prefixes_(codec, leading_parts), groups_(groups) {}

  // Adds a part and the ranges that it covers.
  void Add(GroupResults part, absl::Span<const uint32_t> queries) {
    partial_.push_back({std::move(part.results), std::vector<uint32_t>(part.prefixes.size())});
    found_.push_back(std::move(part));
    for (size_t i = 0; i < queries.size(); ++i) {
      pieces_.push_back({queries[i], static_cast<uint32_t>(found_.size() - 1), i});
    }
  }

  absl::Status Run(size_t ranges) {
    std::sort(pieces_.begin(), pieces_.end());
    auto piece = pieces_.cbegin();
    for (size_t range = 0; range < ranges; ++range) {
      const auto first = piece;
      while (piece != pieces_.cend() && std::get<0>(*piece) == range) ++piece;
      RETURN_IF_ERROR(TakeRange(first, piece));
    }
    // All groups beyond the limit share one extra group, whose results are not returned.
    for (PartialResults& part : partial_) {
      for (uint32_t& group : part.ranges) group = std::min(group, size_);
    }
    const AggregateResults results = CombineResults(plan_, partial_, size_t{size_} + 1);
    return results.Output(
        plan_, size_, [&](size_t i) { return GroupText(groups_->keys, i); },
        absl::MakeSpan(groups_->values));
  }

 private:
  using Prefix = typename KeyPrefixes<Key>::Prefix;
  using Pieces = std::vector<std::tuple<uint32_t, uint32_t, size_t>>;  // range, part, range in the
                                                                       // part
  static constexpr uint32_t kBeyond = std::numeric_limits<uint32_t>::max();

  struct OfPart {
    std::string_view prefix;
    uint32_t part;
    uint64_t group;  // of the part
  };

  absl::Status TakeRange(Pieces::const_iterator first, Pieces::const_iterator last) {
    range_.clear();
    bool more = false;
    std::optional<uint64_t> tag;
    for (auto piece = first; piece != last; ++piece) {
      const auto& [range, part, i] = *piece;
      const GroupResults& found = found_[part];
      if (tag.value_or(found.tags[i]) != found.tags[i]) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "part %d: expected results of the same range %d as other parts, got those of another "
            "one",
            part, range));
      }
      tag = found.tags[i];
      more |= found.more[i] != 0;
      for (uint64_t g = found.offsets[i]; g < found.offsets[i + 1]; ++g) {
        range_.push_back({found.prefixes[g], part, g});
      }
    }
    std::sort(range_.begin(), range_.end(), [](const OfPart& a, const OfPart& b) {
      return std::tie(a.prefix, a.part) < std::tie(b.prefix, b.part);
    });
    std::string_view prefix;
    uint64_t count = 0;
    for (const OfPart& group : range_) {
      const bool next = count == 0 || group.prefix != prefix;
      if (next && count == limit_) {
        more = true;
        for (const OfPart* beyond = &group; beyond != range_.data() + range_.size(); ++beyond) {
          partial_[beyond->part].ranges[beyond->group] = kBeyond;
        }
        break;
      }
      if (next) RETURN_IF_ERROR(Begin(prefix = group.prefix));
      count += next ? 1 : 0;
      partial_[group.part].ranges[group.group] = size_ - 1;
    }
    groups_->offsets.push_back(size_);
    groups_->cursors.push_back(more && count != 0 ? GroupCursor(CursorTag(*tag), prefix)
                                                  : std::string());
    return absl::OkStatus();
  }

  // Begins the next group.
  absl::Status Begin(std::string_view bytes) {
    if (size_ == kBeyond - 1) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("more than %d groups; set QueryOptions::limit", size_));
    }
    ASSIGN_OR_RETURN(const Prefix prefix, PrefixOf<Prefix>(bytes));
    RETURN_IF_ERROR(prefixes_.AppendValues(prefix, &groups_->keys));
    ++size_;
    return absl::OkStatus();
  }

  const AggregatePlan& plan_;
  const uint64_t limit_;
  const KeyPrefixes<Key> prefixes_;
  std::vector<GroupResults> found_;      // of each part, without its results
  std::vector<PartialResults> partial_;  // the results, and the group of each
  Pieces pieces_;
  std::vector<OfPart> range_;  // the groups of the current range
  uint32_t size_ = 0;          // groups so far
  AggregateGroupsResult* const groups_;
};

}  // namespace

absl::Status CombineRangeParts(const AggregatePlan& plan, const KeyCodec& codec, size_t ranges,
                               absl::Span<const AggregatePart> parts,
                               std::vector<ColumnValues>* values) {
  std::vector<PartialResults> partial;
  for (const AggregatePart& part : parts) {
    const size_t number = partial.size();
    RETURN_IF_ERROR(CheckQueriesOf(part, number, ranges));
    absl::StatusOr<AggregateResults> results =
        DecodeRanges(plan, codec.kind(), part.queries.size(), part.results);
    if (!results.ok()) return InPart(results.status(), number);
    partial.push_back(
        {*std::move(results), std::vector<uint32_t>(part.queries.begin(), part.queries.end())});
  }
  *values = plan.Columns();
  return CombineResults(plan, partial, ranges)
      .Output(
          plan, ranges, [](size_t i) { return absl::StrFormat("range %d", i); },
          absl::MakeSpan(*values));
}

absl::Status CombineGroupParts(const AggregatePlan& plan, const KeyCodec& codec, size_t ranges,
                               size_t leading_parts, const QueryOptions& options,
                               absl::Span<const AggregatePart> parts,
                               AggregateGroupsResult* groups) {
  groups->offsets.assign(1, 0);
  groups->cursors.clear();
  groups->keys.clear();
  for (size_t i = 0; i < leading_parts; ++i) groups->keys.emplace_back(codec.parts()[i]);
  groups->values = plan.Columns();
  return WithPhysicalKey(codec.kind(), [&](auto type) -> absl::Status {
    GroupParts<typename decltype(type)::type> all(plan, codec, leading_parts, options.limit,
                                                  groups);
    for (size_t p = 0; p < parts.size(); ++p) {
      RETURN_IF_ERROR(CheckQueriesOf(parts[p], p, ranges));
      absl::StatusOr<GroupResults> part =
          DecodeGroups(plan, codec.kind(), parts[p].queries.size(), parts[p].results);
      if (!part.ok()) return InPart(part.status(), p);
      all.Add(*std::move(part), parts[p].queries);
    }
    return all.Run(ranges);
  });
}

}  // namespace cairn
