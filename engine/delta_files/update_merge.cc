#include "engine/delta_files/update_merge.h"

#include <algorithm>
#include <utility>

#include "index/query/physical_key.h"

namespace cairn {
namespace {

// Rows of each file that are in memory at the same time.
constexpr size_t kRowsAtATime = 4096;

void AppendRanges(const RowUpdates& from, RowUpdates* to) {
  for (size_t i = 0; i < from.deleted_from.size(); ++i) {
    to->DeleteRange(from.deleted_from[i], from.deleted_to[i]);
  }
}

}  // namespace

void UpdateMerge::Add(const DeltaFile& file) {
  auto source = std::make_unique<Source>();
  source->age = sources_.size();
  source->reader = std::make_unique<DeltaReader>(file);
  source->reader->Next(kRowsAtATime, &source->slice);
  sources_.push_back(std::move(source));
}

void UpdateMerge::Add(RowUpdates updates) {
  auto source = std::make_unique<Source>();
  source->age = sources_.size();
  source->slice = std::move(updates);
  sources_.push_back(std::move(source));
}

void UpdateMerge::Begin() {
  for (const auto& source : sources_) {
    AppendRanges(source->slice, &source->deleted);
    source->ranges = DeletedRanges(source->deleted);
    has_ranges_ |= !source->ranges.empty();
    if (Load(source.get())) heap_.push(source.get());
  }
}

bool UpdateMerge::Load(Source* source) const {
  if (source->row == source->slice.rows()) {
    source->row = 0;
    if (source->reader == nullptr || !source->reader->Next(kRowsAtATime, &source->slice)) {
      return false;
    }
    if (source->slice.rows() == 0) return false;
  }
  source->primary_key = source->slice.primary_keys[source->row];
  return true;
}

bool UpdateMerge::IsDeleted(std::string_view primary_key, size_t age) {
  for (size_t later = age + 1; has_ranges_ && later < sources_.size(); ++later) {
    Source& source = *sources_[later];
    while (source.range < source.ranges.size() &&
           source.ranges[source.range].second <= primary_key) {
      ++source.range;
    }
    if (source.range < source.ranges.size() && source.ranges[source.range].first <= primary_key) {
      return true;
    }
  }
  return false;
}

bool UpdateMerge::Next(size_t rows, RowUpdates* updates) {
  const bool first = !std::exchange(begun_, true);
  if (first) Begin();
  if (!first && heap_.empty()) return false;
  updates->Clear();
  updates->keys.Clear(kind_);
  if (first) {
    for (const auto& source : sources_) AppendRanges(source->deleted, updates);
  }
  while (updates->rows() < rows && !heap_.empty()) {
    const Source& latest = *heap_.top();
    at_ = latest.primary_key;
    if (!IsDeleted(at_, latest.age)) {
      const uint64_t begin = latest.row == 0 ? 0 : latest.slice.row_ends[latest.row - 1];
      WithPhysicalKey(kind_, [&](auto type) {
        using Key = typename decltype(type)::type;
        for (uint64_t k = begin; k < latest.slice.row_ends[latest.row]; ++k) {
          AppendKey(KeyAt<Key>(latest.slice.keys, k), &updates->keys);
        }
      });
      updates->EndRow(at_);
      if (!latest.slice.tuples.empty()) updates->tuples.Append(latest.slice.tuples[latest.row]);
    }
    // Skip the row itself and its earlier states.
    while (!heap_.empty() && heap_.top()->primary_key == at_) {
      Source* const source = heap_.top();
      heap_.pop();
      ++source->row;
      if (Load(source)) heap_.push(source);
    }
  }
  return true;
}

}  // namespace cairn
