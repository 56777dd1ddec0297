#include "engine/log/table_files.h"

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "engine/util/status.h"
#include "index/files/checksum.h"
#include "index/machine/status_macros.h"
#include "rocksdb/unique_id.h"

namespace cairn {

uint64_t EntriesInMemory(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family) {
  uint64_t all = 0;
  for (const std::string& property : {rocksdb::DB::Properties::kNumEntriesActiveMemTable,
                                      rocksdb::DB::Properties::kNumEntriesImmMemTables}) {
    uint64_t entries = 0;
    if (!db->GetIntProperty(column_family, property, &entries)) return UINT64_MAX;
    all += entries;
  }
  return all;
}

std::vector<rocksdb::LiveFileMetaData> LiveFiles(rocksdb::DB* db) {
  std::vector<rocksdb::LiveFileMetaData> files;
  db->GetLiveFilesMetaData(&files);
  return files;
}

const rocksdb::LiveFileMetaData* Newest(const std::vector<rocksdb::LiveFileMetaData>& files,
                                        rocksdb::ColumnFamilyHandle* column_family) {
  const rocksdb::LiveFileMetaData* newest = nullptr;
  for (const rocksdb::LiveFileMetaData& file : files) {
    if (column_family != nullptr && file.column_family_name != column_family->GetName()) continue;
    if (newest == nullptr || file.file_number > newest->file_number) newest = &file;
  }
  return newest;
}

absl::StatusOr<std::string> OwnFileId(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                                      uint64_t number) {
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(column_family, &metadata);
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    for (const rocksdb::SstFileMetaData& file : level.files) {
      if (file.file_number != number) continue;
      const std::string behind = file.largestkey + '\0';
      const rocksdb::Range range(file.smallestkey, behind);
      rocksdb::TablePropertiesCollection properties;
      std::string id;
      rocksdb::Status s = db->GetPropertiesOfTablesInRange(column_family, &range, 1, &properties);
      for (const auto& [path, table] : properties) {
        if (!absl::EndsWith(path, file.relative_filename)) continue;
        if (s.ok()) s = rocksdb::GetUniqueIdFromTableProperties(*table, &id);
      }
      if (s.IsNotSupported()) return std::string();  // of a RocksDB that gave files none
      RETURN_IF_ERROR(FromRocksDb(s, absl::StrFormat("cannot identify file '%s' of database '%s'",
                                                     file.relative_filename, db->GetName())));
      return id.empty() ? id : absl::StrFormat("%d:%s", number, rocksdb::UniqueIdToHumanString(id));
    }
  }
  return std::string();
}

std::string AnyFileId(const rocksdb::LiveFileMetaData& file) {
  std::string keys = file.smallestkey + file.largestkey;
  return absl::StrFormat("%d:%d-%d-%d-%016x", file.file_number, file.size, file.smallest_seqno,
                         file.largest_seqno, Checksum(keys.data(), keys.size()));
}

}  // namespace cairn
