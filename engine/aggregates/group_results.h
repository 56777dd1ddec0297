#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "engine/aggregates/aggregate_plan.h"
#include "engine/aggregates/aggregate_results.h"
#include "engine/util/cursor_tag.h"

namespace cairn {

// One index's groups of each range of a batch, before output values are computed. Plain data.
struct GroupResults {
  explicit GroupResults(const AggregatePlan& plan) : results(plan) {}

  std::vector<uint64_t> offsets = {0};  // as AggregateGroupsResult::offsets
  std::vector<uint64_t> tags;           // CursorTag::OfGroups of each range
  StringList prefixes;                  // of each group (PrefixBytes)
  std::vector<uint8_t> more;            // whether a limit cut off groups of each range
  AggregateResults results;             // of each group
};

// InvalidArgument: these keys have fewer leading parts, or `parts` is 0.
absl::Status CheckLeadingParts(const KeyCodec& codec, size_t parts);

// Returns the common prefix of a group's keys (KeyPrefixes) as bytes, which compare as the groups
// do. For keys that are numbers: 8 bytes, big-endian.
std::string PrefixBytes(uint64_t prefix);
inline std::string_view PrefixBytes(std::string_view prefix) {
  return prefix;
}
// Prefix is uint64_t or std::string_view; the latter is a view of `bytes`. InvalidArgument: the
// bytes have the wrong size.
template <typename Prefix>
absl::StatusOr<Prefix> PrefixOf(std::string_view bytes);
template <>
absl::StatusOr<uint64_t> PrefixOf<uint64_t>(std::string_view bytes);
template <>
absl::StatusOr<std::string_view> PrefixOf<std::string_view>(std::string_view bytes);

// The cursor that resumes a range after a group (AggregateGroupsResult::cursors) is the prefix's
// bytes after CursorTag::OfGroups and 'g': the prefix is empty for the group of an empty string.
std::string GroupCursor(const CursorTag& tag, std::string_view prefix);
// Returns the prefix's bytes of range i's cursor. InvalidArgument: it does not have the tag.
absl::StatusOr<std::string_view> ReadGroupCursor(const CursorTag& tag, const RangeBatch& ranges,
                                                 size_t i);

// Returns, for messages, the group's values, such as "group 1,'ASIA'".
std::string GroupText(absl::Span<const ColumnValues> parts, size_t group);

}  // namespace cairn
