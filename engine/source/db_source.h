#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/column.h"
#include "cairn/snapshot_source.h"
#include "engine/rows/row_cursor.h"
#include "engine/rows/row_lookup.h"
#include "engine/util/key_order.h"
#include "index/machine/stop_flag.h"
#include "rocksdb/db.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/utilities/transaction.h"

namespace cairn {

// One state of a column family in an open database. The database is either live, with a snapshot,
// or read-only and thus unchanging.
struct DbView {
  rocksdb::DB* db = nullptr;
  rocksdb::ColumnFamilyHandle* column_family = nullptr;
  // Null if the database cannot change.
  const rocksdb::Snapshot* snapshot = nullptr;
  KeyOrder order = KeyOrder::kBytewise;
  RowForm form = RowForm::kStored;
  // Whether a read of one key may stop at the first level of the tree that contains it. If the
  // levels are not known to be ordered by age, every read seeks with an iterator.
  bool levels_are_ordered = true;
  // Whether the database's write-ahead log explains its state. False for a database that was
  // assembled from files.
  bool has_log = true;
  size_t readahead_bytes = size_t{2} << 20;
  SequenceNumber sequence = 0;
  std::string database_id;
  std::string description;
};

// Returns whether rows that are read through `db` may have other values than the stored ones. This
// is so if a layer above the stored database, such as DBWithTTL, makes its own iterators.
bool MayChangeValues(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family);

// Whether to read one row first, to check that reading works. A database that an index follows
// needs no check.
enum class Trial : uint8_t { kNone, kRead };

// As SnapshotSource::FromDb, except that the source has the state of `snapshot`. So sources of
// several column families can have one state.
absl::StatusOr<std::unique_ptr<SnapshotSource>> SourceAt(
    rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
    const std::shared_ptr<rocksdb::ManagedSnapshot>& snapshot, Trial trial = Trial::kRead);

// Reads the values of rows, of wide-column entities those of the default column, from a database
// that returns them as stored. If `transaction` is not null, reads them through it, so with its
// uncommitted writes. Appends the values to `values` and sets value_of[i] to the index of the value
// of row i there, or to SIZE_MAX if there is no such row. The primary keys may be in any order.
// Errors: those of RocksDB's reads, and of `stop`.
absl::Status ReadValues(rocksdb::DB* db, rocksdb::Transaction* transaction,
                        rocksdb::ColumnFamilyHandle* column_family,
                        const rocksdb::Snapshot* snapshot, const StringList& primary_keys,
                        const StopCondition& stop, StringList* values,
                        std::vector<size_t>* value_of);

// The snapshot source over an open database.
class DbSource final : public SnapshotSource {
 public:
  // `owned` lives as long as the source. It is the snapshot, or the database if the source opened
  // it.
  DbSource(DbView view, std::shared_ptr<const void> owned);
  DbSource(const DbSource&) = delete;
  DbSource& operator=(const DbSource&) = delete;

  absl::StatusOr<std::vector<PrimaryKeyRange>> Split(int parts) const override;
  absl::StatusOr<std::unique_ptr<RowCursor>> Scan(const PrimaryKeyRange& range) const override;
  absl::Status Get(
      absl::Span<const std::string_view> primary_keys,
      const std::function<absl::Status(size_t, const RowView&)>& visitor) const override;

  SequenceNumber sequence() const override { return view_.sequence; }
  const std::string& database_id() const override { return view_.database_id; }
  const std::string& column_family() const override { return column_family_; }
  const std::string& description() const override { return view_.description; }
  uint64_t approximate_rows() const override;
  uint64_t approximate_bytes() const override;

  rocksdb::DB* db() const { return view_.db; }
  bool has_log() const { return view_.has_log; }
  // MayChangeValues for this database.
  bool changes_values() const { return view_.form == RowForm::kValuesOnly; }
  rocksdb::ColumnFamilyHandle* column_family_handle() const { return view_.column_family; }
  // Null if the database cannot change.
  const rocksdb::Snapshot* snapshot() const { return view_.snapshot; }

 private:
  rocksdb::ReadOptions ScanOptions() const;
  // Unimplemented if table files cannot be read in the direction that the order requires.
  absl::Status CheckScans() const;

  const std::shared_ptr<const void> owned_;
  const DbView view_;
  const std::string column_family_;
  LookupWay lookup_ = LookupWay::kSeeks;
};

}  // namespace cairn
