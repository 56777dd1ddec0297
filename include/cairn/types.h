#pragma once

#include <cstdint>

namespace cairn {

// The rank of a row's primary key among all rows of an index's base, in primary-key order.
using RowId = uint32_t;

// Where a query found no row. Never a row's id: an index holds at most kMaxEntries rows and
// entries.
inline constexpr RowId kNoRow = UINT32_MAX;

// A row of an index in shards (sharding.h): its shard's number above, its RowId in that shard
// below. A row of any other index is of shard 0, so that it is its RowId.
using GlobalRowId = uint64_t;

constexpr GlobalRowId MakeGlobalRowId(uint32_t shard, RowId row_id) {
  return static_cast<GlobalRowId>(shard) << 32 | row_id;
}
constexpr uint32_t ShardOf(GlobalRowId row) {
  return static_cast<uint32_t>(row >> 32);
}
constexpr RowId RowInShard(GlobalRowId row) {
  return static_cast<RowId>(row);
}
// Where a query found no row: never a row's, whatever its shard.
inline constexpr GlobalRowId kNoGlobalRow = UINT64_MAX;

// The rank of an entry in its sorted run, in [0, run.size()].
using Position = uint32_t;

// The most entries in a run, and the most rows in an index that is not in shards, or in a shard.
inline constexpr uint64_t kMaxEntries = uint64_t{UINT32_MAX} - 1;

// RocksDB's sequence number: an index answers for the state of its database at one of these.
using SequenceNumber = uint64_t;

// The three physical forms of a key. Every logical key type maps to one of them, order preserved
// (key_codec.h), so that a search structure compares unsigned integers or byte strings only.
enum class PhysicalType : uint8_t {
  kU32 = 1,    // unsigned 32-bit integer
  kU64 = 2,    // unsigned 64-bit integer
  kBytes = 3,  // byte string, compared as by memcmp, a prefix before its extensions
};

// The name used in messages: "u32", "u64" or "bytes".
const char* PhysicalTypeName(PhysicalType kind);

// How closely a file is looked at before it is used.
enum class VerifyLevel : uint8_t {
  // Headers, sizes, manifest, and that keys ascend: nothing reaches out of a file. Keys are left
  // unread where stored leaves are all that is searched (BuildOptions::prebuild_search_structure).
  kMetadata,
  kFull,  // and every section's checksum
};

}  // namespace cairn
