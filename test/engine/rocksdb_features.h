#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/write_batch.h"

// Ways to change rows that only some versions of RocksDB have: NotSupported where this one has not.

namespace cairn {

// Allows file deletions, whoever else has disabled them, where a version has that; else ends one
// DisableFileDeletions.
inline rocksdb::Status ForceFileDeletions(rocksdb::DB* db) {
#if CAIRN_ROCKSDB_FROM(9, 0)
  return db->EnableFileDeletions();
#else
  return db->EnableFileDeletions(/*force=*/true);
#endif
}

inline rocksdb::Status TimedPut([[maybe_unused]] rocksdb::DB* db,
                                [[maybe_unused]] rocksdb::ColumnFamilyHandle* family,
                                [[maybe_unused]] const std::string& key,
                                [[maybe_unused]] const std::string& value) {
#if CAIRN_ROCKSDB_FROM(9, 1)
  rocksdb::WriteBatch batch;
  const rocksdb::Status s = batch.TimedPut(family, key, value, /*write_unix_time=*/1700000000);
  return s.ok() ? db->Write({}, &batch) : s;
#else
  return rocksdb::Status::NotSupported("TimedPut");
#endif
}

// Puts an entity whose default column is `value` in each of the column families.
inline rocksdb::Status PutAttributeGroups(
    [[maybe_unused]] rocksdb::DB* db,
    [[maybe_unused]] const std::vector<rocksdb::ColumnFamilyHandle*>& families,
    [[maybe_unused]] const std::string& key, [[maybe_unused]] const std::string& value) {
#if CAIRN_ROCKSDB_FROM(8, 9)
  rocksdb::AttributeGroups groups;
  for (auto* family : families) {
    groups.emplace_back(family, rocksdb::WideColumns{{rocksdb::kDefaultWideColumnName, value}});
  }
  return db->PutEntity({}, key, groups);
#else
  return rocksdb::Status::NotSupported("PutEntity of attribute groups");
#endif
}

// Whether ingested files that databases wrote may have rows of other sequence numbers than 0.
inline constexpr bool kIngestsNumberedTables = CAIRN_ROCKSDB_FROM(10, 6);

// Ingests files that databases wrote.
inline rocksdb::Status IngestTables([[maybe_unused]] rocksdb::DB* db,
                                    [[maybe_unused]] rocksdb::ColumnFamilyHandle* family,
                                    [[maybe_unused]] const std::vector<std::string>& files) {
#if CAIRN_ROCKSDB_FROM(9, 5)
  rocksdb::IngestExternalFileOptions options;
  options.allow_db_generated_files = true;
  options.snapshot_consistency = false;
  return db->IngestExternalFile(family, files, options);
#else
  return rocksdb::Status::NotSupported("allow_db_generated_files");
#endif
}

// Ingests in two steps, between which `between` is called.
template <typename Between>
rocksdb::Status IngestInTwoSteps([[maybe_unused]] rocksdb::DB* db,
                                 [[maybe_unused]] rocksdb::ColumnFamilyHandle* family,
                                 [[maybe_unused]] const std::string& file,
                                 [[maybe_unused]] const Between& between) {
#if CAIRN_ROCKSDB_FROM(11, 5)
  rocksdb::IngestExternalFileArg arg;
  arg.column_family = family;
  arg.external_files = {file};
  std::vector<std::unique_ptr<rocksdb::FileIngestionHandle>> handles(1);
  const rocksdb::Status s = db->PrepareFileIngestion({arg}, &handles[0]);
  if (!s.ok()) return s;
  between();
  return db->CommitFileIngestionHandles(std::move(handles));
#else
  return rocksdb::Status::NotSupported("PrepareFileIngestion");
#endif
}

// Removes all rows outside [begin, end).
inline rocksdb::Status Clip([[maybe_unused]] rocksdb::DB* db,
                            [[maybe_unused]] rocksdb::ColumnFamilyHandle* family,
                            [[maybe_unused]] const std::string& begin,
                            [[maybe_unused]] const std::string& end) {
#if CAIRN_ROCKSDB_FROM(8, 3)
  return db->ClipColumnFamily(family, begin, end);
#else
  return rocksdb::Status::NotSupported("ClipColumnFamily");
#endif
}

}  // namespace cairn
