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

// Ranges with bounds of their own as ranges that are inclusive at both ends, exactly: a bound that
// excludes a key includes its neighbour. The two that have none, which Mend puts right, are those
// above the greatest key and below the least.
template <typename Key>
class InclusiveRanges {
 public:
  explicit InclusiveRanges(const RangeBatch& ranges) : ranges_(ranges) {}

  void Fill(size_t input, size_t first, size_t count, void* to) const {
    Key* const keys = static_cast<Key*>(to);
    for (size_t i = 0; i < count; ++i) {
      keys[i] = input == 0 ? LowerOf(first + i) : UpperOf(first + i);
    }
  }

  // Corrects the positions of all ranges, in a run of `entries`.
  void Mend(size_t entries, absl::Span<Position> begin, absl::Span<Position> end) const {
    for (size_t i = 0; i < begin.size(); ++i) {
      if (ranges_.lower_bound_of(i) == Bound::kExclusive && Lower(i) == kGreatest) {
        begin[i] = end[i] = static_cast<Position>(entries);
      } else if (ranges_.upper_bound_of(i) == Bound::kExclusive && Upper(i) == 0) {
        end[i] = begin[i];
      }
    }
  }

 private:
  static constexpr Key kGreatest = std::numeric_limits<Key>::max();

  static Key KeyAt(const KeyBatch& keys, size_t i) {
    if constexpr (sizeof(Key) == sizeof(uint32_t)) {
      return keys.u32()[i];
    } else {
      return keys.u64()[i];
    }
  }
  Key Lower(size_t i) const { return KeyAt(ranges_.lower, i); }
  Key Upper(size_t i) const { return KeyAt(ranges_.upper, i); }

  Key LowerOf(size_t i) const {
    switch (ranges_.lower_bound_of(i)) {
      case Bound::kExclusive:
        return Lower(i) == kGreatest ? kGreatest : Lower(i) + 1;
      case Bound::kOpen:
        return 0;
      default:
        return Lower(i);
    }
  }
  Key UpperOf(size_t i) const {
    switch (ranges_.upper_bound_of(i)) {
      case Bound::kExclusive:
        return Upper(i) == 0 ? 0 : Upper(i) - 1;
      case Bound::kOpen:
        return kGreatest;
      default:
        return Upper(i);
    }
  }

  const RangeBatch& ranges_;
};

// Has the index find the positions of ranges with the given bounds for all; `inputs` are the lower
// and the upper keys, or the keys that are both.
template <typename Fill>
absl::Status UniformPositions(const DeviceIndex& index, absl::Span<const HostColumn> inputs,
                              const Fill& fill, Bound lower_bound, Bound upper_bound,
                              absl::Span<Position> begin, absl::Span<Position> end,
                              const HostBatchPolicy& policy, QueryContext& context) {
  const auto search = [&](const void* const* in, void* const* out, size_t count,
                          cudaStream_t stream) {
    DeviceRanges ranges;
    ranges.lower = KeysAt(index.kind(), in[0], count);
    ranges.upper = KeysAt(index.kind(), in[inputs.size() - 1], count);
    ranges.lower_bound = lower_bound;
    ranges.upper_bound = upper_bound;
    return index.Positions(ranges, static_cast<Position*>(out[0]), static_cast<Position*>(out[1]),
                           stream);
  };
  const HostColumn outputs[] = {{begin.data(), sizeof(Position)}, {end.data(), sizeof(Position)}};
  return RunHostBatch({begin.size(), inputs, outputs, fill, search}, policy, context);
}

template <typename Key>
absl::Status PositionsWithBounds(const DeviceIndex& index, const RangeBatch& ranges,
                                 absl::Span<Position> begin, absl::Span<Position> end,
                                 const HostBatchPolicy& policy, QueryContext& context) {
  const InclusiveRanges<Key> inclusive(ranges);
  const auto fill = [&](size_t input, size_t first, size_t count, void* to) {
    inclusive.Fill(input, first, count, to);
  };
  const HostColumn inputs[] = {{nullptr, sizeof(Key)}, {nullptr, sizeof(Key)}};
  absl::Status status = UniformPositions(index, inputs, fill, Bound::kInclusive, Bound::kInclusive,
                                         begin, end, policy, context);
  if (status.ok()) inclusive.Mend(index.size(), begin, end);
  return status;
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
  if (!ranges.lower_bounds.empty() || !ranges.upper_bounds.empty()) {
    return run().kind() == KeyKind::kU32
               ? PositionsWithBounds<uint32_t>(*index_, ranges, begin, end, policy_, context)
               : PositionsWithBounds<uint64_t>(*index_, ranges, begin, end, policy_, context);
  }
  const HostColumn inputs[] = {KeyColumnOf(ranges.lower), KeyColumnOf(ranges.upper)};
  const size_t distinct = inputs[0].data == inputs[1].data ? 1 : 2;
  return UniformPositions(*index_, absl::MakeConstSpan(inputs).first(distinct), NothingToFill,
                          ranges.lower_bound, ranges.upper_bound, begin, end, policy_, context);
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
  if (absl::Status s = BeginMatches(run().kind(), size, matches); !s.ok()) return s;
  if (size == 0) return absl::OkStatus();
  const absl::StatusOr<QueryContextLease> context = QueryContextLease::Acquire(index_->device());
  if (!context.ok()) return context.status();
  absl::StatusOr<Position*> positions = (*context)->Positions(2 * size);
  if (!positions.ok()) return positions.status();
  const absl::Span<Position> begin(*positions, size), end(*positions + size, size);
  absl::Status status = CheckedPositions(ranges, begin, end, **context);
  if (status.ok()) status = AllocateRows(options, 0, begin, end, matches);
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
