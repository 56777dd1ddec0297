#pragma once

#include <memory>

#include "index/files/file_system.h"
#include "rocksdb/file_system.h"

namespace cairn {

// An application's file system as an index uses it. Null, and RocksDB's local one, are
// FileSystem::Posix(), which maps files.
//
// Files are written by NewRandomRWFile, as columns are side by side; Unimplemented where there is
// no such thing. A lock that cannot be had is Unavailable, whatever the reason, as RocksDB does not
// tell.
std::shared_ptr<FileSystem> FileSystemOf(std::shared_ptr<rocksdb::FileSystem> file_system);

}  // namespace cairn
