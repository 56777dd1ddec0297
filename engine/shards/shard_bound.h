#pragma once

#include <cstddef>
#include <string>
#include <tuple>

#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "cairn/types.h"

namespace cairn {

// A position among the entries of an index: before the first one whose (key, primary key) is at
// least this. So positions may be within the rows of one key. Plain data.
struct ShardBound {
  std::string key;          // bytes in the order of the keys: numbers are big-endian
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

// Appends the key with such bytes to a column of its kind. Returns false if they are not a key of
// it.
bool AppendOrderedKey(std::string_view bytes, EncodedKeys* keys);

// A bound's key as human-readable text, with the primary key if the bound is within the key's rows.
std::string BoundText(const KeyCodec& codec, const ShardBound& bound);

}  // namespace cairn
