#pragma once

#include <vector>

#include "absl/types/span.h"
#include "engine/source/sst_file.h"

namespace cairn {

// The tree that files are put into, so that RocksDB reads them together.
struct SstLevels {
  std::vector<int> level;  // of each file, from 1; a smaller level is newer
  int depth = 1;           // the largest level
  // Whether files of SstFileWriter aside, files of one database share keys, so that the levels do
  // not say which of two entries is newer; their sequence numbers do.
  bool overlapping_database_files = false;
};

// Arranges files so that those of a level do not overlap, in as few levels as their order allows. A
// file of SstFileWriter lies in a smaller level than every earlier file that it overlaps. Where
// levels cannot express what the files mean, FailedPrecondition names the files and says why:
// - files of SstFileWriter and of a database that overlap;
// - files of different column families, or of different databases that overlap;
// - range deletions in files of a database that are not alone: where they end is written in that
//   database's MANIFEST only.
absl::StatusOr<SstLevels> ArrangeSstFiles(absl::Span<const SstFile> files);

}  // namespace cairn
