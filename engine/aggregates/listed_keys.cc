#include "engine/aggregates/listed_keys.h"

#include <algorithm>

#include "index/query/physical_key.h"

namespace cairn {
namespace {

// Returns how many keys the lists have in total, minus the number of distinct keys.
template <typename Key>
uint64_t RepeatsIn(std::vector<KeyListOf>::const_iterator first,
                   std::vector<KeyListOf>::const_iterator last, std::vector<Key>* keys) {
  keys->clear();
  for (auto list = first; list != last; ++list) {
    const ListedKeys& listed = *list->listed;
    for (uint64_t k = listed.offsets[list->i]; k < listed.offsets[list->i + 1]; ++k) {
      keys->push_back(KeyAt<Key>(listed.keys, k));
    }
  }
  std::sort(keys->begin(), keys->end());
  return static_cast<uint64_t>(keys->end() - std::unique(keys->begin(), keys->end()));
}

}  // namespace

void ListedKeys::Append(const ListedKeys& more) {
  if (keys.empty()) keys.Clear(more.keys.kind());
  const uint64_t before = keys.size();
  for (size_t i = 1; i < more.offsets.size(); ++i) offsets.push_back(before + more.offsets[i]);
  WithPhysicalKey(keys.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    for (size_t k = 0; k < more.keys.size(); ++k) AppendKey<Key>(KeyAt<Key>(more.keys, k), &keys);
  });
}

void ForEachRepeated(std::vector<KeyListOf>* lists,
                     absl::FunctionRef<void(size_t range, uint64_t repeats)> body) {
  if (lists->empty()) return;
  std::sort(lists->begin(), lists->end(),
            [](const KeyListOf& a, const KeyListOf& b) { return a.range < b.range; });
  WithPhysicalKey(lists->front().listed->keys.kind(), [&](auto type) {
    std::vector<typename decltype(type)::type> keys;
    for (auto first = lists->cbegin(); first != lists->cend();) {
      const size_t range = first->range;
      const auto last = std::find_if(first, lists->cend(),
                                     [&](const KeyListOf& list) { return list.range != range; });
      if (last - first > 1) {
        const uint64_t repeats = RepeatsIn(first, last, &keys);
        if (repeats != 0) body(range, repeats);
      }
      first = last;
    }
  });
}

}  // namespace cairn
