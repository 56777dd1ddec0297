#include "engine/delta/delta_segment.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "cpu_fast/fast/fast_tree.h"
#include "cpu_fast/simd/key_filter.h"
#include "cpu_fast/strings/string_search.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

struct RunColumns {
  AlignedBuffer<uint64_t> key_words;  // the keys, or the ends of byte-string keys
  AlignedBuffer<char> heap;
  AlignedBuffer<RowId> rows;
};

template <typename Key>
SortedRun CopyRun(absl::Span<const DeltaEntry<Key>> entries) {
  auto columns = std::make_shared<RunColumns>();
  columns->rows = AlignedBuffer<RowId>(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) columns->rows[i] = entries[i].row;
  const absl::Span<const RowId> rows = std::as_const(columns->rows).span();
  if constexpr (std::is_same_v<Key, std::string_view>) {
    uint64_t bytes = 0;
    for (const auto& entry : entries) bytes += entry.key.size();
    columns->heap = AlignedBuffer<char>(bytes);
    columns->key_words = AlignedBuffer<uint64_t>(entries.size() + 1);
    uint64_t* end = columns->key_words.data();
    *end = 0;
    for (const auto& entry : entries) {
      if (!entry.key.empty()) {
        std::memcpy(columns->heap.data() + *end, entry.key.data(), entry.key.size());
      }
      end[1] = end[0] + entry.key.size();
      ++end;
    }
    const BytesColumn keys(columns->heap.data(), std::as_const(columns->key_words).span());
    return SortedRun::Wrap(keys, rows, std::move(columns));
  } else {
    columns->key_words = AlignedBuffer<uint64_t>((entries.size() * sizeof(Key) + 7) / 8);
    Key* const keys = reinterpret_cast<Key*>(columns->key_words.data());
    for (size_t i = 0; i < entries.size(); ++i) keys[i] = entries[i].key;
    return SortedRun::Wrap(absl::MakeConstSpan(keys, entries.size()), rows, std::move(columns));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeCheapIndex(SortedRun run) {
  if (run.kind() == PhysicalType::kBytes) return StringSearch::Build(std::move(run));
  return MakeFastTree(std::move(run));
}

template <typename Key>
absl::StatusOr<std::shared_ptr<const DeltaSegment>> DeltaSegment::Build(
    absl::Span<const DeltaEntry<Key>> entries, uint64_t base_entries, uint32_t end_tuple) {
  SlottedArray places(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) places[i] = entries[i].place;
  places.Finish(static_cast<uint32_t>(base_entries));
  KeySlots slots(entries.size());
  bool has_slots = true;
  for (size_t i = 0; i < entries.size() && has_slots; ++i) {
    if (i > 0 && entries[i].key == entries[i - 1].key) continue;
    has_slots = slots.Add(KeyFilter::Hash(entries[i].key), static_cast<Position>(i));
  }
  if (!has_slots) slots = KeySlots();
  return std::shared_ptr<const DeltaSegment>(new DeltaSegment(
      CopyRun(entries), std::move(slots), has_slots, std::move(places), end_tuple));
}

uint64_t DeltaSegment::memory_bytes() const {
  const MutexLock lock(&by_row_mutex_);
  return run().memory_bytes() + slots_.memory_bytes() + places_.memory_bytes() +
         (by_row_ == nullptr ? 0 : size() * sizeof(uint64_t)) +
         (new_rows_ == nullptr ? 0 : new_rows_->capacity() * sizeof(RowId));
}

absl::Span<const uint64_t> DeltaSegment::ByRow() const {
  const MutexLock lock(&by_row_mutex_);
  if (by_row_ == nullptr) {
    auto by_row = std::make_unique<std::vector<uint64_t>>(size());
    for (size_t p = 0; p < size(); ++p) (*by_row)[p] = uint64_t{rows()[p]} << 32 | p;
    std::sort(by_row->begin(), by_row->end());
    by_row_ = std::move(by_row);
  }
  return *by_row_;
}

absl::Span<const RowId> DeltaSegment::NewRows(const DeltaRows& rows) const {
  const MutexLock lock(&by_row_mutex_);
  if (new_rows_ == nullptr) {
    auto found = std::make_unique<std::vector<RowId>>();
    for (const RowId row : this->rows()) {
      if (row >= rows.base_rows()) found->push_back(row);
    }
    std::sort(found->begin(), found->end());
    found->erase(std::unique(found->begin(), found->end()), found->end());
    found->shrink_to_fit();
    // Mostly, newer rows have greater primary keys.
    std::sort(found->begin(), found->end(),
              [&](RowId a, RowId b) { return a != b && rows.Less(a, b); });
    new_rows_ = std::move(found);
  }
  return *new_rows_;
}

template <typename Key>
absl::Status DeltaSegment::FindFirst(absl::Span<const Key> keys, absl::Span<const uint64_t> hashes,
                                     absl::Span<Position> first) const {
  const auto column = ColumnOf<Key>(run());
  if (has_slots_) {
    for (size_t i = 0; i < keys.size(); ++i) {
      first[i] = slots_.Candidate(hashes[i]);
      if (first[i] == kNone) continue;
      column.PrefetchKey(first[i]);
      cairn::Prefetch(rows().data() + first[i]);
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      if (first[i] == kNone) continue;
      first[i] = slots_.Find(hashes[i], [&](Position p) { return column[p] == keys[i]; });
    }
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(index_.Execute(Batch::LowerBound(keys, first)));
  for (size_t i = 0; i < first.size(); ++i) {
    if (first[i] == size() || column[first[i]] != keys[i]) first[i] = kNone;
  }
  return absl::OkStatus();
}

template <typename Key>
void MergePart(const DeltaPart& part, const DeltaRows& rows,
               std::vector<DeltaEntry<Key>>* entries) {
  const DeltaSegment& segment = *part.segment;
  const auto column = ColumnOf<Key>(segment.run());
  std::vector<DeltaEntry<Key>> merged(part.entries() + entries->size());
  DeltaEntry<Key>* out = merged.data();
  const DeltaEntry<Key>* next = entries->data();
  const DeltaEntry<Key>* const end = next + entries->size();
  const bool all = part.removed.empty();
  uint64_t equal_end = 0;     // end of the segment's entries with the last common key
  bool equal_before = false;  // whether all of these precede *next
  for (uint64_t p = 0; p < segment.size(); ++p) {
    const Key key = column[p];
    while (next < end && next->key < key) *out++ = *next++;
    // If many rows have one key, newer rows mostly have greater primary keys as well, so one
    // comparison is enough. This saves 15% of the time of following TPC-H's orders.
    if (p >= equal_end && next < end && next->key == key) {
      for (equal_end = p + 1; equal_end < segment.size() && column[equal_end] == key;) ++equal_end;
      equal_before = rows.Less(segment.rows()[equal_end - 1], next->row);
    }
    if (!all && part.removed.Contains(p)) continue;
    const RowId row = segment.rows()[p];
    if (p < equal_end && !equal_before) {
      while (next < end && next->key == key && rows.Less(next->row, row)) *out++ = *next++;
    }
    *out++ = {key, row, segment.places()[p]};
  }
  std::copy(next, end, out);
  *entries = std::move(merged);
}

template absl::Status DeltaSegment::FindFirst(absl::Span<const uint32_t>,
                                              absl::Span<const uint64_t>,
                                              absl::Span<Position>) const;
template absl::Status DeltaSegment::FindFirst(absl::Span<const uint64_t>,
                                              absl::Span<const uint64_t>,
                                              absl::Span<Position>) const;
template absl::Status DeltaSegment::FindFirst(absl::Span<const std::string_view>,
                                              absl::Span<const uint64_t>,
                                              absl::Span<Position>) const;
template absl::StatusOr<std::shared_ptr<const DeltaSegment>> DeltaSegment::Build(
    absl::Span<const DeltaEntry<uint32_t>>, uint64_t, uint32_t);
template absl::StatusOr<std::shared_ptr<const DeltaSegment>> DeltaSegment::Build(
    absl::Span<const DeltaEntry<uint64_t>>, uint64_t, uint32_t);
template absl::StatusOr<std::shared_ptr<const DeltaSegment>> DeltaSegment::Build(
    absl::Span<const DeltaEntry<std::string_view>>, uint64_t, uint32_t);
template void MergePart(const DeltaPart&, const DeltaRows&, std::vector<DeltaEntry<uint32_t>>*);
template void MergePart(const DeltaPart&, const DeltaRows&, std::vector<DeltaEntry<uint64_t>>*);
template void MergePart(const DeltaPart&, const DeltaRows&,
                        std::vector<DeltaEntry<std::string_view>>*);

}  // namespace cairn
