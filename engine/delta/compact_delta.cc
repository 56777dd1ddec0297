#include "engine/delta/compact_delta.h"

#include <algorithm>
#include <new>
#include <utility>

#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

// Work per changed entry before the compact form is made.
constexpr uint64_t kWorkPerChange = 32;

SlottedArray PositionsOf(const PositionSet& set) {
  SlottedArray positions(set.size());
  size_t size = 0;
  for (size_t page = 0; page < set.page_count(); ++page) {
    if (set.page_members(page) == 0) continue;
    const uint64_t begin = page * set.page_size();
    const uint64_t end = std::min(begin + set.page_size(), set.universe());
    for (uint64_t p = set.FirstMember(begin, end); p < end; p = set.FirstMember(p + 1, end)) {
      positions[size++] = static_cast<Position>(p);
    }
  }
  positions.Finish(static_cast<uint32_t>(set.universe()));
  return positions;
}

// Returns a filter of exactly the changed keys.
template <typename Key>
std::shared_ptr<const KeyFilter> FilterOf(const Delta& delta) {
  auto filter = std::make_shared<KeyFilter>(delta.removed.size() + delta.added_entries());
  const auto base_keys = ColumnOf<Key>(delta.base_run);
  const SlottedArray& removed = *delta.removed_positions;
  for (size_t i = 0; i < removed.size(); ++i) {
    filter->Add(KeyFilter::Hash(base_keys[removed[i]]));
  }
  for (const DeltaPart& part : delta.parts) {
    const auto keys = ColumnOf<Key>(part.segment->run());
    for (size_t i = 0; i < part.segment->size(); ++i) filter->Add(KeyFilter::Hash(keys[i]));
  }
  return filter;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Delta>> CompactDelta::Make(const Delta& delta) {
  auto compact = std::make_shared<Delta>(delta);
  compact->compact = nullptr;
  ASSIGN_OR_RETURN(std::shared_ptr<const DeltaSegment> added, delta.AddedEntries());
  compact->parts.clear();
  if (added != nullptr) {
    PositionSet none(added->size());
    compact->parts.push_back({std::move(added), std::move(none)});
  }
  compact->removed_positions = std::make_shared<const SlottedArray>(PositionsOf(delta.removed));
  if (delta.filter != nullptr) {
    WithPhysicalKey(delta.base_run.kind(), [&](auto type) {
      using Key = typename decltype(type)::type;
      std::shared_ptr<const KeyFilter> filter = FilterOf<Key>(*compact);
      if (filter->memory_bytes() < delta.filter->memory_bytes()) {
        compact->filter = std::move(filter);
      }
    });
  }
  return compact;
}

const std::shared_ptr<const Delta>* CompactDelta::Get(const Delta& delta, uint64_t work) {
  if (made_.load(std::memory_order_acquire)) return &compact_;
  const uint64_t changes = delta.removed.size() + delta.added_entries();
  if (work == 0 || changes == 0) return nullptr;
  const uint64_t done = work_.fetch_add(work, std::memory_order_relaxed) + work;
  if (done < kWorkPerChange * changes) return nullptr;
  if (begun_.test_and_set(std::memory_order_relaxed)) return nullptr;
  try {
    absl::StatusOr<std::shared_ptr<const Delta>> compact = Make(delta);
    if (!compact.ok()) return nullptr;
    compact_ = *std::move(compact);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  made_.store(true, std::memory_order_release);
  return &compact_;
}

uint64_t CompactDelta::memory_bytes(const Delta& delta) const {
  if (!made_.load(std::memory_order_acquire)) return 0;
  uint64_t bytes = compact_->removed_positions->memory_bytes();
  for (const DeltaPart& part : compact_->parts) {
    const bool shared = std::any_of(delta.parts.begin(), delta.parts.end(), [&](const auto& other) {
      return other.segment == part.segment;
    });
    if (!shared) bytes += part.segment->memory_bytes();
  }
  if (compact_->filter != delta.filter) bytes += compact_->filter->memory_bytes();
  return bytes;
}

}  // namespace cairn
