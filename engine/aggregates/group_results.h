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

// One index's groups of each range of a batch, before output values are computed. Plain data.
struct GroupResults {
  explicit GroupResults(const AggregatePlan& plan) : results(plan) {}

  std::vector<uint64_t> offsets = {0};  // as AggregateGroupsResult::offsets
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

// Returns the cursor that resumes a range after a group of `parts` leading parts
// (AggregateGroupsResult::cursors): 'g', `parts`, and the prefix's bytes.
std::string GroupCursor(size_t parts, std::string_view prefix);
// Returns the prefix's bytes. InvalidArgument, naming the range: `cursor` is not such a cursor.
absl::StatusOr<std::string_view> ReadGroupCursor(std::string_view cursor, size_t parts,
                                                 size_t range);

// Returns, for messages, the group's values, such as "group 1,'ASIA'".
std::string GroupText(absl::Span<const ColumnValues> parts, size_t group);

}  // namespace cairn
