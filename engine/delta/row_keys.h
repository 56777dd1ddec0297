#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/util/make_room.h"

namespace cairn {

// Row id -> the keys of the entries that the row has in a delta; rows without any take nothing. Key
// is uint32_t, uint64_t or std::string_view. Not thread-safe; what allocates throws std::bad_alloc.
template <typename Key>
class RowKeys {
 public:
  // A key that owns its bytes.
  using Owned = std::conditional_t<std::is_same_v<Key, std::string_view>, std::string, Key>;

  // The row's keys, valid until the next change.
  absl::Span<const Owned> Find(RowId row) const {
    const auto found = keys_.find(row);
    return found == keys_.end() ? absl::Span<const Owned>() : absl::MakeConstSpan(found->second);
  }
  void Prefetch(RowId row) const { keys_.prefetch(row); }

  void Set(RowId row, absl::Span<const Key> keys) {
    if (keys.empty()) {
      keys_.erase(row);
    } else {
      MakeRoomForOne(&keys_);
      keys_[row].assign(keys.begin(), keys.end());
    }
  }
  void Add(RowId row, Key key) {
    MakeRoomForOne(&keys_);
    keys_[row].emplace_back(key);
  }
  void Clear() { keys_.clear(); }

 private:
  absl::flat_hash_map<RowId, absl::InlinedVector<Owned, 1>> keys_;
};

}  // namespace cairn
