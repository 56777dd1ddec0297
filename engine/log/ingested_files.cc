#include "engine/log/ingested_files.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "engine/util/key_order.h"
#include "engine/util/status.h"
#include "index/machine/status_macros.h"
#include "rocksdb/metadata.h"
#include "rocksdb/table_properties.h"

namespace cairn {
namespace {

// The property by which SstFileWriter marks its files.
constexpr const char* kExternalFileProperty = "rocksdb.external_sst_file.version";

// Returns whether a file of the column family was not written as such. Files that a database wrote
// can be ingested, too (IngestExternalFileOptions::allow_db_generated_files). These have another
// number than at their creation, or are from another column family or another database. `db_id` is
// the database's id; empty if copies of the database get other ids, because then it shows nothing.
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

// Returns the number in the path of a file, such as 12 in "/000012.sst"; 0 if there is none.
uint64_t NumberIn(const std::string& path) {
  uint64_t number = 0;
  const std::string name = path.substr(path.rfind('/') + 1);
  return absl::SimpleAtoi(name.substr(0, name.find('.')), &number) ? number : 0;
}

}  // namespace

absl::StatusOr<uint64_t> NewestIngestedFile(rocksdb::DB* db,
                                            rocksdb::ColumnFamilyHandle* column_family,
                                            SequenceNumber until, uint64_t known,
                                            const TableFiles* seen) {
  std::set<uint64_t> candidates;
  std::vector<ChangedRange> spans;
  for (TableFile& file : ListTableFiles(db, column_family).files) {
    const TableFile* const old = seen == nullptr ? nullptr : seen->Find(file.number);
    // Numbers are assigned when an ingestion is prepared, so they do not show the order of
    // ingestions.
    const bool is_known = seen == nullptr ? file.number <= known : old != nullptr && old->seen;
    if (is_known || file.largest_sequence > until) continue;
    candidates.insert(file.number);
    spans.push_back({std::move(file.smallest), KeyAfter(file.largest), file.number});
  }
  if (candidates.empty()) return 0;
  // RocksDB's time for each range is linear in the number of files.
  UniteRanges(&spans);
  std::vector<rocksdb::Range> ranges;
  ranges.reserve(spans.size());
  // RocksDB includes the end of a range here.
  const bool is_reverse = KnownKeyOrderOf(column_family) == KeyOrder::kReverseBytewise;
  for (const ChangedRange& span : spans) {
    ranges.emplace_back(is_reverse ? span.upper : span.lower, is_reverse ? span.lower : span.upper);
  }
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
                    absl::StrFormat("cannot get the identity of database '%s'", db->GetName())));
  }
  uint64_t newest = 0;
  for (const auto& [path, table] : properties) {
    const uint64_t number = NumberIn(path);
    if (candidates.count(number) == 0) continue;
    if (IsIngested(*table, number, column_family->GetID(), db_id)) {
      newest = std::max(newest, number);
    }
  }
  return newest;
}

}  // namespace cairn
