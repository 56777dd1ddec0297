#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "index/file_system.h"

namespace cairn {

// The directory that holds a database's indexes, each in a directory of its name.
//
// What an index's own directory cannot say stands beside it, in a file of the index's name with '~'
// behind, which no name has: that it is being built for the first time, has become stale, or is
// being removed. So a process that is killed leaves no index that is half built, answers from the
// wrong rows, or comes back. Thread-safe where each call is for another index.
class IndexCatalog {
 public:
  struct Entry {
    std::string name;
    std::string stale;  // why it has become stale; empty where it has not
  };

  // Makes the directory where it is missing (not its parents), and removes what was being built or
  // removed when its writer ended. Nothing without a mark is touched.
  static absl::StatusOr<IndexCatalog> Open(const std::string& directory,
                                           std::shared_ptr<FileSystem> files);

  // The indexes that are there, by name.
  absl::StatusOr<std::vector<Entry>> List() const;
  std::string DirectoryOf(std::string_view name) const;
  // Where all of it is.
  FileSystem* files() const { return files_.get(); }

  // Each is on the disk when it returns.
  absl::Status MarkBuilding(std::string_view name) const;
  absl::Status MarkStale(std::string_view name, std::string_view why) const;
  absl::Status RemoveMark(std::string_view name) const;
  // Removes the index and its mark; OK where there is nothing. After an error it may be called
  // again, and Open removes what is left, unless the index was left as it is.
  absl::Status Remove(std::string_view name) const;

 private:
  IndexCatalog(std::string directory, std::shared_ptr<FileSystem> files)
      : directory_(std::move(directory)), files_(std::move(files)) {}

  std::string MarkOf(std::string_view name) const { return DirectoryOf(name) + "~"; }
  absl::Status Mark(std::string_view name, std::string_view text) const;

  std::string directory_;
  std::shared_ptr<FileSystem> files_;
};

// InvalidArgument for what cannot be the name of a database's index: it is 1 to 128 letters,
// digits, '_', '-' and '.', but no '.' first.
absl::Status CheckIndexName(std::string_view name);

}  // namespace cairn
