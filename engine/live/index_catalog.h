#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "index/files/file_system.h"

namespace cairn {

// What is wanted of an index, where its own directory cannot say so.
struct IndexMark {
  enum class Kind : uint8_t {
    kNone,     // to follow the database from where its files are
    kBuild,    // to be built for the first time, whatever its files are
    kStale,    // its rows changed in a way that the log does not tell
    kRemoved,  // to be removed
    kRebuild,  // as kBuild, of an index that has been ready before
  };
  Kind kind = Kind::kNone;
  std::string why;   // it is so; for people
  std::string spec;  // IndexSpec::ToString(); empty where that is not known
};

// The directory that holds a database's indexes, each in a directory of its name.
//
// An index's mark stands beside its directory, in a file of the index's name with '~' behind, which
// no name has. It is replaced as a whole, by renaming ".NAME.tmp". So a process that is killed, or
// a machine that loses power, leaves no index that is half built and taken for whole, answers from
// the wrong rows, comes back, or is forgotten. Thread-safe where each call is for another index.
class IndexCatalog {
 public:
  struct Entry {
    std::string name;
    IndexMark mark;
  };

  // Makes the directory where it is missing (not its parents), and ends what was being removed when
  // its writer ended. Nothing else is touched that has no mark.
  static absl::StatusOr<IndexCatalog> Open(const std::string& directory,
                                           std::shared_ptr<FileSystem> files);

  // Removes the directory and all indexes in it. OK if there is no directory. FailedPrecondition,
  // and nothing is removed, if it holds anything else; Unavailable likewise if the lock of one of
  // the indexes is held. After another error the call may be repeated.
  static absl::Status Destroy(const std::string& directory, std::shared_ptr<FileSystem> files);

  // The indexes that are there or are to be built, by name.
  absl::StatusOr<std::vector<Entry>> List() const;
  std::string DirectoryOf(std::string_view name) const;
  // Where all of it is.
  FileSystem* files() const { return files_.get(); }

  // Replaces the index's mark, or, for kNone, removes it. It is on the disk when this returns;
  // after an error it is the one or the other.
  absl::Status Mark(std::string_view name, const IndexMark& mark) const;
  // Makes a stored index unusable without taking space, which Mark needs: by an empty mark, which
  // counts as a damaged one, so that the index is stale, or by removing the index's manifest.
  absl::Status MarkDamaged(std::string_view name) const;
  // Removes the index's directory, and leaves its mark; OK where there is nothing, or what is no
  // index. Unavailable where somebody holds its lock.
  absl::Status RemoveFiles(std::string_view name) const;
  // Removes both. After an error it may be called again, and Open removes what is left, once the
  // mark was replaced.
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

// InvalidArgument for what cannot be the name of a database's index: it is 1 to 128 letters,
// digits, '_', '-' and '.', but no '.' first.
absl::Status CheckIndexName(std::string_view name);

}  // namespace cairn
