#include "engine/log/wal_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "engine/log/wal_links.h"
#include "engine/util/status.h"
#include "index/machine/status_macros.h"
#include "rocksdb/write_batch.h"

namespace cairn {
namespace {

constexpr std::string_view kSuffix = ".log";

// Returns the numbers of the log files in a directory, which need not exist.
absl::StatusOr<std::vector<uint64_t>> ListNumbers(rocksdb::DB* db, const std::string& directory) {
  std::vector<std::string> names;
  const rocksdb::IOStatus listed =
      db->GetFileSystem()->GetChildren(directory, rocksdb::IOOptions(), &names, nullptr);
  const absl::Status s =
      FromRocksDb(listed, absl::StrFormat("cannot list log files in '%s'", directory));
  if (!s.ok() && !absl::IsNotFound(s)) return s;
  std::vector<uint64_t> numbers;
  for (const std::string& name : names) {
    if (const auto number = WalNumber(name); number.has_value()) numbers.push_back(*number);
  }
  return numbers;
}

// Waits until a file that another process writes, or the names in a directory, are on disk. This
// uses fsync(2), because a rocksdb::FileSystem syncs only what it writes itself, and nothing if the
// database is open for reading only. Errors: NotFound if the path does not exist here, for example
// for a remote database.
absl::Status SyncPath(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = file >= 0 && fsync(file) == 0;
  const int error = errno;
  if (file >= 0) close(file);
  return synced ? absl::OkStatus()
                : absl::ErrnoToStatus(error, absl::StrFormat("cannot sync '%s'", path));
}

}  // namespace

std::string LogDirectory(rocksdb::DB* db) {
  return LogDirectory(db->GetDBOptions(), db->GetName());
}

std::string LogDirectory(const rocksdb::DBOptions& options, const std::string& database) {
  return options.wal_dir.empty() ? database : options.wal_dir;
}

std::optional<uint64_t> WalNumber(std::string_view name) {
  if (name.size() <= kSuffix.size() || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  uint64_t number;
  const bool digits = name.find_first_not_of("0123456789") == name.npos;
  if (!digits || !absl::SimpleAtoi(std::string(name), &number)) return std::nullopt;
  return number;
}

absl::StatusOr<std::vector<WalFile>> ListWalFiles(rocksdb::DB* db) {
  const std::string directory = LogDirectory(db);
  const std::string archive = directory + "/archive";
  std::string session;
  RETURN_IF_ERROR(FromRocksDb(db->GetDbSessionId(session), "cannot get the database's session id"));
  const std::string links = WalLinkDirectory(directory, session);
  // The archive is listed after the directory: files are moved there, and a file in both is the
  // same one. A database with an archive has no links.
  std::map<uint64_t, WalFile> by_number;
  for (const std::string& place : {directory, archive, links}) {
    ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, ListNumbers(db, place));
    for (const uint64_t number : numbers) {
      const std::string name = absl::StrFormat("/%06d%s", number, kSuffix);
      WalFile& file = by_number[number];
      file.number = number;
      if (place != links || file.path.empty()) file.path = place + name;
      file.archived_path = (place == directory ? archive : place) + name;
    }
  }
  std::vector<WalFile> files;
  for (auto& [number, file] : by_number) files.push_back(std::move(file));
  return files;
}

absl::Status SyncLog(rocksdb::DB* db, bool read_only) {
  if (!read_only) {
    // An empty write syncs the log. Like any write, it fails if an earlier write has failed;
    // syncing the log directly would then end a process whose RocksDB has assertions (Debian's
    // 7.8). Also, only writes sync some files, such as those in memory.
    rocksdb::WriteOptions options;
    options.sync = true;
    options.no_slowdown = true;
    rocksdb::WriteBatch nothing;
    rocksdb::Status synced = db->GetRootDB()->Write(options, &nothing);
    if (synced.IsIncomplete()) synced = db->FlushWAL(/*sync=*/true);  // writes are stalled
    return FromRocksDb(synced,
                       absl::StrFormat("cannot sync the log of database '%s'", db->GetName()));
  }
  ASSIGN_OR_RETURN(const std::vector<WalFile> files, ListWalFiles(db));
  const auto sync = [](const std::string& path) {
    const absl::Status s = SyncPath(path);
    return absl::IsNotFound(s) ? absl::OkStatus() : s;  // archived concurrently
  };
  for (const WalFile& file : files) {
    // The contents of archived files are also in SST files, which RocksDB has synced.
    if (file.path == file.archived_path) continue;
    RETURN_IF_ERROR(sync(file.path));
  }
  if (files.empty()) return absl::OkStatus();
  return sync(files.back().path.substr(0, files.back().path.rfind('/')));
}

absl::StatusOr<std::unique_ptr<WalReader>> OpenWalFile(rocksdb::DB* db, const WalFile& file,
                                                       WalPlace from) {
  absl::StatusOr<std::unique_ptr<WalReader>> reader =
      WalReader::Open(db->GetFileSystem(), file.path, file.number, from);
  if (!absl::IsNotFound(reader.status()) || file.archived_path == file.path) return reader;
  return WalReader::Open(db->GetFileSystem(), file.archived_path, file.number, from);
}

absl::StatusOr<size_t> FindWalFile(rocksdb::DB* db, SequenceNumber sequence,
                                   std::vector<WalFile>* files) {
  size_t found = files->size();
  SequenceNumber limit = UINT64_MAX;
  for (size_t i = files->size(); i-- > 0;) {
    WalFile& file = (*files)[i];
    const absl::StatusOr<std::unique_ptr<WalReader>> reader = OpenWalFile(db, file);
    if (absl::IsNotFound(reader.status())) continue;
    if (!reader.ok()) return reader.status();
    file.limit = limit;
    if ((*reader)->Next()) {
      file.start = (*reader)->sequence();
    } else if (absl::Status s = (*reader)->status(); !s.ok() && !absl::IsDataLoss(s)) {
      return s;
    }
    if (file.start == 0) continue;
    limit = std::min(limit, file.start);
    if (file.start == sequence) found = i;
    if (file.start < sequence) return found < files->size() ? found : i;
  }
  return found;
}

}  // namespace cairn
