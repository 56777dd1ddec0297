#pragma once

#include <cstdint>
#include <string_view>

namespace cairn {

// The effect of a virtual function of rocksdb::DB on the indexes of a database.
enum class CallKind : uint8_t {
  kReads,        // changes no row: it reads, or it changes how rows are stored or what is logged
  kLogged,       // changes rows by records of the log, which the indexes follow
  kChecked,      // the same, and an IndexedDB overrides it: unique indexes check the rows first
  kPastLog,      // changes rows past the log: an IndexedDB overrides it, and indexes become stale
  kManaged,      // an IndexedDB overrides it, since it relies on what the function changes
  kUnavailable,  // StackableDB does not forward it, so rocksdb::DB returns NotSupported
};

struct DatabaseCall {
  std::string_view name;
  CallKind kind;
};

// Every virtual function that rocksdb::DB or rocksdb::StackableDB has in RocksDB 7.8 to 11.9, in
// the order of their names. database_calls_test compares this with the installed headers: a
// function that a later version adds needs a line here and, if it changes rows, an override in
// IndexedDatabase (indexed_db.cc) or WatchedDb (engine/util/rocksdb_compat.h).
//
// Compactions (CompactRange, CompactFiles, SetOptions with other triggers) change rows only by
// compaction filters, FIFO compaction and `ttl`, which indexed_db.h documents. Free functions that
// take a rocksdb::DB (DeleteFilesInRange) act on GetRootDB() and are not virtual.
inline constexpr DatabaseCall kDatabaseCalls[] = {
    {"AbortAllCompactions", CallKind::kReads},
    {"AbortCompactions", CallKind::kReads},
    {"ClipColumnFamily", CallKind::kPastLog},
    {"Close", CallKind::kManaged},
    {"CommitFileIngestionHandle", CallKind::kPastLog},
    {"CommitFileIngestionHandles", CallKind::kPastLog},
    {"CompactFiles", CallKind::kReads},
    {"CompactRange", CallKind::kReads},
    {"ContinueBackgroundWork", CallKind::kReads},
    {"CreateColumnFamilies", CallKind::kManaged},
    {"CreateColumnFamily", CallKind::kManaged},
    {"CreateColumnFamilyWithImport", CallKind::kManaged},
    {"DefaultColumnFamily", CallKind::kReads},
    {"Delete", CallKind::kChecked},
    {"DeleteFile", CallKind::kPastLog},
    {"DeleteRange", CallKind::kChecked},
    {"DestroyColumnFamilyHandle", CallKind::kManaged},
    {"DisableFileDeletions", CallKind::kManaged},
    {"DisableManualCompaction", CallKind::kReads},
    {"DropColumnFamilies", CallKind::kPastLog},
    {"DropColumnFamily", CallKind::kPastLog},
    {"EnableAutoCompaction", CallKind::kReads},
    {"EnableFileDeletions", CallKind::kManaged},
    {"EnableManualCompaction", CallKind::kReads},
    {"EndBlockCacheTrace", CallKind::kReads},
    {"EndIOTrace", CallKind::kReads},
    {"EndTrace", CallKind::kReads},
    {"Flush", CallKind::kReads},
    {"FlushWAL", CallKind::kReads},
    {"Get", CallKind::kReads},
    {"GetAggregatedIntProperty", CallKind::kReads},
    {"GetAllColumnFamilyMetaData", CallKind::kReads},
    {"GetApproximateMemTableStats", CallKind::kReads},
    {"GetApproximateSizes", CallKind::kReads},
    {"GetAsync", CallKind::kReads},
    {"GetBaseDB", CallKind::kReads},
    {"GetColumnFamilyMetaData", CallKind::kReads},
    {"GetCreationTimeOfOldestFile", CallKind::kReads},
    {"GetCurrentWalFile", CallKind::kReads},
    {"GetDBOptions", CallKind::kReads},
    {"GetDbIdentity", CallKind::kReads},
    {"GetDbSessionId", CallKind::kReads},
    {"GetEntity", CallKind::kReads},
    {"GetEntityLazy", CallKind::kReads},
    {"GetEnv", CallKind::kReads},
    {"GetFileSystem", CallKind::kReads},
    {"GetFullHistoryTsLow", CallKind::kReads},
    {"GetIntProperty", CallKind::kReads},
    {"GetLatestSequenceNumber", CallKind::kReads},
    {"GetLiveFiles", CallKind::kReads},
    {"GetLiveFilesChecksumInfo", CallKind::kReads},
    {"GetLiveFilesMetaData", CallKind::kReads},
    {"GetLiveFilesStorageInfo", CallKind::kReads},
    {"GetMapProperty", CallKind::kReads},
    {"GetMergeOperands", CallKind::kReads},
    {"GetName", CallKind::kReads},
    {"GetNewestUserDefinedTimestamp", CallKind::kReads},
    {"GetOptions", CallKind::kReads},
    {"GetPreparedFileInfoForExternalSstIngestion", CallKind::kReads},
    {"GetPropertiesOfAllTables", CallKind::kReads},
    {"GetPropertiesOfTablesByLevel", CallKind::kReads},
    {"GetPropertiesOfTablesForLevels", CallKind::kReads},
    {"GetPropertiesOfTablesInRange", CallKind::kReads},
    {"GetProperty", CallKind::kReads},
    {"GetRootDB", CallKind::kReads},
    {"GetSnapshot", CallKind::kManaged},
    {"GetSortedWalFiles", CallKind::kReads},
    {"GetStatsHistory", CallKind::kReads},
    {"GetUpdatesSince", CallKind::kReads},
    // Rows with user-defined timestamps, which cannot be indexed.
    {"IncreaseFullHistoryTsLow", CallKind::kReads},
    {"IngestExternalFile", CallKind::kPastLog},
    {"IngestExternalFiles", CallKind::kPastLog},
    {"IngestWriteBatchWithIndex", CallKind::kUnavailable},
    {"KeyMayExist", CallKind::kReads},
    {"Level0StopWriteTrigger", CallKind::kReads},
    {"LockWAL", CallKind::kReads},
    {"MaxMemCompactionLevel", CallKind::kReads},
    {"Merge", CallKind::kChecked},
    {"MultiGet", CallKind::kReads},
    {"MultiGetAsync", CallKind::kReads},
    {"MultiGetEntity", CallKind::kReads},
    {"MultiGetEntityLazy", CallKind::kReads},
    {"NewAttributeGroupIterator", CallKind::kReads},
    {"NewCoalescingIterator", CallKind::kReads},
    // The replayer writes directly to the underlying database, not through this object.
    {"NewDefaultReplayer", CallKind::kLogged},
    {"NewIterator", CallKind::kReads},
    {"NewIterators", CallKind::kReads},
    {"NewMultiScan", CallKind::kReads},
    {"NumberLevels", CallKind::kReads},
    {"PauseBackgroundWork", CallKind::kReads},
    {"PrepareFileIngestion", CallKind::kManaged},
    {"PromoteL0", CallKind::kReads},
    {"Put", CallKind::kChecked},
    {"PutEntity", CallKind::kChecked},
    {"ReleaseSnapshot", CallKind::kManaged},
    {"ResetStats", CallKind::kReads},
    {"Resume", CallKind::kReads},
    {"ResumeAllCompactions", CallKind::kReads},
    {"ResumeCompactions", CallKind::kReads},
    {"SetDBOptions", CallKind::kReads},
    {"SetOptions", CallKind::kReads},
    {"SingleDelete", CallKind::kChecked},
    {"StartBlockCacheTrace", CallKind::kReads},
    {"StartIOTrace", CallKind::kReads},
    {"StartTrace", CallKind::kReads},
    {"SuggestCompactRange", CallKind::kReads},
    {"SyncWAL", CallKind::kReads},
    // A secondary instance reads its primary's log, as the indexes do.
    {"TryCatchUpWithPrimary", CallKind::kLogged},
    {"UnlockWAL", CallKind::kReads},
    {"VerifyChecksum", CallKind::kReads},
    {"VerifyFileChecksums", CallKind::kReads},
    {"WaitForCompact", CallKind::kReads},
    {"Write", CallKind::kChecked},
    {"WriteWithCallback", CallKind::kUnavailable},
};

}  // namespace cairn
