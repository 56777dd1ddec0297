#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/index_spec.h"
#include "cairn/snapshot_source.h"
#include "cairn/sorted_run.h"
#include "engine/rows/row_table.h"
#include "engine/shards/shard_bound.h"
#include "engine/shards/shard_set.h"
#include "index/files/file_system.h"
#include "index/files/manifest.h"

namespace cairn {

// A segment, opened: what ExtractSegment made of a range of rows.
struct Segment {
  std::string directory;
  Manifest manifest;
  ShardContents contents;

  const SortedRun& run() const { return contents.run; }
  const RowTable& rows() const { return contents.rows; }
  const ColumnTable& columns() const { return contents.columns; }
};

// All segments of an index to be, in the order of their rows.
struct Segments {
  std::vector<Segment> all;
  IndexSpec spec;
  PhysicalType kind = PhysicalType::kU32;
  uint64_t entries = 0;

  size_t size() const { return all.size(); }
  const Segment& operator[](size_t i) const { return all[i]; }
};

// Says in the manifest of an index that was built of a range's rows which range that is: what makes
// it a segment.
absl::Status MarkSegment(const PrimaryKeyRange& range, const std::string& directory,
                         FileSystem* files);

// Opens segments, and makes sure that they are parts of one index. Errors as SplitSegments'.
absl::StatusOr<Segments> OpenSegments(absl::Span<const std::string> directories, int threads,
                                      FileSystem* files);

// Positions, one a segment: the entries before them are those before a place, in the order (key,
// primary key) of all segments together.
using SegmentPositions = std::vector<uint64_t>;

// Before the entry that has `rank` entries before it. Requires rank <= segments.entries.
SegmentPositions PositionsOfRank(const Segments& segments, uint64_t rank);
// Before the first entry that is not below the bound. Errors of reading primary keys;
// InvalidArgument for a bound that is of no key.
absl::StatusOr<SegmentPositions> PositionsOfBound(const Segments& segments,
                                                  const ShardBound& bound);
// The bound of such positions, of which one has an entry behind it. Without a primary key where no
// entry before has the key.
absl::StatusOr<ShardBound> BoundAt(const Segments& segments, const SegmentPositions& positions);

}  // namespace cairn
