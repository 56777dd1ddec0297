#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/types.h"

namespace cairn {

// The largest sequence number that a RocksDB key can carry.
inline constexpr SequenceNumber kMaxSequenceNumber = (uint64_t{1} << 56) - 1;

// An SST file as a MANIFEST places it in the tree.
struct SstPlacement {
  int level = 0;
  uint64_t number = 0;  // its name: TableFileName(number)
  uint64_t bytes = 0;   // its exact size
  // Every user key of the file lies between these; `largest` itself may be one unless
  // `largest_is_excluded`. Range deletions act between them only.
  std::string smallest;
  std::string largest;
  bool largest_is_excluded = false;
  SequenceNumber smallest_sequence = 0;
  SequenceNumber largest_sequence = 0;
};

// "000007.sst".
std::string TableFileName(uint64_t number);

// Writes the MANIFEST and CURRENT files that make `directory` a database which RocksDB opens
// read-only: one column family in byte order, no log, these files. Nothing else is written; the
// files must be there when it is opened. Levels of 1 and more must hold files in ascending order
// that do not overlap. The formats are those that RocksDB documents for its MANIFEST (version edits
// in the log format), unchanged since version 3.
absl::Status WriteRocksDbManifest(const std::string& directory,
                                  absl::Span<const SstPlacement> files);

}  // namespace cairn
