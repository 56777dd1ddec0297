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

// A range of primary keys: [lower, upper), no upper end where `open` is set.
struct PrimaryKeyRange {
  std::string lower;
  std::string upper;
  bool open = true;
};

// Walks the live rows of one range in ascending primary-key order. Not thread-safe.
class RowCursor {
 public:
  virtual ~RowCursor() = default;
  // Moves to the next row, the first one at the first call. False at the end or on an error.
  virtual bool Next() = 0;
  // The row moved to; valid until the next call.
  virtual const RowView& row() const = 0;
  // OK unless the walk ended on an error, which names the file where RocksDB does.
  virtual absl::Status status() const = 0;
};

// One frozen state of one column family, whatever it is read from: what an index is built from and
// verified against. Thread-safe; keeps what it reads from open and, for a live database, its
// snapshot held, until it is destroyed.
//
// Every factory refuses by name what cannot be read faithfully: a comparator other than RocksDB's
// bytewise one, user-defined timestamps (Unimplemented), a merge operator that is unknown here,
// files that do not belong together (FailedPrecondition), a column family that is not there
// (NotFound).
class SnapshotSource {
 public:
  // A live database under a snapshot taken now. `db` and `column_family` (null: the default one)
  // must outlive the source.
  static absl::StatusOr<std::unique_ptr<SnapshotSource>> FromDb(
      rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family = nullptr);

  // A checkpoint, a backup restored to a directory, or a database directory, opened read-only with
  // the options stored in it. Nothing is written there. `options`, where given, replaces the stored
  // options: needed for merge operators and other plug-ins that RocksDB cannot make from their
  // names.
  static absl::StatusOr<std::unique_ptr<SnapshotSource>> FromDirectory(
      const std::string& directory, const std::string& column_family = "default",
      const rocksdb::Options* options = nullptr);

  // Loose SST files: made by SstFileWriter, where a later file of the list wins over an earlier
  // one, or written by a database (an exported column family, a copy of its files), where sequence
  // numbers decide; those must be the live files of one state. Tombstones and range deletions are
  // honoured across files; the files are not changed. A directory of symbolic links and a few
  // kilobytes is made in `scratch_directory` (empty: beside the first file) and removed by the
  // destructor.
  static absl::StatusOr<std::unique_ptr<SnapshotSource>> FromSstFiles(
      absl::Span<const std::string> files, const std::string& scratch_directory = "",
      const rocksdb::Options* options = nullptr);

  virtual ~SnapshotSource() = default;

  // At most `parts` ranges that together hold every row once, in ascending order, of similar size
  // as far as file metadata tells. At least one.
  virtual absl::StatusOr<std::vector<PrimaryKeyRange>> Split(int parts) const = 0;

  // A cursor over one range, to be destroyed before the source; all cursors of a source see the
  // same state.
  virtual absl::StatusOr<std::unique_ptr<RowCursor>> Scan(const PrimaryKeyRange& range) const = 0;

  // Reads the rows with these primary keys, which ascend, in batches. The visitor is called once
  // for each that exists, in order, with its index in `primary_keys`; its first error ends the
  // call.
  virtual absl::Status Get(
      absl::Span<const std::string_view> primary_keys,
      const std::function<absl::Status(size_t, const RowView&)>& visitor) const = 0;

  virtual SequenceNumber sequence() const = 0;  // 0 for loose SST files
  virtual const std::string& database_id()
      const = 0;  // RocksDB's DB::GetDbIdentity; empty for SSTs
  virtual const std::string& column_family() const = 0;
  virtual const std::string& description() const = 0;  // "checkpoint '/data/cp', column family 'x'"
  virtual uint64_t approximate_rows() const = 0;       // for progress; may be off
  virtual uint64_t approximate_bytes() const = 0;      // of files, compressed
};

}  // namespace cairn
