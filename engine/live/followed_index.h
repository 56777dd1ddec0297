#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cairn/indexed_db.h"
#include "cairn/secondary_index.h"
#include "engine/change_extractor.h"
#include "engine/delta/row_updates.h"
#include "engine/index_writer.h"

namespace cairn {

// One index of a database that it follows: how it stands, and, once there is one, what makes its
// versions. Thread-safe, but for what says otherwise.
class FollowedIndex {
 public:
  FollowedIndex(IndexSpec spec, KeyCodec codec, std::string directory,
                rocksdb::ColumnFamilyHandle* column_family)
      : spec_(std::move(spec)),
        codec_(std::move(codec)),
        directory_(std::move(directory)),
        column_family_(column_family),
        column_family_id_(column_family == nullptr ? UINT32_MAX : column_family->GetID()) {}

  const IndexSpec& spec() const { return spec_; }
  const std::string& name() const { return spec_.name; }
  const KeyCodec& codec() const { return codec_; }
  const std::string& directory() const { return directory_; }
  // Null where there is none; gone once it is cancelled, perhaps.
  rocksdb::ColumnFamilyHandle* column_family() const { return column_family_; }
  uint32_t column_family_id() const { return column_family_id_; }

  // How it stands. One that was dropped is kFailed and says so, whatever is set afterwards.
  void Set(IndexState state, absl::Status why = absl::OkStatus());
  // Between these two it will not stay stale or failed: somebody is at it, or will be.
  void BeginRepair();
  void EndRepair();
  void Drop();
  IndexState state() const;
  // Waits as IndexedDB::WaitUntilReady.
  absl::Status Wait(absl::Time deadline) const;

  // The index, by any state it is in; null before there is one.
  std::shared_ptr<IndexWriter> writer() const;
  std::shared_ptr<SecondaryIndex> index() const;
  // Its index where it is ready; else why it is not: Unavailable or FailedPrecondition.
  absl::StatusOr<std::shared_ptr<SecondaryIndex>> Ready() const;
  // Opens what is in the directory, of a database that must live as long as it is stored to.
  absl::Status OpenWriter(rocksdb::DB* db, const OpenOptions& options);

  // How an attempt to store or to merge it ended.
  void NoteStore(const absl::Status& status);
  void NoteMerge(const absl::Status& status);

  // All but the lag.
  IndexInfo Info() const;

  // Held by who builds, merges or stores it, or catches it up before it follows.
  std::mutex work_mutex;
  // Set once, to end a build or a merge of it and begin none.
  std::atomic<bool> cancelled{false};
  std::atomic<double> progress{0};  // of its build
  std::atomic<uint64_t> builds{0};
  std::atomic<uint64_t> merges{0};
  std::atomic<uint64_t> stores{0};

  // Of who merges what pays: after merges that failed, when the next attempt is due, and how long
  // that was put off.
  absl::Time merge_due = absl::InfinitePast();
  absl::Duration merge_wait;

  // How often its rows changed in a way that the log does not tell. Who builds it looks whether
  // that has happened meanwhile. The mutex also guards the index's mark in the catalog.
  std::mutex disruptions_mutex;
  uint64_t disruptions = 0;

  // Of the LogFollower, and guarded by its mutex: how its rows' keys are taken.
  std::unique_ptr<ChangeExtractor> extractor;
  std::unique_ptr<RowUpdates> updates;

 private:
  absl::Status NotReady() const;  // mutex_ is held

  const IndexSpec spec_;
  const KeyCodec codec_;
  const std::string directory_;
  rocksdb::ColumnFamilyHandle* const column_family_;
  const uint32_t column_family_id_;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable changed_;
  IndexState state_ = IndexState::kBuilding;
  absl::Status why_;
  int repairs_ = 0;  // that have begun and not ended
  bool dropped_ = false;
  absl::Status store_status_;
  absl::Status merge_status_;
  std::shared_ptr<IndexWriter> writer_;
  std::shared_ptr<SecondaryIndex> index_;
};

}  // namespace cairn
