#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/db.h"

namespace cairn {

// Hard links to files of a database's log, by which they stay readable after RocksDB has removed
// them. They are in a directory of the log's, named after the session of the database (`session`:
// DB::GetDbSessionId), so that no later opening takes them for its log. ListWalFiles lists them.
std::string WalLinkDirectory(const std::string& log_directory, const std::string& session);

// Links the files of the log from this number on. A file system without links has none.
void LinkWalFiles(rocksdb::DB* db, uint64_t from);
// Removes the links of files before this number.
void RemoveWalLinks(rocksdb::DB* db, uint64_t before);
// Whether there are any, also those of other sessions.
bool HasWalLinks(rocksdb::DB* db);
// Removes all links, also those of processes that were killed. The database must be open for
// writing, as no other process may have it open so.
void RemoveAllWalLinks(rocksdb::DB* db);

}  // namespace cairn
