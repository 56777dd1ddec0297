#pragma once

#include <memory>

#include "index/files/file_system.h"
#include "rocksdb/file_system.h"

namespace cairn {

// Wraps an application's file system for an index. For null and for RocksDB's local file system,
// returns FileSystem::Posix(), which maps files.
//
// Files are written with NewRandomRWFile, since columns are written concurrently. Unimplemented:
// the file system does not support it. A lock that cannot be acquired is Unavailable, whatever the
// reason, since RocksDB does not report it.
std::shared_ptr<FileSystem> FileSystemOf(std::shared_ptr<rocksdb::FileSystem> file_system);

}  // namespace cairn
