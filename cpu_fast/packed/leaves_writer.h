#pragma once

#include "absl/status/status.h"
#include "cpu_fast/packed/packed_index.h"
#include "index/files/run_file.h"

namespace cairn {

// Adds the packed leaves of a run and their directory to the run's file. Must be called after all
// entries are appended and before Finish. Does nothing for byte-string keys.
//
// Leaves are written a few megabytes at a time, while the entries are read back from the file. The
// directory is built in memory and takes at most 1.5 bytes per entry with 32-bit keys and 3 bytes
// with 64-bit keys, until this function returns. Uses up to `threads` threads.
//
// Errors: those of RunFileWriter::Finish and of PlanLeaves for `options`. Throws std::bad_alloc.
absl::Status WriteLeaves(RunFileWriter* file, int threads, const PackedIndexOptions& options = {});

}  // namespace cairn
