#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/sorted_run.h"
#include "index/machine/prefetch.h"
#include "index/run/gallop.h"

namespace cairn {

// The number of queries in a chunk. One search finds all their positions, then the entries there
// are prefetched, then read. A chunk is small enough that its data is still in the L1 or L2 cache
// by then.
inline constexpr size_t kQueryChunk = 256;

// Key columns of one run. They have the same few members, so that each operation is written once.
template <typename Key>
struct FixedWidthColumn {
  absl::Span<const Key> keys;

  Key operator[](size_t i) const { return keys[i]; }
  static absl::Span<const Key> Queries(const KeyBatch& batch) { return batch.as<Key>(); }
  void PrefetchKey(size_t i) const { Prefetch(keys.data() + i); }
  void PrefetchHeap(size_t) const {}
  void Append(size_t i, EncodedKeys* to) const;
};
template <>
inline void FixedWidthColumn<uint32_t>::Append(size_t i, EncodedKeys* to) const {
  to->AppendU32(keys[i]);
}
template <>
inline void FixedWidthColumn<uint64_t>::Append(size_t i, EncodedKeys* to) const {
  to->AppendU64(keys[i]);
}

struct StringColumn {
  const BytesColumn& keys;

  std::string_view operator[](size_t i) const { return keys[i]; }
  static absl::Span<const std::string_view> Queries(const KeyBatch& batch) { return batch.bytes(); }
  void PrefetchKey(size_t i) const {
    if (keys.offsets32() != nullptr) {
      Prefetch(keys.offsets32() + i);
    } else {
      Prefetch(keys.offsets64() + i);
    }
  }
  void PrefetchHeap(size_t i) const { Prefetch(keys.heap() + keys.offset(i)); }
  void Append(size_t i, EncodedKeys* to) const { to->AppendBytes(keys[i]); }
};

// Calls `body` with the run's key column.
template <typename Body>
auto WithColumn(const SortedRun& run, Body body) {
  switch (run.kind()) {
    case PhysicalType::kU32:
      return body(FixedWidthColumn<uint32_t>{run.u32()});
    case PhysicalType::kU64:
      return body(FixedWidthColumn<uint64_t>{run.u64()});
    case PhysicalType::kBytes:
      break;
  }
  return body(StringColumn{run.bytes()});
}

// Prefetches the keys at `positions`, if there is a key.
template <typename Column>
void PrefetchKeys(const Column& column, size_t entries, absl::Span<const Position> positions) {
  for (Position p : positions) {
    if (p < entries) column.PrefetchKey(p);
  }
  if constexpr (std::is_same_v<Column, StringColumn>) {
    for (Position p : positions) {
      if (p < entries) column.PrefetchHeap(p);
    }
  }
}

inline void PrefetchRows(absl::Span<const RowId> row_ids, absl::Span<const Position> positions) {
  for (Position p : positions) Prefetch(row_ids.data() + p);
}

// If where(i), moves position i from the first entry of query i to after its last.
template <typename Column, typename Where>
void SkipEqual(const Column& column, size_t entries, KeyBatch queries,
               absl::Span<Position> positions, Where where) {
  const auto keys = Column::Queries(queries);
  PrefetchKeys(column, entries, positions);
  for (size_t i = 0; i < positions.size(); ++i) {
    if (!where(i)) continue;
    positions[i] = static_cast<Position>(
        Gallop(positions[i], entries, [&](size_t p) { return column[p] == keys[i]; }));
  }
}

}  // namespace cairn
