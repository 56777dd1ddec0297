#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/options.h"
#include "cairn/types.h"
#include "engine/delta/delta_writer.h"
#include "engine/delta/row_updates.h"
#include "engine/log/anchor.h"
#include "engine/version/base.h"
#include "engine/version/index_version.h"
#include "engine/version/unique_check.h"
#include "index/files/index_directory.h"
#include "index/machine/mutex.h"

namespace cairn {

// Creates an open index's versions: from its files, by updates, and by merging both into a new
// base. Readers get the current version and keep it as long as they need it.
//
// Thread-safe. Updates are serialized. A merge runs concurrently, and blocks updates only while its
// base replaces the old one.
class IndexWriter {
 public:
  enum class Access : uint8_t {
    kShared,  // other processes may write to the directory while this one does not
    // No other process may write until LetGoOfDirectory; Unavailable if one does. The writer may
    // renumber rows that the base lacks in any update, so row ids are valid for one version.
    kExclusive,
  };

  // Maps the live files in `directory`, and applies stored updates. Errors: those of
  // SecondaryIndex::Open.
  static absl::StatusOr<std::unique_ptr<IndexWriter>> Open(const std::string& directory,
                                                           const OpenOptions& options,
                                                           Access access = Access::kShared);
  // Switches to shared access.
  void LetGoOfDirectory();
  bool holds_directory() const {
    const MutexLock lock(&store_mutex_);
    return held_ != nullptr;
  }

  std::shared_ptr<const IndexVersion> version() const;

  // The right to create the next version, which one thread has at a time. Applied changes are
  // visible only after Publish; unpublished changes are undone when the update ends.
  class Update {
   public:
    // The analysis does not follow a lock that is a member.
    explicit Update(IndexWriter* writer) ABSL_NO_THREAD_SAFETY_ANALYSIS;
    ~Update();
    Update(const Update&) = delete;
    Update& operator=(const Update&) = delete;

    // The version to update, and the state of the database that it represents.
    const IndexVersion& version() const { return *version_; }
    const Anchor& anchor() const {
      writer_->update_mutex_.AssertHeld();
      return writer_->anchor_;
    }

    // Errors: those of DeltaWriter::Apply.
    absl::Status Apply(const RowUpdates& updates);
    // Makes the applied changes the latest version, which represents the state `sequence`.
    // AlreadyExists, naming the key and both rows, if a unique index would contain a key twice;
    // then nothing is published. Intermediate duplicates do not count, nor do rows for which
    // `row_has_key`, unless it is null, returns false. May throw std::bad_alloc; then nothing is
    // published.
    absl::Status Publish(SequenceNumber sequence, Anchor anchor,
                         const RowHasKey& row_has_key = nullptr);

   private:
    IndexWriter* const writer_;
    const MutexLock lock_;
    const std::shared_ptr<const IndexVersion> version_;
    bool applied_ = false;  // and not published
  };

  // Does the part of the first update that is linear in the base, which otherwise the first change
  // waits for. Keeps 4 to 8 bytes of memory per entry. Errors: those of Update::Apply.
  absl::Status PrepareUpdates();

  // Sets functions that Store calls. `sync` is called before anything is stored, and makes the log
  // of the changes durable; otherwise the index could be ahead of a database that lost the log's
  // end. `cover` is called first, with the state to be stored and its anchor. If the state may be
  // ahead of the database's files for another reason, it returns an error, or changes the database
  // and the anchor. `record` sets the table files of an anchor, as the database had them then or
  // has them now. Must be called before Store.
  void set_database(std::function<absl::Status()> sync,
                    std::function<absl::Status(SequenceNumber, Anchor*)> cover,
                    std::function<absl::Status(Anchor*)> record) {
    sync_ = std::move(sync);
    cover_ = std::move(cover);
    record_ = std::move(record);
  }
  // Returns whether set_database was called with `sync`. If not, the caller must sync the log
  // before it publishes an update.
  bool syncs_log() const { return sync_ != nullptr; }
  // Writes the changes since the last call, so that the next Open begins with the latest version.
  // Concurrent with updates. Takes time and bytes for the changes, not for the index. If
  // MergeDeltaFiles is not called often enough, it also merges files once in thousands of calls.
  // Errors: those of CatchUp.
  absl::Status Store();
  // The sequence number of the version in the files; 0 if it may not survive a power loss.
  SequenceNumber stored_sequence() const {
    const MutexLock lock(&store_mutex_);
    return stored_.durable ? stored_.sequence : 0;
  }
  // Keeps the changes since the last base small, concurrently with updates, queries and stores.
  // Merges many small files of Store into a few large ones (delta_files.h) if there are too many.
  // With Access::kExclusive, also calls Renumber if that pays. Errors: those of CatchUp.
  absl::Status Tidy();
  // Releases the memory of rows and tuples that were added and deleted since the base was built
  // (DeltaWriter::Renumber), concurrently with updates, queries and stores. Changes the ids of rows
  // that the base lacks. With Access::kExclusive, updates do this automatically whenever the memory
  // would otherwise exceed that in use. So memory is proportional to the existing rows, however
  // many were added and deleted.
  absl::Status Renumber();

  // SecondaryIndex's methods of these names.
  absl::Status Compact(const CompactOptions& options);
  bool ShouldCompact() const;

 private:
  // The contents of the files.
  struct Stored {
    std::shared_ptr<const Manifest> manifest;
    bool durable = true;  // whether that certainly survives a power loss
    SequenceNumber sequence = 0;
    bool in_files = false;  // whether the anchor's table files are complete
    // A delta over the latest version's base. If it is older than the latest version, it may be
    // only DeltaWriter::Renumbered::since, without entries.
    std::shared_ptr<const Delta> delta;
  };

  explicit IndexWriter(const OpenOptions& options);

  absl::Status OpenFiles(const std::string& directory)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_mutex_, update_mutex_);
  int threads() const;
  void Publish(std::shared_ptr<const IndexVersion> version) noexcept;
  // The directory, for this process to write to. FailedPrecondition if another process has
  // published a version since.
  absl::StatusOr<std::shared_ptr<IndexDirectory>> Directory()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_mutex_);
  // Store without merging files; sets the number of files.
  absl::Status StoreLatest(size_t* delta_files);
  absl::Status StoreVersion(const IndexVersion& version, const Anchor& anchor,
                            IndexDirectory* directory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_mutex_);
  absl::Status MergeDeltaFiles() ABSL_EXCLUSIVE_LOCKS_REQUIRED(merge_mutex_);
  absl::Status RenumberLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(merge_mutex_);
  // Returns whether Renumber is worthwhile: enough rows were added and deleted. `patience`
  // multiplies the number that is enough.
  bool RenumberPays(const Delta& delta, uint64_t patience) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(update_mutex_);
  // Renumbers at once, while updates wait, if that pays and no other thread is at work. Only tries
  // the locks that precede update_mutex_, which the analysis would take for locking them.
  void RenumberIfPays() ABSL_EXCLUSIVE_LOCKS_REQUIRED(update_mutex_) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Makes `writer`, which has the contents of `carried`, apply later changes, and publishes its
  // version instead of the latest one. Returns that version.
  absl::StatusOr<std::shared_ptr<const IndexVersion>> TakeIntoUse(
      std::shared_ptr<const Base> base, std::unique_ptr<DeltaWriter> writer,
      std::shared_ptr<const Delta> carried) ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_mutex_);
  // With exclusive access: removes files of failed attempts from the directory.
  void OpenDirectoryAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_mutex_);
  // Makes `directory` publish `next`. Returns whether that is in force. That is possible after an
  // error, too; then *status reports that it may not be durable.
  bool PublishManifest(Manifest next, IndexDirectory* directory, absl::Status* status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_mutex_);
  // Replaces the base by the one from merged_. Returns the last version over the old one.
  absl::StatusOr<std::shared_ptr<const IndexVersion>> TakeMergedBase()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_mutex_);

  const OpenOptions options_;
  const std::shared_ptr<FileSystem> files_;
  bool renumbers_ = false;  // automatically
  std::function<absl::Status()> sync_;
  std::function<absl::Status(SequenceNumber, Anchor*)> cover_;
  std::function<absl::Status(Anchor*)> record_;

  Mutex merge_mutex_;  // held by a merge, of the base or of delta files

  mutable Mutex store_mutex_ ABSL_ACQUIRED_AFTER(merge_mutex_);
  // The version that Open found; its writer may have died before it was synced.
  bool opened_is_durable_ ABSL_GUARDED_BY(store_mutex_) = false;
  Access access_ ABSL_GUARDED_BY(store_mutex_) = Access::kShared;
  // With exclusive access only.
  std::shared_ptr<IndexDirectory> held_ ABSL_GUARDED_BY(store_mutex_);
  std::weak_ptr<IndexDirectory> directory_ ABSL_GUARDED_BY(store_mutex_);
  Stored stored_ ABSL_GUARDED_BY(store_mutex_);
  // The version that was merged into the published base, until that base is in use. Its delta is
  // null if there is none.
  IndexVersion merged_ ABSL_GUARDED_BY(store_mutex_);

  Mutex update_mutex_ ABSL_ACQUIRED_AFTER(store_mutex_);
  // Both of the latest version, or of its base.
  std::unique_ptr<DeltaWriter> deltas_ ABSL_GUARDED_BY(update_mutex_);
  Anchor anchor_ ABSL_GUARDED_BY(update_mutex_);
  // The deleted rows and tuples that the last Renumber kept, since files refer to them.
  uint64_t dead_left_ ABSL_GUARDED_BY(update_mutex_) = 0;

  mutable Mutex version_mutex_;
  std::shared_ptr<const IndexVersion> version_ ABSL_GUARDED_BY(version_mutex_);
};

}  // namespace cairn
