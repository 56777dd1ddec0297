#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/db.h"

namespace cairn {

// Hard links to files of a database's log, which keep them readable after RocksDB has removed them.
// They are in a subdirectory of the log's directory. It is named after the session of the database
// (`session`: DB::GetDbSessionId), so that no later session uses them as its log. ListWalFiles
// lists them.
std::string WalLinkDirectory(const std::string& log_directory, const std::string& session);

// Links the files of the log from this number on. Does nothing on a file system without links.
void LinkWalFiles(rocksdb::DB* db, uint64_t from);
// Removes the links of files before this number.
void RemoveWalLinks(rocksdb::DB* db, uint64_t before);
// Returns whether there are any links, including those of other sessions.
bool HasWalLinks(rocksdb::DB* db);
// Removes all links, including those of killed processes. The database must be open for writing, so
// that no other process can have it open for writing.
void RemoveAllWalLinks(rocksdb::DB* db);

}  // namespace cairn
