#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/utilities/write_batch_with_index.h"
#include "rocksdb/write_batch.h"

// Changes of rows that only some versions of RocksDB support; otherwise NotSupported.

namespace cairn {

// Allows file deletions, regardless of how often they were disabled. From RocksDB 9.0 on, this only
// reverts one DisableFileDeletions.
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

// Whether ingested files that databases wrote may have rows with sequence numbers other than 0.
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

// Ingests in two steps, and calls `between` between them.
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

// Puts a row past the log, with a batch that becomes a separate memtable.
inline rocksdb::Status IngestBatch([[maybe_unused]] rocksdb::DB* db,
                                   [[maybe_unused]] rocksdb::ColumnFamilyHandle* family,
                                   [[maybe_unused]] const std::string& key,
                                   [[maybe_unused]] const std::string& value) {
#if CAIRN_ROCKSDB_FROM(10, 2)
  auto batch = std::make_shared<rocksdb::WriteBatchWithIndex>(
      rocksdb::BytewiseComparator(), /*reserved_bytes=*/0, /*overwrite_key=*/true);
  rocksdb::Status s = batch->Put(family, key, value);
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return s.ok() ? db->IngestWriteBatchWithIndex(options, std::move(batch)) : s;
#else
  return rocksdb::Status::NotSupported("IngestWriteBatchWithIndex");
#endif
}

// Makes a prepared transaction become a separate memtable when it commits. Returns false if this
// version cannot do that.
inline bool BypassMemtable([[maybe_unused]] rocksdb::TransactionOptions* options) {
#if CAIRN_ROCKSDB_FROM(10, 0)  // from 9.10 on, but not with merge operands
  options->commit_bypass_memtable = true;
  return true;
#else
  return false;
#endif
}

// Writes values of at least `bytes` to blob files before the log, which refers to them. Returns
// false if this version cannot do that.
inline bool WriteBlobsDirectly([[maybe_unused]] uint64_t bytes,
                               [[maybe_unused]] rocksdb::Options* options) {
#if CAIRN_ROCKSDB_FROM(11, 2)
  options->enable_blob_files = true;
  options->min_blob_size = bytes;
  options->enable_blob_direct_write = true;
  options->allow_concurrent_memtable_write = false;
  return true;
#else
  return false;
#endif
}

// Makes the log record the predecessor of each file, and creates files before they are needed, if
// the version supports that.
inline void LinkLogFiles([[maybe_unused]] rocksdb::Options* options) {
#if CAIRN_ROCKSDB_FROM(9, 11)
  options->track_and_verify_wals = true;
#endif
#if CAIRN_ROCKSDB_FROM(11, 3)
  options->async_wal_precreate = true;
#endif
}

// Opens column families with keys that end in a timestamp while they are in memory and in the log.
// Returns false if this version cannot open those of a database without timestamps.
inline bool KeepTimestampsInMemory([[maybe_unused]] rocksdb::Options* options) {
#if CAIRN_ROCKSDB_FROM(8, 6)
  options->comparator = rocksdb::BytewiseComparatorWithU64Ts();
  options->persist_user_defined_timestamps = false;
  options->allow_concurrent_memtable_write = false;
  return true;
#else
  return false;
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
