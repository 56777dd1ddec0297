#include "index/query/batch_check.h"

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

enum class End : uint8_t { kLower, kUpper };

const char* EndName(End end) {
  return end == End::kLower ? "lower" : "upper";
}

absl::Status CheckBound(Bound bound, End end, PhysicalType kind, size_t range) {
  switch (bound) {
    case Bound::kInclusive:
    case Bound::kExclusive:
    case Bound::kOpen:
      return absl::OkStatus();
    case Bound::kPrefix:
      if (end == End::kLower) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "range %d: its lower bound is a prefix; only an upper one may be", range));
      }
      if (kind != PhysicalType::kBytes) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "range %d: a prefix requires keys of bytes, not %s", range, PhysicalTypeName(kind)));
      }
      return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat("range %d: %d is not a %s bound", range,
                                                    static_cast<int>(bound), EndName(end)));
}

absl::Status CheckBounds(const RangeBatch& ranges, End end) {
  const absl::Span<const Bound> bounds =
      end == End::kLower ? ranges.lower_bounds : ranges.upper_bounds;
  if (bounds.empty()) {
    return ranges.size() == 0
               ? absl::OkStatus()
               : CheckBound(end == End::kLower ? ranges.lower_bound : ranges.upper_bound, end,
                            ranges.kind(), 0);
  }
  if (bounds.size() != ranges.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d %s bounds for %d ranges", bounds.size(), EndName(end), ranges.size()));
  }
  for (size_t i = 0; i < bounds.size(); ++i) {
    RETURN_IF_ERROR(CheckBound(bounds[i], end, ranges.kind(), i));
  }
  return absl::OkStatus();
}

// Checks that there are no keys, or that they are of the kind.
absl::Status CheckKind(PhysicalType kind, const KeyBatch& keys) {
  if (keys.empty() || keys.kind() == kind) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("a batch of %s keys for an index of %s keys",
                                                    PhysicalTypeName(keys.kind()),
                                                    PhysicalTypeName(kind)));
}

absl::Status CheckRanges(PhysicalType kind, const RangeBatch& ranges) {
  if (ranges.lower.size() != ranges.upper.size()) {
    return absl::InvalidArgumentError(absl::StrFormat("%d lower keys, but %d upper keys",
                                                      ranges.lower.size(), ranges.upper.size()));
  }
  RETURN_IF_ERROR(CheckKind(kind, ranges.lower));
  RETURN_IF_ERROR(CheckKind(kind, ranges.upper));
  RETURN_IF_ERROR(CheckBounds(ranges, End::kLower));
  return CheckBounds(ranges, End::kUpper);
}

}  // namespace

absl::Status CheckOutput(size_t queries, size_t outputs, std::string_view name) {
  if (queries == outputs) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s has %d elements for a batch of %d", name, outputs, queries));
}

absl::Status CheckQueries(PhysicalType kind, const Batch& batch) {
  return batch.takes_ranges() ? CheckRanges(kind, batch.ranges) : CheckKind(kind, batch.keys);
}

absl::Status CheckBatch(PhysicalType kind, const Batch& batch) {
  if (absl::Status s = CheckQueries(kind, batch); !s.ok()) return s;
  const size_t size = batch.size();
  switch (batch.operation) {
    case Operation::kFindFirst:
      return CheckOutput(size, batch.values.size(), "row_ids");
    case Operation::kLowerBound:
    case Operation::kUpperBound:
      return CheckOutput(size, batch.values.size(), "positions");
    case Operation::kEqualRange:
    case Operation::kPositions:
      if (absl::Status s = CheckOutput(size, batch.values.size(), "begin"); !s.ok()) return s;
      return CheckOutput(size, batch.ends.size(), "end");
    case Operation::kContains:
      return CheckOutput(size, batch.found.size(), "found");
    case Operation::kCount:
      return CheckOutput(size, batch.counts.size(), "counts");
    case Operation::kFind:
    case Operation::kScan:
      if (batch.matches != nullptr) return absl::OkStatus();
      break;
  }
  return absl::InvalidArgumentError("no matches to write to");
}

absl::Status CheckBatchWithRows(PhysicalType kind, const Batch& batch) {
  if (batch.operation != Operation::kFindFirst || batch.rows.empty()) {
    return CheckBatch(kind, batch);
  }
  if (!batch.values.empty()) {
    return absl::InvalidArgumentError("find_first: expected Batch::rows or values, got both");
  }
  if (absl::Status s = CheckQueries(kind, batch); !s.ok()) return s;
  return CheckOutput(batch.size(), batch.rows.size(), "rows");
}

}  // namespace cairn
