#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/cord.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/util/make_room.h"

namespace cairn {

// Row id -> the keys of the row's entries in a delta. A new row takes 16 bytes, and a row of the
// base that has such entries takes 32 to 64; encoded keys of more than 15 bytes take additional
// memory. Key is uint32_t, uint64_t or std::string_view. Not thread-safe. Methods that allocate
// throw std::bad_alloc.
template <typename Key>
class RowKeys {
 public:
  // The base has the rows before `base_rows`.
  explicit RowKeys(RowId base_rows) : base_rows_(base_rows) {}

  // Returns the row's keys, valid until the next call of any method. Byte strings are valid until
  // the next change.
  absl::Span<const Key> Find(RowId row) {
    found_.clear();
    if (row < base_rows_) {
      const auto found = of_base_.find(row);
      if (found != of_base_.end()) Decode(*found->second.TryFlat());
    } else if (row - base_rows_ < of_new_.size()) {
      Decode(*of_new_[row - base_rows_].TryFlat());
    }
    return found_;
  }
  void Prefetch(RowId row) const {
    if (row < base_rows_) of_base_.prefetch(row);
  }

  void Set(RowId row, absl::Span<const Key> keys) {
    if (row < base_rows_ && keys.empty()) {
      of_base_.erase(row);
    } else if (row < base_rows_) {
      MakeRoomForOne(&of_base_);
      of_base_.insert_or_assign(row, Encode(keys));
    } else {
      if (row - base_rows_ >= of_new_.size()) of_new_.resize(row - base_rows_ + 1);
      of_new_[row - base_rows_] = Encode(keys);
    }
  }
  void Clear() {
    of_base_.clear();
    of_new_.clear();
  }

 private:
  // Keys are stored as one block of bytes: numbers as they are in memory; byte strings each after
  // its size, which takes one byte if it is less than kLong, and otherwise that byte and four more.
  // absl::Cord has 15 bytes within its 16.
  static constexpr bool kIsBytes = std::is_same_v<Key, std::string_view>;
  static constexpr uint8_t kLong = 255;

  absl::Cord Encode(absl::Span<const Key> keys) {
    encoded_.clear();
    for (const Key& key : keys) {
      if constexpr (kIsBytes) {
        const auto size = static_cast<uint32_t>(key.size());
        encoded_.push_back(static_cast<char>(size < kLong ? size : kLong));
        if (size >= kLong) encoded_.append(reinterpret_cast<const char*>(&size), sizeof size);
        encoded_.append(key);
      } else {
        encoded_.append(reinterpret_cast<const char*>(&key), sizeof key);
      }
    }
    absl::Cord cord(absl::string_view(encoded_.data(), encoded_.size()));
    cord.Flatten();  // so that TryFlat succeeds
    return cord;
  }

  void Decode(absl::string_view encoded) {
    const char* next = encoded.data();
    const char* const end = next + encoded.size();
    while (next != end) {
      if constexpr (kIsBytes) {
        uint32_t size = static_cast<uint8_t>(*next++);
        if (size == kLong) {
          std::memcpy(&size, next, sizeof size);
          next += sizeof size;
        }
        found_.emplace_back(next, size);
        next += size;
      } else {
        Key key;
        std::memcpy(&key, next, sizeof key);
        found_.push_back(key);
        next += sizeof key;
      }
    }
  }

  const RowId base_rows_;
  absl::flat_hash_map<RowId, absl::Cord> of_base_;  // rows without keys are not in it
  std::deque<absl::Cord> of_new_;                   // which does not move its elements as it grows
  std::string encoded_;
  std::vector<Key> found_;
};

}  // namespace cairn
