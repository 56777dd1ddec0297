#pragma once

#include <functional>

#include "rocksdb/db.h"

namespace cairn {

// Keeps the files of a database from being removed or moved, as long as it lives; those that are
// about to be may still go.
class FileDeletionPause {
 public:
  explicit FileDeletionPause(rocksdb::DB* db) : db_(db), paused_(db->DisableFileDeletions().ok()) {}
  ~FileDeletionPause();
  FileDeletionPause(const FileDeletionPause&) = delete;
  FileDeletionPause& operator=(const FileDeletionPause&) = delete;

  // False where the database is open for reading only, and removes nothing.
  bool pauses() const { return paused_; }
  // Has what is obsolete now removed, where nobody else keeps it, but as little as can be of what
  // becomes so meanwhile. Calls `before`, which throws nothing, right before that, perhaps on
  // another thread.
  void LetPass(const std::function<void()>& before);

 private:
  void End();

  rocksdb::DB* const db_;
  bool paused_;
};

}  // namespace cairn
