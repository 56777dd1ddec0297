#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/index_spec.h"
#include "cairn/lookup.h"
#include "cairn/rocksdb_status.h"
#include "cairn/secondary_index.h"
#include "cairn/types.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/utilities/stackable_db.h"

namespace cairn {

// What becomes of an index that can no longer follow its database.
enum class OnStale : uint8_t {
  kRebuild,  // it is built anew in the background
  kReport,   // it stays as it is until RebuildIndex
};

struct IndexedDBOptions {
  // Holds one directory an index, named after it. Empty: the database's path with ".indexes" behind
  // it. Made where it is missing; its parent must be there.
  std::string index_directory;
  // Of every index. Where open.file_system is null, they are in the database's own.
  OpenOptions open;
  // Of builds: threads, 0 for one per core, and bytes of memory for what waits to be sorted, 0 for
  // half of the machine's.
  int build_threads = 0;
  uint64_t build_memory_budget = 0;
  OnStale on_stale = OnStale::kRebuild;

  // How often the log is read while nobody asks; zero: never, but for every half a minute where the
  // database does not archive its log. A query reads what is missing itself, so that this says how
  // much that can be, not how old an answer.
  absl::Duration follow_interval = absl::Milliseconds(10);
  // Writes through this object wait while the indexes are so far behind the database that it takes
  // them longer than this to be current, as the speed of late says: so long may a query have to
  // wait, and what is written at once does not fill the memory. Zero: they never wait.
  absl::Duration max_backlog = absl::Milliseconds(200);
  // How often what came to the indexes is written to their directories, which is what the next Open
  // need not read from the log; zero: at Close alone.
  absl::Duration store_interval = absl::Seconds(60);
  // How often it is looked whether a merge pays; zero: never. One index at a time is merged.
  absl::Duration merge_interval = absl::Seconds(1);
  uint64_t merge_bytes_per_second = 0;  // to write, on average; 0: as fast as it goes
  // 0: one for every two cores that this process may use, which leaves queries the others.
  int merge_threads = 0;

  // Open alone: DBOptions::WAL_size_limit_MB, where neither that nor WAL_ttl_seconds is set. An
  // index is read from so much of the log after a crash, or after a time when nothing followed; and
  // is built anew where that does not reach back. The log takes so much of disk, and what ten
  // minutes write besides (RocksDB looks no oftener). Where a database does not archive its log
  // (Attach), so much of it is kept, and no obsolete file removed, while an index is built. A build
  // during which more is written is begun anew.
  uint64_t log_retention_megabytes = 1024;
};

enum class IndexState : uint8_t {
  kBuilding,    // from a snapshot, while writes go on
  kCatchingUp,  // with what was written meanwhile
  kReady,       // queries see every write that had returned when they began
  kStale,       // it cannot follow, and will be built anew where OnStale says so
  kFailed,      // nor could it be built: IndexInfo::status says why
};
const char* IndexStateName(IndexState state);  // "building", "catching up" …

// An index of an IndexedDB, as it is at one moment.
struct IndexInfo {
  IndexSpec spec;
  std::string directory;
  IndexState state = IndexState::kBuilding;
  absl::Status status;          // why it is stale or failed
  double progress = 0;          // kBuilding: the share that is done, from 0 to 1
  SequenceNumber sequence = 0;  // that the index is current to
  SequenceNumber lag = 0;       // the database's sequence number less that
  absl::Duration behind;        // how long ago the lag was zero last; zero while it is
  uint64_t builds = 0;          // since the database was opened, and so on
  uint64_t merges = 0;
  uint64_t stores = 0;
  // How the last attempt to store what came to the index ended, and the last one to merge it: on a
  // full disk, say. Queries are as good; it is tried again, and meanwhile more is read from the log
  // at the next Open.
  absl::Status store_status;
  absl::Status merge_status;
};

// A database whose secondary indexes are always current: a query sees every write that had returned
// when it began, whichever way that was made.
//
//   auto db = cairn::IndexedDB::Open(options, "people.db");
//   (*db)->CreateIndex("city = value.field('|', 2):text");
//   (*db)->WaitUntilReady("city");
//   (*db)->Put({}, "ana", "1990|Ana|Lisbon");
//   auto people = (*db)->LookupRows("city", {"Lisbon", "Oslo"});
//   for (const cairn::FoundRow& person : *people) ... person.primary_key, person.value ...
//
// Errors: what rocksdb::DB declares returns rocksdb::Status, and everything else absl::Status;
// rocksdb_status.h converts each to the other. Both tell the same of one failure.
//
// Writes are not intercepted: the write-ahead log is followed. So writers pay nothing on their own
// threads, and all that commits is seen, in the order in which it committed: through this object,
// through a TransactionDB or OptimisticTransactionDB underneath, two-phase commits included, or
// through any other layer. The log is read once for all indexes. A query first has what is new
// applied, by whoever is at it or by itself: little, as a thread in the background does so all the
// time.
//
// Two kinds of writes wait for indexes: those to a column family with a unique index, which are
// checked, one at a time, before they commit; and, briefly, those that cannot be followed.
//
// What cannot be followed:
// - writes with WriteOptions::disableWAL, to whichever column family, make every index stale;
// - IngestExternalFile makes the column family's indexes stale, and all indexes where RocksDB gives
//   the files sequence numbers (it does so where keys of theirs are there, or a snapshot is held);
// - a log that has expired before it was read. While nothing but Attach was done to keep it, the
//   removal of obsolete files is put off until they have been read, up to a second or so longer,
//   and half a minute at most;
// - a unique index that a write past this object has given a key twice has failed.
// What is not seen at all: rows that compaction filters, FIFO compaction or DeleteFilesInRange
// remove, and files ingested past this object. Column families with user-defined timestamps or
// comparators of their own cannot be indexed, nor can databases with unordered_write, WritePrepared
// or WriteUnprepared transactions, or a compressed log.
//
// An index that cannot be built or followed for a reason that may pass (a full disk, an I/O error,
// a change past the log meanwhile) is tried again, at first after half a second, later every
// minute. While it is open the index's directory is locked: others that would write there are
// refused, as Unavailable.
//
// Closing and destroying this object, destroying handles and closing the database may come in any
// order that RocksDB allows, if a handle of an indexed column family is destroyed through this
// object, or after Close: Close ends all that is done for indexes, and then closes the database if
// Open opened it, as soon as its last handle is destroyed; one that was attached is its owner's to
// close, after that. A process may exit() with all of it open: the threads are ended first.
//
// Thread-safe, as any DB is, also beside Close, as far as indexes are concerned: then, and after
// the object's end, queries and calls are FailedPrecondition. No exception leaves.
class IndexedDB : public rocksdb::StackableDB {
 public:
  // Opens a database and the indexes beside it, each of which catches up from where it is, or is
  // built anew as `options.on_stale` says: a failing index is no error, and ListIndexes tells.
  // `handles` are the caller's, to be destroyed before this object.
  static absl::StatusOr<std::unique_ptr<IndexedDB>> Open(
      const rocksdb::DBOptions& db_options, const std::string& path,
      const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
      std::vector<rocksdb::ColumnFamilyHandle*>* handles, const IndexedDBOptions& options = {});
  static absl::StatusOr<std::unique_ptr<IndexedDB>> Open(const rocksdb::Options& db_options,
                                                         const std::string& path,
                                                         const IndexedDBOptions& options = {});
  // The same for a database that is open: a DB, TransactionDB or OptimisticTransactionDB. Indexes
  // of column families that are not among `handles` and not the default one fail.
  static absl::StatusOr<std::unique_ptr<IndexedDB>> Attach(
      std::shared_ptr<rocksdb::DB> db, absl::Span<rocksdb::ColumnFamilyHandle* const> handles = {},
      const IndexedDBOptions& options = {});

  // Begins to build an index, `spec.name`, while writes go on, and returns. From then on it is
  // wanted: where this process ends before it is built, the next Open builds it. `column_family`
  // (null: the default one) must be the spec's. AlreadyExists for a name
  // that is taken; InvalidArgument for a spec of another column family, or whose name is not 1 to
  // 128 letters, digits, '_', '-' and '.', without a '.' first.
  virtual absl::Status CreateIndex(const IndexSpec& spec,
                                   rocksdb::ColumnFamilyHandle* column_family = nullptr) = 0;
  // The same by the spec's text (IndexSpec): CreateIndex("city = value.field('|', 2):text").
  // InvalidArgument, with the place and what was expected there, for a text that is no spec.
  absl::Status CreateIndex(std::string_view spec,
                           rocksdb::ColumnFamilyHandle* column_family = nullptr);
  // Builds an index anew in the background; a failed one, too. NotFound.
  virtual absl::Status RebuildIndex(const std::string& name) = 0;
  // Ends what is being done to an index, and removes it and its directory. Who pinned it keeps it.
  // NotFound. Where its files cannot be removed it has failed, and may be dropped again.
  virtual absl::Status DropIndex(const std::string& name) = 0;
  // SecondaryIndex::Merge, whether it pays or not. Unavailable while it is not there to be merged.
  virtual absl::Status MergeIndex(const std::string& name) = 0;
  // Waits while an index is being built or is to be. OK once it is ready; its status where it is
  // stale for good or failed; DeadlineExceeded; NotFound, also where it is dropped meanwhile.
  virtual absl::Status WaitUntilReady(const std::string& name,
                                      absl::Duration timeout = absl::InfiniteDuration()) = 0;

  // The primary keys of the rows with these keys, or with keys in this range: see lookup.h. It is
  // one state of the index that answers, with all writes that had returned when the call began.
  // InvalidArgument for keys of the wrong kind or number of parts, naming the index, the key and
  // what was expected; otherwise errors as of Index and its queries.
  virtual absl::StatusOr<FoundKeys> Lookup(const std::string& index, const KeyQuery& keys,
                                           const LookupOptions& options = {}) const = 0;
  // The rows themselves, as they are in the database during the call: a row that is changed
  // meanwhile is returned only if it still has such a key.
  virtual absl::StatusOr<FoundRows> LookupRows(const std::string& index, const KeyQuery& keys,
                                               const LookupOptions& options = {}) const = 0;

  // The index by this name, whatever becomes of it: each query of it sees all writes that had
  // returned when it began. Two queries may see two states, and a merge between them changes the
  // row ids, so that these mean something within PrimaryKeys only where no merge can come
  // between: see Pin. Queries are Unavailable while the index is being built for the first time,
  // and FailedPrecondition, saying why, while it is stale or has failed, once it is dropped and
  // after Close. NotFound where there is none by that name.
  virtual absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Index(
      const std::string& name) const = 0;
  // The index's state that has all writes that have returned by now. It stays what it is, row ids
  // included, also beyond the life of the database. Errors as of Index, and of its queries.
  virtual absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Pin(
      const std::string& name) const = 0;
  // The state that the index has without waiting or reading: what it was when it became stale,
  // while it is built anew too. SecondaryIndex::sequence() says how old that is. Unavailable while
  // there is none.
  virtual absl::StatusOr<std::shared_ptr<const SecondaryIndex>> PinAsItIs(
      const std::string& name) const = 0;

  // In the order of their names. Where there is no memory for all of them the last are missing.
  virtual std::vector<IndexInfo> ListIndexes() const = 0;

  // Writes what came to the indexes to their directories, as Close does.
  virtual absl::Status StoreIndexes() = 0;

 protected:
  explicit IndexedDB(std::shared_ptr<rocksdb::DB> db) : StackableDB(std::move(db)) {}
};

}  // namespace cairn
