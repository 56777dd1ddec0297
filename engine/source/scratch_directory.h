#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace cairn {

// A new directory that is removed, with all that is in it, when this goes out of scope. Symbolic
// links in it are removed, never what they point to. It is for RocksDB to find a database's files
// in, not for files of an index, and so in the local file system, where those are.
class ScratchDirectory {
 public:
  // Made in `parent`, under a name that starts with ".cairn-".
  static absl::StatusOr<std::unique_ptr<ScratchDirectory>> Make(const std::string& parent);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

}  // namespace cairn
