#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/snapshot_source.h"
#include "engine/rows/row_cursor.h"
#include "engine/rows/row_lookup.h"
#include "rocksdb/db.h"
#include "rocksdb/snapshot.h"

namespace cairn {

// One state of a column family in an open database, however that was opened: live under a snapshot,
// or read-only and thus unchanging.
struct DbView {
  rocksdb::DB* db = nullptr;
  rocksdb::ColumnFamilyHandle* column_family = nullptr;
  // Null where the database cannot change.
  const rocksdb::Snapshot* snapshot = nullptr;
  RowForm form = RowForm::kStored;
  // Whether a read of one key may stop at the first level of the tree that holds it. Not where
  // levels are not known to be ordered by age; every read is then a seek of an iterator.
  bool levels_are_ordered = true;
  // Whether the database's write-ahead log tells how it came to be as it is. Not that of files
  // which were put together.
  bool has_log = true;
  size_t readahead_bytes = size_t{2} << 20;
  SequenceNumber sequence = 0;
  std::string database_id;
  std::string description;
};

// Whether rows that are read through `db` may have other values than those that are stored: a layer
// above the stored database, such as DBWithTTL, makes its own iterators.
bool MayChangeValues(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family);

// Unimplemented, naming the comparator and the column family, where keys are not ordered by byte or
// carry timestamps.
absl::Status CheckComparator(const rocksdb::Comparator* comparator, std::string_view column_family,
                             std::string_view where);

// Whether a row is read first, of all table files, to see whether that can be done: not needed for
// a database that an index follows.
enum class Trial : uint8_t { kNone, kRead };

// As SnapshotSource::FromDb, but of the state that `snapshot` holds, so that sources of several
// column families can be of one state.
absl::StatusOr<std::unique_ptr<SnapshotSource>> SourceAt(
    rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
    const std::shared_ptr<rocksdb::ManagedSnapshot>& snapshot, Trial trial = Trial::kRead);

// The snapshot source over an open database.
class DbSource final : public SnapshotSource {
 public:
  // `owned` is what must live as long as the source: the snapshot, or the database itself where the
  // source opened it.
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
  // MayChangeValues, of the database.
  bool changes_values() const { return view_.form == RowForm::kValuesOnly; }
  rocksdb::ColumnFamilyHandle* column_family_handle() const { return view_.column_family; }
  // Null where the database cannot change.
  const rocksdb::Snapshot* snapshot() const { return view_.snapshot; }

 private:
  rocksdb::ReadOptions ScanOptions() const;

  const std::shared_ptr<const void> owned_;
  const DbView view_;
  const std::string column_family_;
  LookupWay lookup_ = LookupWay::kSeeks;
};

}  // namespace cairn
