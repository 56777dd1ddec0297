#include "engine/log/settled_changes.h"

#include <algorithm>

#include "index/machine/prefetch.h"
#include "index/sort/record_sort.h"

namespace cairn {
namespace {

// Number of records to prefetch ahead. In key order, records are scattered in memory.
constexpr size_t kPrefetchDistance = 16;

}  // namespace

void SettledChanges::Settle(const RowChanges& changes) {
  sorted_.clear();
  deletions_.clear();
  rows_.clear();
  const char* const memory = changes.memory_.get();
  for (size_t i = 0; i < changes.size(); ++i) {
    const RowChanges::Entry& entry = changes.entries_[i];
    if (entry.kind == RowChangeKind::kDeleteRange) [[unlikely]] {
      const RowChange change = changes[i];
      deletions_.push_back({{change.key, change.value}, static_cast<uint32_t>(i)});
    } else {
      sorted_.push_back({memory + entry.offset, 0});
    }
  }
  SettleRanges();
  if (sorted_.empty()) return;

  const size_t depth = TakePartialKeys(absl::MakeSpan(sorted_), 0);
  SortRecords(absl::MakeSpan(sorted_), depth);
  std::string_view key = sorted_[0].key();
  const Range* range = deleted_ranges_.data();
  const Range* const ranges_end = range + deleted_ranges_.size();
  for (size_t i = 0; i < sorted_.size(); ++i) {
    if (i + kPrefetchDistance < sorted_.size()) Prefetch(sorted_[i + kPrefetchDistance].record);
    const bool is_last = i + 1 == sorted_.size();
    const std::string_view next = is_last ? std::string_view() : sorted_[i + 1].key();
    if (is_last || next != key) {
      const uint32_t position = sorted_[i].row_id();
      const RowChange change = changes[position];
      while (range != ranges_end && range->upper <= key) ++range;
      const bool in_range = range != ranges_end && range->lower <= key;
      if (!in_range) [[likely]] {
        rows_.push_back(change);
      } else if (change.kind != RowChangeKind::kDelete && !IsDeletedAfter(position, key)) {
        rows_.push_back(change);
      }
    }
    key = next;
  }
}

void SettledChanges::SettleRanges() {
  deleted_ranges_.clear();
  heap_.clear();
  next_deletion_ = 0;
  std::sort(deletions_.begin(), deletions_.end(),
            [](const Deletion& a, const Deletion& b) { return a.range.lower < b.range.lower; });
  for (const Deletion& deletion : deletions_) {
    const Range& range = deletion.range;
    if (deleted_ranges_.empty() || deleted_ranges_.back().upper < range.lower) {
      deleted_ranges_.push_back(range);
    } else {
      deleted_ranges_.back().upper = std::max(deleted_ranges_.back().upper, range.upper);
    }
  }
}

bool SettledChanges::IsDeletedAfter(uint32_t position, std::string_view key) {
  const auto earlier = [](const Deletion* a, const Deletion* b) {
    return a->position < b->position;
  };
  for (; next_deletion_ < deletions_.size() && deletions_[next_deletion_].range.lower <= key;
       ++next_deletion_) {
    heap_.push_back(&deletions_[next_deletion_]);
    std::push_heap(heap_.begin(), heap_.end(), earlier);
  }
  while (!heap_.empty() && heap_.front()->range.upper <= key) {
    std::pop_heap(heap_.begin(), heap_.end(), earlier);
    heap_.pop_back();
  }
  return !heap_.empty() && heap_.front()->position > position;
}

}  // namespace cairn
