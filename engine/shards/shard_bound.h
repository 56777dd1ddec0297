#pragma once

#include <cstddef>
#include <string>
#include <tuple>

#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "cairn/types.h"

namespace cairn {

// A place among the entries of an index: before the first one whose (key, primary key) is at least
// this. So a key with many rows may have places within. Plain data.
struct ShardBound {
  std::string key;          // as bytes that compare as the keys do: numbers are big-endian
  std::string primary_key;  // empty: before all rows of the key

  bool operator==(const ShardBound&) const = default;
  bool operator<(const ShardBound& other) const {
    return std::tie(key, primary_key) < std::tie(other.key, other.primary_key);
  }
};

// A physical key as such bytes.
std::string OrderedKeyBytes(uint32_t key);
std::string OrderedKeyBytes(uint64_t key);
std::string OrderedKeyBytes(std::string_view key);
// Key i of a column.
std::string OrderedKeyBytes(const EncodedKeys& keys, size_t i);

// Appends the key that such bytes are to a column of its kind. False where they are none of it.
bool AppendOrderedKey(std::string_view bytes, EncodedKeys* keys);

// A bound's key for people, with the row if it is within the key's.
std::string BoundText(const KeyCodec& codec, const ShardBound& bound);

}  // namespace cairn
