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

// Makes an open index's versions: from its files, by updates, and by merging both into a new base.
// Readers take the version of the moment and keep it as long as they need it.
//
// Thread-safe. Updates come one after the other; a merge works beside them, and makes them wait
// only while its base takes the old one's place.
class IndexWriter {
 public:
  enum class Access : uint8_t {
    kShared,  // others may write to the directory while this does not
    // Nobody else may, until LetGoOfDirectory: Unavailable where another does. The writer may
    // number rows that the base lacks again with any update: row ids are good for one version.
    kExclusive,
  };

  // Maps the live files in `directory`, and applies what is stored of updates. Errors as
  // SecondaryIndex::Open's.
  static absl::StatusOr<std::unique_ptr<IndexWriter>> Open(const std::string& directory,
                                                           const OpenOptions& options,
                                                           Access access = Access::kShared);
  // Access is shared from now on.
  void LetGoOfDirectory();
  bool holds_directory() const {
    const MutexLock lock(&store_mutex_);
    return held_ != nullptr;
  }

  std::shared_ptr<const IndexVersion> version() const;

  // The right to make the next version, which one thread has at a time. What was applied is seen by
  // nobody until it is published; what is not published when the update ends is undone.
  class Update {
   public:
    // The analysis does not follow a lock that is a member.
    explicit Update(IndexWriter* writer) ABSL_NO_THREAD_SAFETY_ANALYSIS;
    ~Update();
    Update(const Update&) = delete;
    Update& operator=(const Update&) = delete;

    // The version to update, and the state of the database that it is of.
    const IndexVersion& version() const { return *version_; }
    const Anchor& anchor() const {
      writer_->update_mutex_.AssertHeld();
      return writer_->anchor_;
    }

    // Errors as DeltaWriter::Apply's.
    absl::Status Apply(const RowUpdates& updates);
    // Makes what was applied the latest version, which is current to `sequence`. AlreadyExists,
    // naming the key and both rows, and nothing is published, where a unique index would have a key
    // twice: what it has in between does not count, nor rows for which `row_has_key`, unless it is
    // null, returns false. May throw std::bad_alloc, and has not published then.
    absl::Status Publish(SequenceNumber sequence, Anchor anchor,
                         const RowHasKey& row_has_key = nullptr);

   private:
    IndexWriter* const writer_;
    const MutexLock lock_;
    const std::shared_ptr<const IndexVersion> version_;
    bool applied_ = false;  // and not published
  };

  // Has both called by Store: `sync` before anything is stored, to have the log of which it came on
  // the disk, as the index would else be ahead of a database that lost the log's end; and `record`
  // to set the table files of an anchor, which the database had then or has now. To be called
  // before Store.
  void set_database(std::function<absl::Status()> sync,
                    std::function<absl::Status(Anchor*)> record) {
    sync_ = std::move(sync);
    record_ = std::move(record);
  }
  // Whether that was called. Else the log is to be synced before an update is published.
  bool syncs_log() const { return sync_ != nullptr; }
  // Writes what came since the last call, so that the next Open begins with the latest version. In
  // the background of updates. Takes time and bytes for what came, not for what there is; once in
  // thousands of calls MergeDeltaFiles besides, unless somebody calls that often enough. Errors as
  // CatchUp's.
  absl::Status Store();
  // Keeps what came since the base was built small, in the background of updates, queries and
  // stores: makes a few large files of many small ones that Store has written (delta_files.h), if
  // there are too many; and with Access::kExclusive calls Renumber if that pays. Errors as
  // CatchUp's.
  absl::Status Tidy();
  // Gives back the memory of rows and tuples that came and went since the base was built (
  // DeltaWriter::Renumber), in the background of updates, queries and stores; changes the ids of
  // rows that the base lacks. With Access::kExclusive updates do that by themselves as often as the
  // memory would otherwise exceed what is in use: it is then in proportion to the rows that are
  // there, however many came and went.
  absl::Status Renumber();

  // SecondaryIndex's methods of these names.
  absl::Status Compact(const CompactOptions& options);
  bool ShouldCompact() const;

 private:
  // What the files hold.
  struct Stored {
    std::shared_ptr<const Manifest> manifest;
    bool durable = true;  // whether that is certain to survive a loss of power
    SequenceNumber sequence = 0;
    bool in_files = false;  // whether the anchor's table files are complete
    // Of the latest version's base. If it is older than the latest version, perhaps only
    // DeltaWriter::Renumbered::since, without entries.
    std::shared_ptr<const Delta> delta;
  };

  explicit IndexWriter(const OpenOptions& options);

  absl::Status OpenFiles(const std::string& directory)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_mutex_, update_mutex_);
  int threads() const;
  void Publish(std::shared_ptr<const IndexVersion> version) noexcept;
  // The directory, for this process to write to. FailedPrecondition where another has published a
  // version since.
  absl::StatusOr<std::shared_ptr<IndexDirectory>> Directory()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_mutex_);
  // Store, without merging files; sets their number.
  absl::Status StoreLatest(size_t* delta_files);
  absl::Status StoreVersion(const IndexVersion& version, const Anchor& anchor,
                            IndexDirectory* directory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_mutex_);
  absl::Status MergeDeltaFiles() ABSL_EXCLUSIVE_LOCKS_REQUIRED(merge_mutex_);
  absl::Status RenumberLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(merge_mutex_);
  // Whether Renumber pays; `patience`: and so many times as much has come and gone.
  bool RenumberPays(const Delta& delta, uint64_t patience) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(update_mutex_);
  // Renumber at once, while updates wait, if that pays and nobody else is at work.
  // Only tries the locks that come before update_mutex_, which the analysis takes for locking them.
  void RenumberIfPays() ABSL_EXCLUSIVE_LOCKS_REQUIRED(update_mutex_) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Has `writer`, which has what `carried` has, apply what came since, and publishes its version in
  // place of the latest. Returns that.
  absl::StatusOr<std::shared_ptr<const IndexVersion>> TakeIntoUse(
      std::shared_ptr<const Base> base, std::unique_ptr<DeltaWriter> writer,
      std::shared_ptr<const Delta> carried) ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_mutex_);
  // Where access is exclusive: has what failed attempts left in the directory removed.
  void OpenDirectoryAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_mutex_);
  // Has `directory` publish `next`. True where that came into force, which it may have after an
  // error as well: then *status says that it is perhaps not durable.
  bool PublishManifest(Manifest next, IndexDirectory* directory, absl::Status* status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_mutex_);
  // Puts the base that merged_ has become in its place. Returns the last version over the old one.
  absl::StatusOr<std::shared_ptr<const IndexVersion>> TakeMergedBase()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_mutex_);

  const OpenOptions options_;
  const std::shared_ptr<FileSystem> files_;
  bool renumbers_ = false;  // by itself
  std::function<absl::Status()> sync_;
  std::function<absl::Status(Anchor*)> record_;

  Mutex merge_mutex_;  // held by a merge, of the base or of delta files

  mutable Mutex store_mutex_ ABSL_ACQUIRED_AFTER(merge_mutex_);
  // What Open found; perhaps its writer did not live to sync it.
  bool opened_is_durable_ ABSL_GUARDED_BY(store_mutex_) = false;
  Access access_ ABSL_GUARDED_BY(store_mutex_) = Access::kShared;
  // Where access is exclusive.
  std::shared_ptr<IndexDirectory> held_ ABSL_GUARDED_BY(store_mutex_);
  std::weak_ptr<IndexDirectory> directory_ ABSL_GUARDED_BY(store_mutex_);
  Stored stored_ ABSL_GUARDED_BY(store_mutex_);
  // What was merged into the base that is published, until that is taken into use. Its delta is
  // null where there is no such thing.
  IndexVersion merged_ ABSL_GUARDED_BY(store_mutex_);

  Mutex update_mutex_ ABSL_ACQUIRED_AFTER(store_mutex_);
  // Both of the latest version, or of its base.
  std::unique_ptr<DeltaWriter> deltas_ ABSL_GUARDED_BY(update_mutex_);
  Anchor anchor_ ABSL_GUARDED_BY(update_mutex_);
  // What the last Renumber left of rows and tuples that came and went, as the files know them.
  uint64_t dead_left_ ABSL_GUARDED_BY(update_mutex_) = 0;

  mutable Mutex version_mutex_;
  std::shared_ptr<const IndexVersion> version_ ABSL_GUARDED_BY(version_mutex_);
};

}  // namespace cairn
