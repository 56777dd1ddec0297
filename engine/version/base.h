#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/index_spec.h"
#include "cairn/key_codec.h"
#include "cairn/options.h"
#include "cairn/ordered_index.h"
#include "cairn/snapshot_source.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"
#include "engine/aggregates/base_aggregates.h"
#include "engine/delta/row_positions.h"
#include "engine/route/index_router.h"
#include "engine/route/resident_indexes.h"
#include "engine/rows/row_table_file.h"
#include "index/columns/column_file.h"
#include "index/files/file_system.h"
#include "index/files/index_directory.h"
#include "index/files/run_file.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/mutex.h"

namespace cairn {

// Row id -> the rank of the row's key among a run's distinct keys, in one or two bytes. It has the
// information of RowPositions for a run with few keys, in a quarter or half of the memory, which
// determines the cost of a full read. Immutable; safe from any number of threads.
class RowCodes {
 public:
  // Builds the codes of a run whose rows have at most one entry each, with row ids below `rows`;
  // null if it has more than kMax16 distinct keys. Throws std::bad_alloc.
  static std::shared_ptr<const RowCodes> Build(const SortedRun& run, uint64_t rows);

  // The code of a row without entries, in each width.
  static constexpr uint8_t kNone8 = UINT8_MAX;
  static constexpr uint16_t kNone16 = UINT16_MAX;
  static constexpr size_t kMax8 = UINT8_MAX - 1, kMax16 = UINT16_MAX - 1;

  // One code per row; the unused span is empty.
  absl::Span<const uint8_t> codes8() const { return codes8_.span(); }
  absl::Span<const uint16_t> codes16() const { return codes16_.span(); }
  // The number of distinct keys.
  size_t keys() const { return begins_.size(); }
  // The number of distinct keys before a position at which a key begins.
  uint32_t CodeOf(Position position) const;

 private:
  std::vector<Position> begins_;  // of each key
  AlignedBuffer<uint8_t> codes8_;
  AlignedBuffer<uint16_t> codes16_;
};

// The immutable bulk of an index: one version's mapped files and its search structures.
// Thread-safe.
struct Base {
  std::shared_ptr<FileSystem> files;  // the file system of the directory
  std::string directory;
  OpenOptions options;
  Manifest manifest;
  IndexSpec spec;
  KeyCodec codec;
  RunFile run_file;
  RowTableFile rows_file;
  std::optional<ColumnFile> columns_file;  // if the spec includes columns
  ResidentIndexes resident;
  std::unique_ptr<const IndexRouter> router;  // over these indexes
  std::unique_ptr<const BaseAggregates> aggregates;
  uint64_t cursor_checksum = 0;  // CursorTag::OfIndex

  // The data that Open has not read, and that was not read since. Null: none.
  struct Unproven {
    std::optional<StoredLeaves> leaves;
    bool entries = false;  // and the keys of rows
    Mutex mutex;
    std::atomic<bool> proven{false};
  };
  std::unique_ptr<Unproven> unproven;

  // Returns whether entries, leaves and rows have been verified. Until then they may be wrong, but
  // a search over them does not crash.
  bool is_proven() const { return unproven == nullptr || unproven->proven.load(); }
  // Reads the data that Open has not read, once. Must be called before any use other than queries
  // of only the base. Thread-safe. Errors: DataLoss. Throws std::bad_alloc.
  absl::Status Prove(int threads) const;

  // The positions of each row's entries in run(), which the first call computes and keeps.
  // Thread-safe. Errors: DataLoss. Throws std::bad_alloc.
  absl::StatusOr<std::shared_ptr<const RowPositions>> Positions(int threads) const;
  // The rank of each row's key, if there are few keys and no row has several; also computed once
  // and kept. Otherwise null. Requires Positions.
  std::shared_ptr<const RowCodes> Codes() const;
  struct Inverse {
    Mutex mutex;
    bool has_looked_for_codes ABSL_GUARDED_BY(mutex) = false;
    std::shared_ptr<const RowCodes> codes ABSL_GUARDED_BY(mutex);
    std::shared_ptr<const RowPositions> positions ABSL_GUARDED_BY(mutex);
  };
  std::unique_ptr<Inverse> inverse = std::make_unique<Inverse>();

  const SortedRun& run() const { return run_file.run; }
  const RowTable& rows() const { return rows_file.table; }
  ColumnTable columns() const {
    return columns_file.has_value() ? columns_file->table : ColumnTable();
  }

  // Maps the live files of the index in `directory`, in the options' file system. Builds the
  // ordered indexes that the options request, and runs their trials. With VerifyLevel::kMetadata,
  // stored leaves are not compared with the entries. If only stored leaves are searched (cpu:auto
  // or cpu:packed), neither entries nor rows are read; Prove does that. Errors: NotFound: there is
  // no index; DataLoss: its files do not belong together.
  static absl::StatusOr<std::shared_ptr<const Base>> Open(const std::string& directory,
                                                          const OpenOptions& options);
};

// FailedPrecondition unless rows of `source` can belong to the index: the column family must be the
// same, and also the database, if both identities are known. (A checkpoint does not have its
// database's identity.)
absl::Status CheckSameDatabase(const Base& base, const SnapshotSource& source);

}  // namespace cairn
