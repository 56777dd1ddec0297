#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/extractor.h"
#include "cairn/types.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
struct Options;
}  // namespace rocksdb

namespace cairn {

// A range of primary keys: [lower, upper). If `open` is true, the range has no upper end, and
// `upper` is not used.
struct PrimaryKeyRange {
  std::string lower;
  std::string upper;
  bool open = true;
};

// Iterates over the live rows of one range, by primary key in the order of bytes. Not thread-safe.
class RowCursor {
 public:
  virtual ~RowCursor() = default;
  // Advances to the next row; the first call advances to the first row. Returns false at the end
  // and on error.
  virtual bool Next() = 0;
  // Returns the current row, valid until the next call of Next.
  virtual const RowView& row() const = 0;
  // OK unless the iteration ended with an error. The message names the file if RocksDB does.
  virtual absl::Status status() const = 0;
};

// One frozen state of one column family, used to build an index, to catch up, to read rows and to
// verify. Thread-safe. A source keeps its files open, and the snapshot of a live database, until it
// is destroyed.
//
// All factory functions return an error that names the cause if the rows cannot be read reliably.
// Errors: Unimplemented for a comparator of unknown order (cairn/key_order.h), for user-defined
// timestamps, and for an unknown merge operator; FailedPrecondition if files do not belong together
// or the database has no snapshots; NotFound if a file or the column family does not exist.
class SnapshotSource {
 public:
  // A live database, under a snapshot taken by this call. `db` and `column_family` must outlive the
  // source. Null `column_family`: the default one.
  static absl::StatusOr<std::unique_ptr<SnapshotSource>> FromDb(
      rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family = nullptr);

  // A checkpoint, a backup restored to a directory, or a database directory, opened read-only with
  // its stored options. Nothing is written to it. If not null, `options` replaces the stored
  // options; it is needed for merge operators and other plug-ins that RocksDB cannot create by
  // name.
  static absl::StatusOr<std::unique_ptr<SnapshotSource>> FromDirectory(
      const std::string& directory, const std::string& column_family = "default",
      const rocksdb::Options* options = nullptr);

  // Loose SST files. For files made by SstFileWriter, a later file in the list overrides an earlier
  // one. For files written by a database (an exported column family or a copy of its files),
  // sequence numbers decide; these must be the live files of one state. Deletions apply across
  // files. The files are not changed. Creates a directory with symbolic links and a few kilobytes
  // in `scratch_directory`, which the destructor removes. Empty `scratch_directory`: the directory
  // of the first file.
  static absl::StatusOr<std::unique_ptr<SnapshotSource>> FromSstFiles(
      absl::Span<const std::string> files, const std::string& scratch_directory = "",
      const rocksdb::Options* options = nullptr);

  virtual ~SnapshotSource() = default;

  // Returns at least one and at most `parts` ranges, in ascending order, that together contain
  // every row once. File metadata is used to make them similar in size.
  virtual absl::StatusOr<std::vector<PrimaryKeyRange>> Split(int parts) const = 0;

  // Returns a cursor over one range. Destroy it before the source. All cursors of a source read the
  // same state.
  virtual absl::StatusOr<std::unique_ptr<RowCursor>> Scan(const PrimaryKeyRange& range) const = 0;

  // Reads the rows with these primary keys, which must be in ascending order, in batches. Calls
  // `visitor` once per existing row, in order, with the index of its key in `primary_keys`. Stops
  // at the first error of `visitor` and returns it.
  virtual absl::Status Get(
      absl::Span<const std::string_view> primary_keys,
      const std::function<absl::Status(size_t, const RowView&)>& visitor) const = 0;

  virtual SequenceNumber sequence() const = 0;  // 0 for loose SST files
  virtual const std::string& database_id()
      const = 0;  // RocksDB's DB::GetDbIdentity; empty for SST files
  virtual const std::string& column_family() const = 0;
  virtual const std::string& description() const = 0;  // "checkpoint '/data/cp', column family 'x'"
  virtual uint64_t approximate_rows() const = 0;       // estimate, for progress
  virtual uint64_t approximate_bytes() const = 0;      // of the files, compressed
};

}  // namespace cairn
