#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "rocksdb/options.h"

namespace cairn {

// Who wrote an SST file, which says what orders it against others.
enum class SstOrigin {
  kWriter,    // SstFileWriter: its entries have no sequence numbers yet; the order given decides
  kDatabase,  // a database's flush, compaction or ingestion: sequence numbers decide
};

// A loose SST file, as far as its properties and outermost keys tell.
struct SstFile {
  std::string path;  // canonical
  SstOrigin origin = SstOrigin::kDatabase;
  uint64_t bytes = 0;
  uint64_t entries = 0;  // all of them: tombstones and range deletions included
  uint64_t range_deletions = 0;
  uint64_t merge_operands = 0;
  uint64_t raw_bytes = 0;  // of keys and values, uncompressed
  std::string merge_operator;
  std::string column_family;  // of the database that wrote it; empty where not known
  std::string database_id;    // likewise
  std::string unique_id;      // the same for copies of a file only; empty where not known
  // The one of all its entries, where it was ingested and numbered in place; else 0.
  SequenceNumber global_sequence = 0;

  // Found by FindKeyBounds. User keys of the outermost entries, tombstones included. Of a file with
  // range deletions, whose ends RocksDB does not tell, bounds that no key of the file lies outside
  // of, the largest one excluded.
  std::string smallest;
  std::string largest;

  bool IsWide() const { return range_deletions > 0; }
};

// Reads a file's properties. NotFound where there is none, InvalidArgument where it is no SST file
// that RocksDB can read, Unimplemented for comparators other than the bytewise one.
absl::StatusOr<SstFile> InspectSstFile(const std::string& path, const rocksdb::Options& options);

// Finds the file's outermost keys, with the help of a database in `scratch_directory`, which
// must be empty, and is so again afterwards. `options` must have the file's merge operator.
absl::Status FindKeyBounds(const rocksdb::Options& options, const std::string& scratch_directory,
                           SstFile* file);

// How many entries to hold at a time so that they take a few megabytes.
size_t EntriesPerChunk(uint64_t raw_bytes, uint64_t entries);

}  // namespace cairn
