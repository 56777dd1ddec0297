#include "engine/log/ingested_files.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/util/status.h"
#include "index/machine/status_macros.h"
#include "rocksdb/metadata.h"
#include "rocksdb/table_properties.h"

namespace cairn {
namespace {

// What SstFileWriter marks its files with.
constexpr const char* kExternalFileProperty = "rocksdb.external_sst_file.version";

// Whether a file of the column family is not one that was written as such. Files that a database
// wrote can be ingested, too (IngestExternalFileOptions::allow_db_generated_files): they get other
// numbers than they were written by, or are another column family's, or another database's. `db_id`
// is this one's; empty where its copies get other ids, and it says nothing.
bool IsIngested(const rocksdb::TableProperties& table, uint64_t number, uint32_t column_family,
                const std::string& db_id) {
  constexpr uint64_t kUnknownNumber = 0;
  const uint64_t kUnknownFamily =
      rocksdb::TablePropertiesCollectorFactory::Context::kUnknownColumnFamily;
  return table.user_collected_properties.count(kExternalFileProperty) > 0 ||
         (table.orig_file_number != kUnknownNumber && table.orig_file_number != number) ||
         (table.column_family_id != kUnknownFamily && table.column_family_id != column_family) ||
         (!db_id.empty() && !table.db_id.empty() && table.db_id != db_id);
}

// The name of a file in a path: "000012.sst".
std::string FileName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

absl::StatusOr<uint64_t> NewestIngestedFile(rocksdb::DB* db,
                                            rocksdb::ColumnFamilyHandle* column_family,
                                            SequenceNumber until, uint64_t known) {
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(column_family, &metadata);
  std::map<std::string, uint64_t> candidates;
  std::vector<rocksdb::Range> ranges;
  std::vector<std::string> behind;  // upper bounds, which ranges do not include
  behind.reserve(metadata.file_count);
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    for (const rocksdb::SstFileMetaData& file : level.files) {
      if (file.file_number <= known || file.largest_seqno > until) continue;
      candidates[FileName(file.name)] = file.file_number;
      behind.push_back(file.largestkey + '\0');
      ranges.emplace_back(file.smallestkey, behind.back());
    }
  }
  if (candidates.empty()) return 0;
  rocksdb::TablePropertiesCollection properties;
  const rocksdb::Status s =
      db->GetPropertiesOfTablesInRange(column_family, ranges.data(), ranges.size(), &properties);
  if (!s.ok()) {
    return FromRocksDb(
        s, absl::StrFormat("cannot read properties of the files of database '%s'", db->GetName()));
  }
  std::string db_id;
  if (db->GetDBOptions().write_dbid_to_manifest) {
    RETURN_IF_ERROR(
        FromRocksDb(db->GetDbIdentity(db_id),
                    absl::StrFormat("cannot tell the identity of database '%s'", db->GetName())));
  }
  uint64_t newest = 0;
  for (const auto& [path, table] : properties) {
    const auto candidate = candidates.find(FileName(path));
    if (candidate == candidates.end()) continue;
    if (IsIngested(*table, candidate->second, column_family->GetID(), db_id)) {
      newest = std::max(newest, candidate->second);
    }
  }
  return newest;
}

}  // namespace cairn
