#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/source/rocksdb_manifest.h"
#include "engine/util/key_order.h"
#include "rocksdb/options.h"

namespace cairn {

// The writer of an SST file, which determines its order relative to others.
enum class SstOrigin {
  kWriter,    // SstFileWriter: its entries have no sequence numbers yet; the given order decides
  kDatabase,  // a database's flush, compaction or ingestion: sequence numbers decide
};

// A loose SST file, described by its properties and outermost keys.
struct SstFile {
  std::string path;  // canonical
  SstOrigin origin = SstOrigin::kDatabase;
  uint64_t bytes = 0;
  uint64_t entries = 0;  // all entries, including tombstones and range deletions
  uint64_t range_deletions = 0;
  uint64_t merge_operands = 0;
  uint64_t raw_bytes = 0;  // of keys and values, uncompressed
  std::string merge_operator;
  std::string column_family;  // of the database that wrote it; empty if unknown
  std::string database_id;    // the id of that database; empty if unknown
  std::string unique_id;      // only copies of a file have equal ones; empty if unknown
  // The sequence number of all its entries, if it was ingested and numbered in place; otherwise 0.
  SequenceNumber global_sequence = 0;

  std::string comparator;  // its name; empty if unknown

  // Set by FindKeyBounds: the user keys of the outermost entries, including tombstones, in the
  // order of bytes. For a file with range deletions, whose ends RocksDB does not return, these are
  // bounds of all its keys, and `largest` is excluded.
  std::string smallest;
  std::string largest;

  bool IsWide() const { return range_deletions > 0; }
};

// Reads a file's properties. Errors: NotFound if the file does not exist; InvalidArgument if
// RocksDB cannot read it as an SST file; Unimplemented if the order of its comparator is unknown.
absl::StatusOr<SstFile> InspectSstFile(const std::string& path, const rocksdb::Options& options);

// Finds the file's outermost keys through a database in `scratch_directory`, which must be empty
// and is empty afterwards. `options` must have the file's comparator, of this order, and its merge
// operator.
absl::Status FindKeyBounds(const rocksdb::Options& options, KeyOrder order,
                           const std::string& scratch_directory, SstFile* file);

// Sets the bounds of `placed` to keys in the order of bytes, `largest` excluded or not.
void SetBounds(KeyOrder order, const std::string& smallest, const std::string& largest,
               bool largest_is_excluded, SstPlacement* placed);

// Returns the number of entries that together take a few megabytes.
size_t EntriesPerChunk(uint64_t raw_bytes, uint64_t entries);

}  // namespace cairn
