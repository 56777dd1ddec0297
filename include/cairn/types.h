#pragma once

#include <cstdint>
#include <string_view>

namespace cairn {

// The id of a row within one shard, or in an OrderedIndex: its rank among the rows of the base, in
// primary-key order.
using RowId = uint32_t;

// Returned if a query found no row. Never the id of a row: a shard has at most kMaxEntries rows and
// kMaxEntries entries.
inline constexpr RowId kNoRow = UINT32_MAX;

// The id of a row of a SecondaryIndex: the shard number in the high 32 bits, the RowId within that
// shard in the low 32 bits. An unsharded index is shard 0, so its row ids equal the RowIds. See
// sharding.h.
using GlobalRowId = uint64_t;

// Combine a shard and a row id to a global row id, and take one apart.
constexpr GlobalRowId MakeGlobalRowId(uint32_t shard, RowId row_id) {
  return static_cast<GlobalRowId>(shard) << 32 | row_id;
}
constexpr uint32_t ShardOf(GlobalRowId row) {
  return static_cast<uint32_t>(row >> 32);
}
constexpr RowId RowInShard(GlobalRowId row) {
  return static_cast<RowId>(row);
}
// Returned if a query found no row. Never the id of a row in any shard.
inline constexpr GlobalRowId kNoGlobalRow = UINT64_MAX;

// A position in a sorted run: the number of entries before it, in [0, run.size()]. run.size() is
// the position past the last entry.
using Position = uint32_t;

// The maximum number of entries in a sorted run, and of rows and entries in an unsharded index or
// in one shard.
inline constexpr uint64_t kMaxEntries = uint64_t{UINT32_MAX} - 1;

// A RocksDB sequence number. An index describes the state of its database at one sequence number.
using SequenceNumber = uint64_t;

// The three physical forms of a key. Each logical key type maps to one of them and keeps its order
// (key_codec.h), so a search structure compares only unsigned integers or byte strings.
enum class PhysicalType : uint8_t {
  kU32 = 1,    // unsigned 32-bit integer
  kU64 = 2,    // unsigned 64-bit integer
  kBytes = 3,  // byte string, in memcmp order; a prefix sorts before its extensions
};

// Returns the name used in messages: "u32", "u64" or "bytes".
std::string_view PhysicalTypeName(PhysicalType kind);

// How thoroughly a file is verified before use.
enum class VerifyLevel : uint8_t {
  // Checks headers, sizes, the manifest and that keys ascend; nothing can read past the end of a
  // file. Keys are not read if the index searches only a prebuilt search structure
  // (BuildOptions::prebuild_search_structure).
  kMetadata,
  kFull,  // also checks the checksum of every section
};

}  // namespace cairn
