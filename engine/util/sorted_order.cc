#include "engine/util/sorted_order.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <type_traits>

#include "index/machine/aligned_buffer.h"
#include "index/sort/sort.h"

namespace cairn {
namespace {

// Sorts entries whose row ids are the keys' indexes, and returns the row ids.
template <typename Entry>
std::vector<uint32_t> Sort(absl::Span<Entry> entries) {
  SortEntries(entries, 1);
  std::vector<uint32_t> order(entries.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = entries[i].row_id();
  return order;
}

}  // namespace

template <typename Key>
std::vector<uint32_t> SortedOrder(absl::Span<const Key> keys) {
  if (std::is_sorted(keys.begin(), keys.end())) {
    std::vector<uint32_t> order(keys.size());
    std::iota(order.begin(), order.end(), 0);
    return order;
  }
  if constexpr (std::is_same_v<Key, std::string_view>) {
    size_t bytes = KeyRecord::kSlack;
    for (std::string_view key : keys) bytes += KeyRecord::Bytes(key.size());
    AlignedBuffer<char> records(bytes);
    AlignedBuffer<BytesEntry> entries(keys.size());
    char* at = records.data();
    for (size_t i = 0; i < keys.size(); ++i) {
      KeyRecord::Write(keys[i], static_cast<RowId>(i), at);
      entries[i] = {at, 0};
      at += KeyRecord::Bytes(keys[i].size());
    }
    return Sort(entries.span());
  } else {
    using Entry = std::conditional_t<sizeof(Key) == 4, Entry32, Entry64>;
    AlignedBuffer<Entry> entries(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      entries[i] = Entry::Make(keys[i], static_cast<RowId>(i));
    }
    return Sort(entries.span());
  }
}

template std::vector<uint32_t> SortedOrder(absl::Span<const uint32_t>);
template std::vector<uint32_t> SortedOrder(absl::Span<const uint64_t>);
template std::vector<uint32_t> SortedOrder(absl::Span<const std::string_view>);

}  // namespace cairn
