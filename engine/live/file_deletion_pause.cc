#include "engine/live/file_deletion_pause.h"

#include <atomic>
#include <optional>
#include <system_error>
#include <thread>

#include "engine/util/rocksdb_compat.h"

namespace cairn {
namespace {

// The value that means "files are removed" differs between versions.
uint64_t DeletionState(rocksdb::DB* db) {
  uint64_t state = 0;
  return db->GetIntProperty(rocksdb::DB::Properties::kIsFileDeletionsEnabled, &state) ? state : 0;
}

}  // namespace

FileDeletionPause::~FileDeletionPause() {
  if (paused_) End();
}

void FileDeletionPause::End() {
  EndDisabledFileDeletions(db_).PermitUncheckedError();
}

void FileDeletionPause::LetPass(const std::function<void()>& before) {
  if (!paused_) return;
  // The pause ends when RocksDB has listed the obsolete files. Removing them takes much longer, so
  // the next pause begins here before that has ended.
  const uint64_t disabled = DeletionState(db_);
  std::atomic<bool> ended{false};
  std::optional<std::thread> ending;
  try {
    ending.emplace([&] {
      before();
      End();
      ended = true;
    });
    while (!ended && DeletionState(db_) == disabled) std::this_thread::yield();
  } catch (const std::system_error&) {
    before();
    End();
  }
  paused_ = db_->DisableFileDeletions().ok();
  if (ending.has_value()) ending->join();
}

}  // namespace cairn
