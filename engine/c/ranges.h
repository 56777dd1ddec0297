#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cairn/c.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "engine/c/keys.h"
#include "index/query/range_column.h"

namespace cairn {

// Reads one of CAIRN_BOUND_…. InvalidArgument, with the field's name: any other number.
absl::Status ReadBound(int32_t value, Bound by_default, std::string_view name, Bound* bound);

// A batch of ranges of physical keys, read from the logical keys of cairn_ranges.
class RangesIn {
 public:
  // The data of the structure must outlive this. `takes_cursors`: whether the ranges may have
  // cursors.
  absl::Status Read(const KeyCodec& codec, const cairn_ranges* given, bool takes_cursors);

  const RangeBatch& batch() const { return batch_; }

 private:
  absl::Status ReadBetween(const KeyCodec& codec, const cairn_ranges& ranges);
  absl::Status ReadLeading(const KeyCodec& codec, const cairn_ranges& ranges);
  absl::Status AppendLeading(const KeyCodec& codec, absl::Span<const ArrowColumn> columns,
                             bool last_is_prefix);
  absl::Status ReadCursors(const cairn_ranges& ranges);

  KeysIn lower_;
  KeysIn upper_;
  RangeColumn leading_;  // ranges of leading parts
  std::vector<Bound> lower_bounds_;
  std::vector<Bound> upper_bounds_;
  std::vector<std::string> cursors_;
  RangeBatch batch_;
};

}  // namespace cairn
