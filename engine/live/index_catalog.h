#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/log/older_logs.h"
#include "index/files/file_system.h"

namespace cairn {

// The required state of an index, if its own directory cannot express it.
struct IndexMark {
  enum class Kind : uint8_t {
    kNone,     // follow the database from the state of the index's files
    kBuild,    // build for the first time, whatever the index's files contain
    kStale,    // its rows changed in a way that the log does not record
    kRemoved,  // remove
    kRebuild,  // as kBuild, for an index that has been ready before
  };
  Kind kind = Kind::kNone;
  std::string why;   // the reason; human-readable
  std::string spec;  // IndexSpec::ToString(); empty if unknown
};

// The directory of a database's indexes. Each index is in a subdirectory with its name.
//
// An index's mark is in a file next to its directory, with the index's name and a '~', which no
// index name contains. A mark is replaced as a whole, by renaming ".NAME.tmp". So after
// a killed process or a power failure, no half-built index is used, no index returns wrong rows, no
// dropped index exists again, and no index is forgotten. Thread-safe if concurrent calls
// are for different indexes.
class IndexCatalog {
 public:
  struct Entry {
    std::string name;
    IndexMark mark;
  };

  // Creates the directory if it is missing (not its parents), and completes removals that were in
  // progress when their process ended. Changes nothing that has no mark.
  static absl::StatusOr<IndexCatalog> Open(const std::string& directory,
                                           std::shared_ptr<FileSystem> files);

  // Returns the catalog in a directory, which need not exist, and changes nothing. Unlike Open, it
  // can be called while another process has the database open.
  static IndexCatalog View(const std::string& directory, std::shared_ptr<FileSystem> files) {
    return IndexCatalog(directory, std::move(files));
  }

  // Removes the directory and all indexes in it. Returns OK if the directory does not exist.
  // Errors: FailedPrecondition if it contains anything else; Unavailable if the lock of one of the
  // indexes is held. In both cases nothing is removed. After any other error, repeat the
  // call.
  static absl::Status Destroy(const std::string& directory, std::shared_ptr<FileSystem> files);

  // Returns the indexes that exist or must be built, by name.
  absl::StatusOr<std::vector<Entry>> List() const;
  std::string DirectoryOf(std::string_view name) const;
  // The file system of the directory.
  FileSystem* files() const { return files_.get(); }

  // Replaces the index's mark, or removes it for kNone. The change is on disk when this returns.
  // After an error the mark is the old or the new one.
  absl::Status Mark(std::string_view name, const IndexMark& mark) const;
  // Makes a stored index unusable without taking disk space, which Mark needs. Writes an empty
  // mark, which counts as damaged, so that the index is stale; or removes the index's manifest.
  absl::Status MarkDamaged(std::string_view name) const;
  // Removes the index's directory, but not its mark. Returns OK if there is no directory or if it
  // is not an index. Errors: Unavailable if the index's lock is held.
  absl::Status RemoveFiles(std::string_view name) const;
  // Removes both. After an error it may be called again. Once the mark has been replaced, Open
  // completes the removal.
  absl::Status Remove(std::string_view name) const;

 private:
  IndexCatalog(std::string directory, std::shared_ptr<FileSystem> files)
      : directory_(std::move(directory)), files_(std::move(files)) {}

  std::string MarkOf(std::string_view name) const { return DirectoryOf(name) + "~"; }
  std::string NewMarkOf(std::string_view name) const;
  absl::Status EndInterrupted(const std::vector<std::string>& names) const;
  absl::StatusOr<IndexMark> ReadMark(std::string_view name) const;
  bool HoldsOnlyAnIndex(std::string_view name) const;

  std::string directory_;
  std::shared_ptr<FileSystem> files_;
};

// Returns InvalidArgument unless `name` can be the name of a database's index: 1 to 128 letters,
// digits, '_', '-' and '.', and no leading '.'.
absl::Status CheckIndexName(std::string_view name);

// The stale marks of indexes that have rows which RocksDB does not recover, because a log file was
// lost while the database was closed. The marks persist if this process ends before the indexes are
// built again.
class LostLogMarks {
 public:
  explicit LostLogMarks(IndexCatalog catalog) : catalog_(std::move(catalog)) {}

  // Marks the indexes.
  absl::Status Make(OlderLogCheck check);
  // Removes the marks after the database could not be opened, if the log files still show the loss.
  // They may be restored before the next attempt.
  void Undo(OlderLogCheck check);

 private:
  absl::Status HasAll(const std::string& name, OlderLogCheck* check);

  const IndexCatalog catalog_;
  std::vector<std::string> marked_;
};

}  // namespace cairn
