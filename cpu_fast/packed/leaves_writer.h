#pragma once

#include "absl/status/status.h"
#include "cpu_fast/packed/packed_index.h"
#include "index/files/run_file.h"

namespace cairn {

// Adds the packed leaves of a run, and their directory, to its file: to be called once all entries
// are appended, and before Finish. Keys of bytes have none, and nothing is added.
//
// Leaves are written some megabytes at a time, as the entries are read back from the file. The
// directory is made in memory: at most 1.5 bytes an entry of 32-bit keys, 3 of 64-bit keys, until
// this returns. On up to `threads` threads.
//
// Errors as RunFileWriter::Finish's, and PackedIndexOptions'. Throws std::bad_alloc.
absl::Status WriteLeaves(RunFileWriter* file, int threads, const PackedIndexOptions& options = {});

}  // namespace cairn
