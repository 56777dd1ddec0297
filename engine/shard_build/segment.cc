#include "engine/shard_build/segment.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "engine/build/run_keys.h"
#include "index/files/checksum.h"
#include "index/files/index_directory.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"
#include "index/run/gallop.h"

namespace cairn {
namespace {

absl::Status OfSegment(const std::string& directory, const absl::Status& status) {
  return absl::Status(
      status.code(), absl::StrFormat("segment '%s': %s", directory, std::string(status.message())));
}

absl::StatusOr<Segment> OpenSegment(const std::string& directory, int threads, FileSystem* files) {
  ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(directory, files));
  if (manifest.FindFile("delta") != nullptr) {
    return absl::FailedPreconditionError("it has been caught up since it was extracted");
  }
  ASSIGN_OR_RETURN(ShardContents contents,
                   OpenShardContents(directory, manifest, VerifyLevel::kFull, threads, files));
  return Segment{directory, std::move(manifest), std::move(contents)};
}

// Names in a segment's counts: checksums of the ends of its range. An open range has no upper end.
constexpr char kRangeLower[] = "range_lower";
constexpr char kRangeUpper[] = "range_upper";

std::optional<uint64_t> CountOf(const Manifest& manifest, const char* name) {
  const auto at = manifest.counts.find(name);
  return at == manifest.counts.end() ? std::nullopt : std::optional(at->second);
}

// Checks that a segment's range begins where the previous one ends, or at the empty key if `before`
// is null. If it is the last segment, its range must be open.
absl::Status CheckRange(const Manifest* before, const Manifest& segment, bool last) {
  const std::optional<uint64_t> lower = CountOf(segment, kRangeLower);
  if (!lower) {
    return absl::FailedPreconditionError("it is not a segment, or its extraction did not finish");
  }
  const std::optional<uint64_t> end =
      before == nullptr ? Checksum("", 0) : CountOf(*before, kRangeUpper);
  if (lower != end) {
    return absl::FailedPreconditionError(
        "its rows do not begin where those of the previous segment end: a segment is missing, or "
        "they are not in order");
  }
  if (last && CountOf(segment, kRangeUpper)) {
    return absl::FailedPreconditionError("its rows are not the last: a segment is missing");
  }
  return absl::OkStatus();
}

absl::Status CheckBelongTogether(const Manifest& first, const Manifest& other) {
  const auto differ = [](std::string_view what, const std::string& a, const std::string& b) {
    return absl::FailedPreconditionError(
        absl::StrFormat("its %s is '%s', expected '%s' as in the first segment", what, b, a));
  };
  if (first.spec != other.spec) return differ("spec", first.spec, other.spec);
  if (first.column_family != other.column_family) {
    return differ("column family", first.column_family, other.column_family);
  }
  if (first.database_id != other.database_id) {
    return differ("database", first.database_id, other.database_id);
  }
  if (first.sequence != other.sequence) {
    return differ("sequence number", std::to_string(first.sequence),
                  std::to_string(other.sequence));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> RowKey(const Segment& segment, RowId row) {
  StringList key;
  RETURN_IF_ERROR(segment.rows().PrimaryKeys({row}, &key));
  return std::string(key[0]);
}

// Checks that the rows of a segment follow those of an earlier one. Both must have rows.
absl::Status CheckRowOrder(const Segment& before, const Segment& after) {
  ASSIGN_OR_RETURN(const std::string last,
                   RowKey(before, static_cast<RowId>(before.rows().rows() - 1)));
  ASSIGN_OR_RETURN(const std::string first, RowKey(after, 0));
  if (last < first) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("its first row is '%s', but the previous segment '%s' ends with '%s'",
                      EscapeBytes(first), before.directory, EscapeBytes(last)));
}

// Returns the first position in [0, size) whose key is at least `key`, or greater than it if
// `or_equal`.
template <typename Key>
uint64_t Behind(const SortedRun& run, const Key& key, bool or_equal) {
  const auto column = ColumnOf<Key>(run);
  return PartitionPoint(uint64_t{0}, uint64_t{run.size()}, [&](uint64_t i) {
    const Key at = column[i];
    return at < key || (or_equal && at == key);
  });
}

// Repeatedly halves the segment with the most remaining positions, as in a selection from sorted
// columns.
template <typename Key>
SegmentPositions SelectRank(const Segments& segments, uint64_t rank) {
  const size_t size = segments.size();
  SegmentPositions low(size, 0), high(size), places(size);
  for (size_t s = 0; s < size; ++s) high[s] = segments[s].run().size();
  while (true) {
    size_t widest = 0;
    for (size_t s = 1; s < size; ++s) {
      if (high[s] - low[s] > high[widest] - low[widest]) widest = s;
    }
    if (high[widest] == low[widest]) return low;
    const uint64_t middle = low[widest] + (high[widest] - low[widest]) / 2;
    const Key pivot = ColumnOf<Key>(segments[widest].run())[middle];
    uint64_t before = 0;
    for (size_t s = 0; s < size; ++s) {
      // Among equal keys, the entries of an earlier segment are before those of a later one.
      places[s] = s == widest ? middle : Behind<Key>(segments[s].run(), pivot, s < widest);
      before += places[s];
    }
    if (before > rank) {
      for (size_t s = 0; s < size; ++s) high[s] = std::min(high[s], places[s]);
    } else {
      for (size_t s = 0; s < size; ++s) low[s] = std::max(low[s], places[s]);
      if (before == rank) return places;
      low[widest] = std::max(low[widest], middle + 1);
    }
  }
}

}  // namespace

absl::Status MarkSegment(const PrimaryKeyRange& range, const std::string& directory,
                         FileSystem* files) {
  ASSIGN_OR_RETURN(const std::unique_ptr<IndexDirectory> writer,
                   IndexDirectory::OpenForWrite(directory, files));
  if (writer->manifest() == nullptr) return absl::NotFoundError("a segment has no manifest");
  Manifest marked = *writer->manifest();
  marked.counts[kRangeLower] = Checksum(range.lower.data(), range.lower.size());
  if (!range.open) marked.counts[kRangeUpper] = Checksum(range.upper.data(), range.upper.size());
  return writer->Publish(std::move(marked));
}

absl::StatusOr<Segments> OpenSegments(absl::Span<const std::string> directories, int threads,
                                      FileSystem* files) {
  if (directories.empty())
    return absl::InvalidArgumentError("segments: expected at least one, got none");
  Segments segments;
  const Segment* last = nullptr;  // the last one with rows
  segments.all.reserve(directories.size());
  for (const std::string& directory : directories) {
    absl::StatusOr<Segment> opened = OpenSegment(directory, threads, files);
    if (!opened.ok()) return OfSegment(directory, opened.status());
    segments.all.push_back(*std::move(opened));
    const Segment& segment = segments.all.back();
    absl::Status checked = CheckBelongTogether(segments.all[0].manifest, segment.manifest);
    if (checked.ok()) {
      const size_t i = segments.size() - 1;
      checked = CheckRange(i == 0 ? nullptr : &segments.all[i - 1].manifest, segment.manifest,
                           i + 1 == directories.size());
    }
    if (checked.ok() && segment.rows().rows() != 0) {
      if (last != nullptr) checked = CheckRowOrder(*last, segment);
      last = &segment;
    }
    if (!checked.ok()) return OfSegment(directory, checked);
    segments.entries += segment.run().size();
  }
  absl::StatusOr<IndexSpec> spec = IndexSpec::Parse(segments[0].manifest.spec);
  if (absl::IsResourceExhausted(spec.status())) return spec.status();
  if (!spec.ok()) return OfSegment(directories[0], absl::DataLossError(spec.status().message()));
  segments.spec = *std::move(spec);
  segments.kind = segments[0].run().kind();
  return segments;
}

SegmentPositions PositionsOfRank(const Segments& segments, uint64_t rank) {
  return WithPhysicalKey(segments.kind, [&](auto type) {
    return SelectRank<typename decltype(type)::type>(segments, rank);
  });
}

absl::StatusOr<SegmentPositions> PositionsOfBound(const Segments& segments,
                                                  const ShardBound& bound) {
  EncodedKeys key(segments.kind);
  if (!AppendOrderedKey(bound.key, &key)) {
    return absl::InvalidArgumentError("a shard bound is not a key of the index");
  }
  SegmentPositions positions(segments.size());
  for (size_t s = 0; s < segments.size(); ++s) {
    const SortedRun& run = segments[s].run();
    ASSIGN_OR_RETURN(const RowId rank, segments[s].rows().LowerBound(bound.primary_key));
    positions[s] = WithPhysicalKey(run.kind(), [&](auto type) {
      using Key = typename decltype(type)::type;
      const Key at = KeyAt<Key>(key, 0);
      const absl::Span<const RowId> rows = run.row_ids();
      const auto begin = rows.begin() + static_cast<ptrdiff_t>(Behind<Key>(run, at, false));
      const auto end = rows.begin() + static_cast<ptrdiff_t>(Behind<Key>(run, at, true));
      return static_cast<uint64_t>(std::lower_bound(begin, end, rank) - rows.begin());
    });
  }
  return positions;
}

absl::StatusOr<ShardBound> BoundAt(const Segments& segments, const SegmentPositions& positions) {
  size_t least = segments.size();
  EncodedKeys key(segments.kind), other(segments.kind);
  std::string min_key;
  for (size_t s = 0; s < segments.size(); ++s) {
    const SortedRun& run = segments[s].run();
    if (positions[s] == run.size()) continue;
    other.Clear(run.kind());
    AppendKey(run, positions[s], &other);
    std::string bytes = OrderedKeyBytes(other, 0);
    if (least != segments.size() && min_key <= bytes) continue;
    least = s;
    min_key = std::move(bytes);
  }
  if (least == segments.size()) return absl::InternalError("no entry after a shard bound");
  for (size_t s = 0; s < segments.size(); ++s) {
    if (positions[s] == 0) continue;
    other.Clear(segments.kind);
    AppendKey(segments[s].run(), positions[s] - 1, &other);
    if (OrderedKeyBytes(other, 0) != min_key) continue;
    ASSIGN_OR_RETURN(std::string row,
                     RowKey(segments[least], segments[least].run().row_ids()[positions[least]]));
    return ShardBound{std::move(min_key), std::move(row)};
  }
  return ShardBound{std::move(min_key), ""};
}

}  // namespace cairn
