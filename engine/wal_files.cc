#include "engine/wal_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/status.h"
#include "rocksdb/transaction_log.h"
#include "rocksdb/version.h"

namespace cairn {

absl::StatusOr<std::vector<WalFile>> ListWalFiles(rocksdb::DB* db) {
  rocksdb::VectorLogPtr listed;
  if (absl::Status s =
          FromRocksDb(db->GetSortedWalFiles(listed),
                      absl::StrFormat("cannot list the log of database '%s'", db->GetName()));
      !s.ok()) {
    return s;
  }
  const rocksdb::DBOptions options = db->GetDBOptions();
  const std::string& directory = !options.wal_dir.empty()    ? options.wal_dir
                                 : !options.db_paths.empty() ? options.db_paths[0].path
                                                             : db->GetName();
  std::vector<WalFile> files;
  files.reserve(listed.size());
  for (const auto& log : listed) {
    WalFile file;
    file.number = log->LogNumber();
    file.start = log->StartSequence();
    file.path = directory + log->PathName();
    file.archived_path = log->Type() == rocksdb::kArchivedLogFile
                             ? file.path
                             : directory + "/archive" + log->PathName();
    files.push_back(std::move(file));
  }
  SequenceNumber limit = UINT64_MAX;
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    file->limit = limit;
    limit = std::min(limit, file->start);
  }
  return files;
}

absl::StatusOr<std::unique_ptr<WalReader>> OpenWalFile(rocksdb::DB* db, const WalFile& file,
                                                       uint64_t offset) {
  absl::StatusOr<std::unique_ptr<WalReader>> reader =
      WalReader::Open(db->GetFileSystem(), file.path, file.number, offset);
  if (!absl::IsNotFound(reader.status()) || file.archived_path == file.path) return reader;
  return WalReader::Open(db->GetFileSystem(), file.archived_path, file.number, offset);
}

FileDeletionPause::~FileDeletionPause() {
  if (!paused_) return;
#if ROCKSDB_MAJOR >= 9
  db_->EnableFileDeletions().PermitUncheckedError();
#else
  db_->EnableFileDeletions(/*force=*/false).PermitUncheckedError();
#endif
}

}  // namespace cairn
