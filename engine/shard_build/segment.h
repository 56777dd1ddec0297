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

// An open segment: the result of ExtractSegment for a range of rows.
struct Segment {
  std::string directory;
  Manifest manifest;
  ShardContents contents;

  const SortedRun& run() const { return contents.run; }
  const RowTable& rows() const { return contents.rows; }
  const ColumnTable& columns() const { return contents.columns; }
};

// All segments of an index to be built, in row order.
struct Segments {
  std::vector<Segment> all;
  IndexSpec spec;
  PhysicalType kind = PhysicalType::kU32;
  uint64_t entries = 0;

  size_t size() const { return all.size(); }
  const Segment& operator[](size_t i) const { return all[i]; }
};

// Records the row range of an index in its manifest. The index must have been built from the rows
// of this range. This makes it a segment.
absl::Status MarkSegment(const PrimaryKeyRange& range, const std::string& directory,
                         FileSystem* files);

// Opens segments, and checks that they are parts of one index. Errors: those of SplitSegments.
absl::StatusOr<Segments> OpenSegments(absl::Span<const std::string> directories, int threads,
                                      FileSystem* files);

// One position per segment. Together the entries before them are the first entries of all segments
// in (key, primary key) order.
using SegmentPositions = std::vector<uint64_t>;

// Returns the positions with `rank` entries before them. Requires rank <= segments.entries.
SegmentPositions PositionsOfRank(const Segments& segments, uint64_t rank);
// Returns the positions of the first entry that is not less than the bound. Errors: those of
// reading primary keys; InvalidArgument if the bound does not have a key of the index.
absl::StatusOr<SegmentPositions> PositionsOfBound(const Segments& segments,
                                                  const ShardBound& bound);
// Returns the bound at such positions; at least one must have an entry after it. The bound has no
// primary key if no earlier entry has the same key.
absl::StatusOr<ShardBound> BoundAt(const Segments& segments, const SegmentPositions& positions);

}  // namespace cairn
