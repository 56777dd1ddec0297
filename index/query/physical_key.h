#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "cairn/query.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"
#include "index/run/run_columns.h"

namespace cairn {

// The C++ value type of keys of one kind: uint32_t, uint64_t or std::string_view.
template <typename Key>
struct PhysicalKey {
  using type = Key;
};

// Calls `body` with the PhysicalKey of keys of `kind`.
template <typename Body>
auto WithPhysicalKey(PhysicalType kind, Body body) {
  switch (kind) {
    case PhysicalType::kU32:
      return body(PhysicalKey<uint32_t>());
    case PhysicalType::kU64:
      return body(PhysicalKey<uint64_t>());
    case PhysicalType::kBytes:
      break;
  }
  return body(PhysicalKey<std::string_view>());
}

template <typename Key>
inline constexpr PhysicalType kKindOf = std::is_same_v<Key, uint32_t>   ? PhysicalType::kU32
                                        : std::is_same_v<Key, uint64_t> ? PhysicalType::kU64
                                                                        : PhysicalType::kBytes;

// A view of keys as this type; requires that they be of its kind.
template <typename Key>
auto ColumnOf(const SortedRun& run) {
  if constexpr (std::is_same_v<Key, uint32_t>) {
    return FixedWidthColumn<Key>{run.u32()};
  } else if constexpr (std::is_same_v<Key, uint64_t>) {
    return FixedWidthColumn<Key>{run.u64()};
  } else {
    return StringColumn{run.bytes()};
  }
}
template <typename Key>
Key KeyAt(const EncodedKeys& keys, size_t i) {
  if constexpr (std::is_same_v<Key, uint32_t>) {
    return keys.u32(i);
  } else if constexpr (std::is_same_v<Key, uint64_t>) {
    return keys.u64(i);
  } else {
    return keys.bytes(i);
  }
}
template <typename Key>
void AppendKey(Key key, EncodedKeys* keys) {
  if constexpr (std::is_same_v<Key, uint32_t>) {
    keys->AppendU32(key);
  } else if constexpr (std::is_same_v<Key, uint64_t>) {
    keys->AppendU64(key);
  } else {
    keys->AppendBytes(key);
  }
}

// Appends all keys of a batch, which must be of the column's kind.
inline void AppendBatch(const KeyBatch& keys, EncodedKeys* column) {
  WithPhysicalKey(keys.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    for (const Key key : keys.as<Key>()) AppendKey(key, column);
  });
}
// Appends keys [first, first + count) of another column of the same kind.
inline void AppendSlice(const EncodedKeys& keys, size_t first, size_t count, EncodedKeys* column) {
  WithPhysicalKey(keys.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    for (size_t i = first; i < first + count; ++i) AppendKey(KeyAt<Key>(keys, i), column);
  });
}

}  // namespace cairn
