#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "rocksdb/comparator.h"

namespace cairn {

// The largest sequence number that fits into a RocksDB key.
inline constexpr SequenceNumber kMaxSequenceNumber = (uint64_t{1} << 56) - 1;

// The place of an SST file in the tree, according to a MANIFEST.
struct SstPlacement {
  int level = 0;
  uint64_t number = 0;  // its name is TableFileName(number)
  uint64_t bytes = 0;   // its exact size
  // Every user key of the file is between these, in the comparator's order. `largest` itself may be
  // a key unless
  // `largest_is_excluded`. Range deletions have effect only between them.
  std::string smallest;
  std::string largest;
  bool largest_is_excluded = false;
  SequenceNumber smallest_sequence = 0;
  SequenceNumber largest_sequence = 0;
};

// Returns a name such as "000007.sst".
std::string TableFileName(uint64_t number);

// Writes the MANIFEST and CURRENT files that make `directory` a database that RocksDB can open
// read-only: one column family with this comparator, no log, and these files. Writes nothing else.
// The files must exist when the database is opened. On levels from 1 on, files must ascend and must
// not overlap. RocksDB documents the formats of its MANIFEST (version edits in the log format);
// they are unchanged since version 3.
absl::Status WriteRocksDbManifest(const std::string& directory,
                                  const rocksdb::Comparator* comparator,
                                  absl::Span<const SstPlacement> files);

}  // namespace cairn
