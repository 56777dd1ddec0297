#include "gpu/gpu_index.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_format.h"
#include "gpu/host_rows.h"
#include "gpu/query_context.h"
#include "index/batch_check.h"
#include "index/match_rows.h"

namespace cairn::gpu {
namespace {

DeviceKeys KeysAt(KeyKind kind, const void* keys, size_t size) {
  return kind == KeyKind::kU32 ? DeviceKeys::U32(static_cast<const uint32_t*>(keys), size)
                               : DeviceKeys::U64(static_cast<const uint64_t*>(keys), size);
}

HostColumn KeyColumnOf(const KeyBatch& keys) {
  const void* const data = keys.kind() == KeyKind::kU32
                               ? static_cast<const void*>(keys.u32().data())
                               : static_cast<const void*>(keys.u64().data());
  return {const_cast<void*>(data),
          keys.kind() == KeyKind::kU32 ? sizeof(uint32_t) : sizeof(uint64_t)};
}

constexpr auto NothingToFill = [](size_t, size_t, size_t, void*) {};

// Ranges as lower bounds to search for: two keys each, first those of all beginnings, then those of
// all ends. A bound on the other side of its key is the lower bound of the next key, exactly; one
// that has no such key, or is open, is known without a search, and its place holds any key.
template <typename Key>
class BoundKeys {
 public:
  explicit BoundKeys(const RangeBatch& ranges) : ranges_(ranges) {}

  // Keys [first, first + count).
  void Fill(size_t first, size_t count, void* to) const {
    Key* keys = static_cast<Key*>(to);
    const size_t size = ranges_.size();
    for (size_t i = first; i < std::min(first + count, size); ++i) {
      *keys++ = KeyAt(ranges_.lower, i) + Key{Behind(ranges_.lower_bound_of(i), kLower)};
    }
    for (size_t i = std::max(first, size); i < first + count; ++i) {
      *keys++ =
          KeyAt(ranges_.upper, i - size) + Key{Behind(ranges_.upper_bound_of(i - size), kUpper)};
    }
  }

  // From the lower bounds of all keys to positions in a run of `entries`.
  void Finish(const Position* bounds, size_t entries, absl::Span<Position> begin,
              absl::Span<Position> end) const {
    const Position last = static_cast<Position>(entries);
    const size_t size = ranges_.size();
    for (size_t i = 0; i < size; ++i) {
      const Bound lower = ranges_.lower_bound_of(i), upper = ranges_.upper_bound_of(i);
      const Position from = lower == Bound::kOpen                                   ? 0
                            : Behind(lower, kLower) && IsGreatest(ranges_.lower, i) ? last
                                                                                    : bounds[i];
      const Position to = upper == Bound::kOpen ? last
                          : Behind(upper, kUpper) && IsGreatest(ranges_.upper, i)
                              ? last
                              : bounds[size + i];
      begin[i] = from;
      end[i] = std::max(from, to);  // crossed ends hold nothing
    }
  }

 private:
  enum End : uint8_t { kLower, kUpper };
  // Whether a range begins, or ends, behind the entries of its key.
  static bool Behind(Bound bound, End end) {
    return bound == (end == kLower ? Bound::kExclusive : Bound::kInclusive);
  }
  static Key KeyAt(const KeyBatch& keys, size_t i) {
    if constexpr (sizeof(Key) == sizeof(uint32_t)) {
      return keys.u32()[i];
    } else {
      return keys.u64()[i];
    }
  }
  static bool IsGreatest(const KeyBatch& keys, size_t i) {
    return KeyAt(keys, i) == std::numeric_limits<Key>::max();
  }

  const RangeBatch& ranges_;
};

// One search for both ends of all ranges, by way of keys and positions of ours: for small batches,
// where each kernel's launch counts, and for ranges with bounds of their own. `begin` and `end` may
// be the halves of the context's positions.
template <typename Key>
absl::Status PositionsByOneSearch(const DeviceIndex& index, const RangeBatch& ranges,
                                  absl::Span<Position> begin, absl::Span<Position> end,
                                  const HostBatchPolicy& policy, QueryContext& context) {
  const size_t bounds = 2 * ranges.size();
  absl::StatusOr<Position*> positions = context.Positions(bounds);
  if (!positions.ok()) return positions.status();
  const BoundKeys<Key> keys(ranges);
  const auto fill = [&](size_t, size_t first, size_t count, void* to) {
    keys.Fill(first, count, to);
  };
  const auto search = [&](const void* const* in, void* const* out, size_t count,
                          cudaStream_t stream) {
    return index.LowerBound(KeysAt(index.kind(), in[0], count), static_cast<Position*>(out[0]),
                            stream);
  };
  const HostColumn inputs[] = {{nullptr, sizeof(Key)}};
  const HostColumn outputs[] = {{*positions, sizeof(Position)}};
  absl::Status status = RunHostBatch({bounds, inputs, outputs, fill, search}, policy, context);
  if (status.ok()) keys.Finish(*positions, index.size(), begin, end);
  return status;
}

// Ranges with the same bounds for all: the device reads the caller's keys as they are, once where
// they are both lower and upper ones.
absl::Status PositionsOfRanges(const DeviceIndex& index, const RangeBatch& batch,
                               absl::Span<Position> begin, absl::Span<Position> end,
                               const HostBatchPolicy& policy, QueryContext& context) {
  const HostColumn inputs[] = {KeyColumnOf(batch.lower), KeyColumnOf(batch.upper)};
  const size_t distinct = inputs[0].data == inputs[1].data ? 1 : 2;
  const auto search = [&](const void* const* in, void* const* out, size_t count,
                          cudaStream_t stream) {
    DeviceRanges ranges;
    ranges.lower = KeysAt(index.kind(), in[0], count);
    ranges.upper = KeysAt(index.kind(), in[distinct - 1], count);
    ranges.lower_bound = batch.lower_bound;
    ranges.upper_bound = batch.upper_bound;
    return index.Positions(ranges, static_cast<Position*>(out[0]), static_cast<Position*>(out[1]),
                           stream);
  };
  const HostColumn outputs[] = {{begin.data(), sizeof(Position)}, {end.data(), sizeof(Position)}};
  return RunHostBatch(
      {batch.size(), absl::MakeConstSpan(inputs).first(distinct), outputs, NothingToFill, search},
      policy, context);
}

}  // namespace

std::string GpuIndex::description() const {
  return index_->device() == 0
             ? index_->description()
             : absl::StrFormat("%s,device=%d", index_->description(), index_->device());
}

template <typename Result>
absl::Status GpuIndex::Points(PointSearch<Result> search, KeyBatch keys, absl::Span<Result> results,
                              std::string_view name) const {
  if (absl::Status s = CheckKind(run().kind(), keys); !s.ok()) return s;
  if (absl::Status s = CheckOutput(keys.size(), results.size(), name); !s.ok()) return s;
  if (keys.empty()) return absl::OkStatus();
  const absl::StatusOr<QueryContextLease> context = QueryContextLease::Acquire(index_->device());
  if (!context.ok()) return context.status();
  const auto enqueue = [&](const void* const* in, void* const* out, size_t count,
                           cudaStream_t stream) {
    return (*index_.*search)(KeysAt(keys.kind(), in[0], count), static_cast<Result*>(out[0]),
                             stream);
  };
  const HostColumn inputs[] = {KeyColumnOf(keys)};
  const HostColumn outputs[] = {{results.data(), sizeof(Result)}};
  return RunHostBatch({keys.size(), inputs, outputs, NothingToFill, enqueue}, policy_, **context);
}

absl::Status GpuIndex::LowerBound(KeyBatch keys, absl::Span<Position> positions) const {
  return Points(&DeviceIndex::LowerBound, keys, positions, "positions");
}

absl::Status GpuIndex::UpperBound(KeyBatch keys, absl::Span<Position> positions) const {
  return Points(&DeviceIndex::UpperBound, keys, positions, "positions");
}

absl::Status GpuIndex::FindFirst(KeyBatch keys, absl::Span<RowId> row_ids) const {
  return Points(&DeviceIndex::FindFirst, keys, row_ids, "row_ids");
}

absl::Status GpuIndex::Contains(KeyBatch keys, absl::Span<bool> found) const {
  return Points(&DeviceIndex::Contains, keys, found, "found");
}

absl::Status GpuIndex::Find(KeyBatch keys, Matches* matches) const {
  if (absl::Status s = CheckKind(run().kind(), keys); !s.ok()) return s;
  return Scan(RangeBatch::Equal(keys), QueryOptions(), matches);
}

absl::Status GpuIndex::CheckedPositions(const RangeBatch& ranges, absl::Span<Position> begin,
                                        absl::Span<Position> end, QueryContext& context) const {
  const bool uniform = ranges.lower_bounds.empty() && ranges.upper_bounds.empty();
  if (uniform && 2 * ranges.size() > policy_.most_zero_copy) {
    return PositionsOfRanges(*index_, ranges, begin, end, policy_, context);
  }
  return run().kind() == KeyKind::kU32
             ? PositionsByOneSearch<uint32_t>(*index_, ranges, begin, end, policy_, context)
             : PositionsByOneSearch<uint64_t>(*index_, ranges, begin, end, policy_, context);
}

absl::Status GpuIndex::Positions(const RangeBatch& ranges, absl::Span<Position> begin,
                                 absl::Span<Position> end) const {
  if (absl::Status s = CheckRanges(run().kind(), ranges); !s.ok()) return s;
  if (absl::Status s = CheckOutput(ranges.size(), begin.size(), "begin"); !s.ok()) return s;
  if (absl::Status s = CheckOutput(ranges.size(), end.size(), "end"); !s.ok()) return s;
  if (ranges.size() == 0) return absl::OkStatus();
  const absl::StatusOr<QueryContextLease> context = QueryContextLease::Acquire(index_->device());
  if (!context.ok()) return context.status();
  return CheckedPositions(ranges, begin, end, **context);
}

absl::Status GpuIndex::Count(const RangeBatch& ranges, absl::Span<uint64_t> counts) const {
  if (absl::Status s = CheckRanges(run().kind(), ranges); !s.ok()) return s;
  if (absl::Status s = CheckOutput(ranges.size(), counts.size(), "counts"); !s.ok()) return s;
  if (ranges.size() == 0) return absl::OkStatus();
  const absl::StatusOr<QueryContextLease> context = QueryContextLease::Acquire(index_->device());
  if (!context.ok()) return context.status();
  const size_t size = ranges.size();
  absl::StatusOr<Position*> positions = (*context)->Positions(2 * size);
  if (!positions.ok()) return positions.status();
  const absl::Span<Position> begin(*positions, size), end(*positions + size, size);
  if (absl::Status s = CheckedPositions(ranges, begin, end, **context); !s.ok()) return s;
  for (size_t i = 0; i < size; ++i) counts[i] = end[i] - begin[i];
  return absl::OkStatus();
}

absl::Status GpuIndex::Scan(const RangeBatch& ranges, const QueryOptions& options,
                            Matches* matches) const {
  if (absl::Status s = CheckRanges(run().kind(), ranges); !s.ok()) return s;
  const size_t size = ranges.size();
  if (size == 0) return BeginMatches(run().kind(), 0, matches);
  const absl::StatusOr<QueryContextLease> context = QueryContextLease::Acquire(index_->device());
  if (!context.ok()) return context.status();
  absl::StatusOr<Position*> positions = (*context)->Positions(2 * size);
  if (!positions.ok()) return positions.status();
  const absl::Span<Position> begin(*positions, size), end(*positions + size, size);
  absl::Status status = CheckedPositions(ranges, begin, end, **context);
  if (status.ok()) status = PlanMatches(run().kind(), options, begin, end, matches);
  if (!status.ok()) return status;
  if (matches->row_ids.size() <= policy_.most_rows_from_run) {
    CopyRows(run(), options, 0, begin, end, matches);
  } else {
    status = CopyRowsToHost(*index_, begin, end, matches->offsets, options.order,
                            matches->row_ids.data(), policy_, **context);
    if (!status.ok()) return status;
  }
  return AppendKeys(run(), options, begin, end, matches);
}

}  // namespace cairn::gpu
