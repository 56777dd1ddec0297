#include "engine/live/file_deletion_pause.h"

#include "rocksdb/version.h"

namespace cairn {

FileDeletionPause::~FileDeletionPause() {
  if (!paused_) return;
#if ROCKSDB_MAJOR >= 9
  db_->EnableFileDeletions().PermitUncheckedError();
#else
  db_->EnableFileDeletions(/*force=*/false).PermitUncheckedError();
#endif
}

}  // namespace cairn
