#include "engine/log/ingested_files.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/util/status.h"
#include "rocksdb/metadata.h"
#include "rocksdb/table_properties.h"

namespace cairn {
namespace {

// What SstFileWriter marks its files with.
constexpr const char* kExternalFileProperty = "rocksdb.external_sst_file.version";

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
  // All rows of an ingested file have one sequence number.
  std::map<std::string, uint64_t> candidates;
  std::vector<rocksdb::Range> ranges;
  std::vector<std::string> behind;  // upper bounds, which ranges do not include
  behind.reserve(metadata.file_count);
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    for (const rocksdb::SstFileMetaData& file : level.files) {
      if (file.file_number <= known || file.smallest_seqno != file.largest_seqno ||
          file.largest_seqno > until) {
        continue;
      }
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
  uint64_t newest = 0;
  for (const auto& [path, table] : properties) {
    const auto candidate = candidates.find(FileName(path));
    if (candidate == candidates.end()) continue;
    if (table->user_collected_properties.count(kExternalFileProperty) == 0) continue;
    newest = std::max(newest, candidate->second);
  }
  return newest;
}

}  // namespace cairn
