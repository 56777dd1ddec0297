#pragma once

#include <functional>

#include "rocksdb/db.h"

namespace cairn {

// Keeps a database's files from being removed or moved while this object exists. RocksDB may
// still remove files whose removal has already begun.
class FileDeletionPause {
 public:
  explicit FileDeletionPause(rocksdb::DB* db) : db_(db), paused_(db->DisableFileDeletions().ok()) {}
  ~FileDeletionPause();
  FileDeletionPause(const FileDeletionPause&) = delete;
  FileDeletionPause& operator=(const FileDeletionPause&) = delete;

  // Returns false if the database is open for reading only; it then removes no files.
  bool pauses() const { return paused_; }
  // Lets RocksDB remove the files that are obsolete now, unless another user keeps them, and as few
  // files as possible that become obsolete during the call. Calls `before`, which must not throw,
  // right before that, possibly on another thread.
  void LetPass(const std::function<void()>& before);

 private:
  void End();

  rocksdb::DB* const db_;
  bool paused_;
};

}  // namespace cairn
