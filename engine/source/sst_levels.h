#pragma once

#include <vector>

#include "absl/types/span.h"
#include "engine/source/sst_file.h"

namespace cairn {

// The tree into which files are put so that RocksDB reads them together.
struct SstLevels {
  std::vector<int> level;  // of each file, from 1 on; a smaller level is newer
  int depth = 1;           // the largest level
  // Whether files that a database wrote share keys. Then the levels do not determine which of two
  // entries is newer, but their sequence numbers do. Files of SstFileWriter do not count.
  bool overlapping_database_files = false;
};

// Arranges files in as few levels as their order allows, so that files of one level do not overlap.
// A file of SstFileWriter is in a smaller level than every earlier file that it overlaps. Errors:
// FailedPrecondition, with the files and the reason, if levels cannot express their order:
// - files of SstFileWriter and of a database that overlap;
// - files of different column families, or of different databases that overlap;
// - range deletions in a database's file, unless it is the only file: their ends are stored only in
//   the database's MANIFEST.
absl::StatusOr<SstLevels> ArrangeSstFiles(absl::Span<const SstFile> files);

}  // namespace cairn
