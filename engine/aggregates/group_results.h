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
#include "engine/aggregates/aggregate_plan.h"
#include "engine/aggregates/aggregate_results.h"

namespace cairn {

// The groups of each range of a batch before values are made of them: what one of several indexes
// has of them. Plain data.
struct GroupResults {
  explicit GroupResults(const AggregatePlan& plan) : results(plan) {}

  std::vector<uint64_t> offsets = {0};  // as AggregateGroupsResult::offsets
  StringList prefixes;                  // of each group (PrefixBytes)
  std::vector<uint8_t> more;            // whether each range has more groups, behind a limit
  AggregateResults results;             // of each group
};

// InvalidArgument where groups by so many leading parts of these keys there are none.
absl::Status CheckLeadingParts(const KeyCodec& codec, size_t parts);

// What the keys of a group have in common (KeyPrefixes) as bytes, which compare as the groups do:
// of keys that are numbers, 8 bytes, big-endian.
std::string PrefixBytes(uint64_t prefix);
inline std::string_view PrefixBytes(std::string_view prefix) {
  return prefix;
}
// Prefix is uint64_t or std::string_view, a view of the bytes. InvalidArgument.
template <typename Prefix>
absl::StatusOr<Prefix> PrefixOf(std::string_view bytes);
template <>
absl::StatusOr<uint64_t> PrefixOf<uint64_t>(std::string_view bytes);
template <>
absl::StatusOr<std::string_view> PrefixOf<std::string_view>(std::string_view bytes);

// Where a range goes on behind a group of so many leading parts (AggregateGroupsResult::cursors):
// 'g', their number, and the prefix's bytes.
std::string GroupCursor(size_t parts, std::string_view prefix);
// The prefix's bytes. InvalidArgument, naming the range, for what is no such cursor.
absl::StatusOr<std::string_view> ReadGroupCursor(std::string_view cursor, size_t parts,
                                                 size_t range);

// "group 1,'ASIA'", for messages: of the values of the parts.
std::string GroupText(absl::Span<const ColumnValues> parts, size_t group);

}  // namespace cairn
