#include "engine/aggregates/shared_keys.h"

#include <algorithm>
#include <queue>
#include <string_view>
#include <type_traits>

#include "index/query/physical_key.h"
#include "index/run/gallop.h"

namespace cairn {
namespace {

// The remaining entries of one run of a version.
template <typename Key>
struct RunLeft {
  decltype(ColumnOf<Key>(SortedRun())) column;
  const PositionSet* removed;
  size_t version;
  uint64_t at;
  uint64_t end;

  Key key() const { return column[at]; }
  // Advances to the first remaining entry whose key does not satisfy `passed`.
  template <typename Passed>
  void Skip(Passed passed) {
    at = removed->FirstAbsent(Gallop(at, end, [&](size_t p) { return passed(column[p]); }), end);
  }
};

// Returns the index of the first key of `keys` that is not `before`.
template <typename Key, typename Before>
size_t FirstNotBefore(const EncodedKeys& keys, Before before) {
  return PartitionPoint(size_t{0}, keys.size(),
                        [&](size_t i) { return before(KeyAt<Key>(keys, i)); });
}

}  // namespace

template <typename Key>
void SharedKeys::Append(Key key, uint64_t repeats) {
  if (!keys_.empty() && KeyAt<Key>(keys_, keys_.size() - 1) == key) {
    before_.back() += repeats;
    return;
  }
  before_.reserve(before_.size() + 1);
  AppendKey<Key>(key, &keys_);
  before_.push_back(before_.back() + repeats);
}

template <typename Key>
void SharedKeys::Merge(absl::Span<const Delta* const> versions) {
  std::vector<RunLeft<Key>> left;
  const auto add = [&](const SortedRun& run, const PositionSet& removed, size_t version) {
    const uint64_t first = removed.FirstAbsent(0, run.size());
    if (first == run.size()) return;
    left.push_back({ColumnOf<Key>(run), &removed, version, first, run.size()});
  };
  for (size_t v = 0; v < versions.size(); ++v) {
    add(versions[v]->base_run, versions[v]->removed, v);
    for (const DeltaPart& part : versions[v]->parts) add(part.segment->run(), part.removed, v);
  }
  const auto later = [](const RunLeft<Key>* a, const RunLeft<Key>* b) {
    return b->key() < a->key();
  };
  std::priority_queue heap(later, std::vector<RunLeft<Key>*>());  // the smallest key is on top
  for (RunLeft<Key>& run : left) heap.push(&run);
  const auto pop = [&] {
    RunLeft<Key>* const run = heap.top();
    heap.pop();
    return run;
  };
  const auto push = [&](RunLeft<Key>* run) {
    if (run->at != run->end) heap.push(run);
  };
  std::vector<RunLeft<Key>*> equal;
  std::vector<size_t> having;
  while (heap.size() > 1) {
    RunLeft<Key>* const first = pop();
    const Key key = heap.top()->key();
    if (first->key() < key) {  // only `first` has these keys
      first->Skip([&](const Key& other) { return other < key; });
      push(first);
      continue;
    }
    equal.assign(1, first);
    while (!heap.empty() && heap.top()->key() == key) equal.push_back(pop());
    having.clear();
    for (const RunLeft<Key>* run : equal) having.push_back(run->version);
    std::sort(having.begin(), having.end());
    const auto end = std::unique(having.begin(), having.end());
    if (const auto count = static_cast<uint64_t>(end - having.begin()); count > 1) {
      Append<Key>(key, count - 1);
    }
    for (RunLeft<Key>* run : equal) {
      run->Skip([&](const Key& other) { return other == key; });
      push(run);
    }
  }
}

template <typename Key>
void SharedKeys::CompareNeighbours(absl::Span<const Delta* const> versions) {
  const SortedRun* before = nullptr;
  for (const Delta* const version : versions) {
    const SortedRun& run = version->base_run;
    if (run.empty()) continue;
    const Key first = ColumnOf<Key>(run)[0];
    if (before != nullptr && ColumnOf<Key>(*before)[before->size() - 1] == first) {
      Append<Key>(first, 1);
    }
    before = &run;
  }
}

std::shared_ptr<const SharedKeys> SharedKeys::Of(absl::Span<const Delta* const> versions) {
  const PhysicalType kind = versions[0]->base_run.kind();
  const std::shared_ptr<SharedKeys> shared(new SharedKeys(kind));
  WithPhysicalKey(kind, [&](auto type) { shared->Merge<typename decltype(type)::type>(versions); });
  return shared;
}

std::shared_ptr<const SharedKeys> SharedKeys::OfNeighbours(
    absl::Span<const Delta* const> versions) {
  const PhysicalType kind = versions[0]->base_run.kind();
  const std::shared_ptr<SharedKeys> shared(new SharedKeys(kind));
  WithPhysicalKey(
      kind, [&](auto type) { shared->CompareNeighbours<typename decltype(type)::type>(versions); });
  return shared;
}

uint64_t SharedKeys::memory_bytes() const {
  return keys_.u32().capacity() * sizeof(uint32_t) + keys_.u64().capacity() * sizeof(uint64_t) +
         keys_.heap().size() + (keys_.offsets().capacity() + before_.capacity()) * sizeof(uint64_t);
}

SharedKeys::Stretch SharedKeys::Find(const RangeBatch& ranges, size_t i) const {
  return WithPhysicalKey(keys_.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    Stretch stretch{0, keys_.size()};
    const Bound from = ranges.lower_bound_of(i), to = ranges.upper_bound_of(i);
    const Key lower = ranges.lower.as<Key>()[i], upper = ranges.upper.as<Key>()[i];
    if (from != Bound::kOpen) {
      stretch.begin = FirstNotBefore<Key>(keys_, [&](const Key& key) {
        return key < lower || (from == Bound::kExclusive && key == lower);
      });
    }
    if (to == Bound::kInclusive || to == Bound::kExclusive) {
      stretch.end = FirstNotBefore<Key>(keys_, [&](const Key& key) {
        return key < upper || (to == Bound::kInclusive && key == upper);
      });
    }
    if constexpr (std::is_same_v<Key, std::string_view>) {
      if (to == Bound::kPrefix) {
        stretch.end = FirstNotBefore<Key>(
            keys_, [&](const Key& key) { return key < lower || StartsWith(key, lower); });
      }
    }
    stretch.end = std::max(stretch.begin, stretch.end);  // a range whose ends cross is empty
    return stretch;
  });
}

}  // namespace cairn
