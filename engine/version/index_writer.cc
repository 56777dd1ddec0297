#include "engine/version/index_writer.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/delta/delta_changes.h"
#include "engine/delta_files/delta_files.h"
#include "engine/delta_files/delta_restore.h"
#include "engine/log/older_logs.h"
#include "engine/merge/base_merge.h"
#include "engine/util/rocksdb_file_system.h"
#include "engine/version/unique_check.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// A merge pays if this share of the base's entries were added or removed, or both. Then a point
// query searches the delta for about this share of its keys, and the delta takes about this share
// of the memory. A merge writes everything once, which is about ten bytes for each byte added.
constexpr double kShareThatPays = 0.1;
// But not for fewer entries, which stay in the cache.
constexpr uint64_t kMinThatPays = 10000;
// The max number of attempts to open an index while versions are published.
constexpr int kMaxTries = 4;
// Deleted new rows and tuples are dropped if there are more of them than used ones, and more than
// this number. So their memory is at most about a megabyte, and each change pays for renumbering
// one row.
constexpr uint64_t kMinDead = 10000;
// Updates may wait for renumbering this many rows and entries, which takes some milliseconds.
// Larger ones are left to Tidy, unless the number of deleted ones is a multiple.
constexpr uint64_t kMaxAtOnce = 20000;
constexpr uint64_t kPatience = 4;

// The number of deleted new rows and tuples, and the remaining rows and entries without them.
uint64_t DeadOf(const Delta& delta) {
  return delta.end_row - delta.base_rows.rows() - delta.live_new_rows + delta.end_tuple -
         delta.tuple_rows;
}
uint64_t InUseOf(const Delta& delta) {
  return delta.live_new_rows + delta.added_entries();
}

// The number of rows that are carried over to another base at a time.
constexpr size_t kRowsAtATime = size_t{1} << 16;
// Updates, and so the queries of a live index, may wait for this many rows when a base replaces
// another one: about a millisecond. If rows arrive faster than they are carried over for this many
// rounds, updates wait for all of them.
constexpr uint64_t kRowsToWaitFor = 1000;
constexpr int kMaxRounds = 20;
// The time that a merge waits for readers of the old base, so that none of them has to free it.
constexpr absl::Duration kWaitForReaders = absl::Milliseconds(500);

// Makes a writer apply changes, some rows at a time.
absl::Status ApplyChanges(const DeltaChanges& changes, PhysicalType kind, DeltaWriter* writer) {
  for (size_t first = 0; first < changes.rows().size(); first += kRowsAtATime) {
    RowUpdates updates(kind);
    const size_t count = std::min(kRowsAtATime, changes.rows().size() - first);
    RETURN_IF_ERROR(changes.Append(first, count, &updates));
    RETURN_IF_ERROR(writer->Apply(updates).status());
  }
  return absl::OkStatus();
}

std::shared_ptr<const IndexVersion> NewVersion(std::shared_ptr<const Base> base,
                                               std::shared_ptr<const Delta> delta,
                                               SequenceNumber sequence) {
  return std::make_shared<const IndexVersion>(
      IndexVersion{std::move(base), std::move(delta), sequence});
}

// Waits briefly until no other thread uses `old`, the last version over a base.
void WaitForReaders(const std::shared_ptr<const IndexVersion>& old) {
  const absl::Time until = absl::Now() + kWaitForReaders;
  while (old != nullptr && (old.use_count() > 1 || old->base.use_count() > 1) &&
         absl::Now() < until) {
    absl::SleepFor(absl::Milliseconds(1));
  }
}

}  // namespace

IndexWriter::IndexWriter(const OpenOptions& options)
    : options_(options), files_(FileSystemOf(options.file_system)) {}

absl::StatusOr<std::unique_ptr<IndexWriter>> IndexWriter::Open(const std::string& directory,
                                                               const OpenOptions& options,
                                                               Access access) {
  for (int tries = 0;; ++tries) {
    std::unique_ptr<IndexWriter> writer(new IndexWriter(options));
    const MutexLock store_lock(&writer->store_mutex_), update_lock(&writer->update_mutex_);
    if (access == Access::kExclusive) {
      writer->renumbers_ = true;
      ASSIGN_OR_RETURN(std::unique_ptr<IndexDirectory> held,
                       IndexDirectory::OpenForWrite(directory, writer->files_.get()));
      writer->access_ = access;
      writer->held_ = std::move(held);
      writer->directory_ = writer->held_;
    }
    const absl::Status status = writer->OpenFiles(directory);
    if (status.ok()) return writer;
    // The next version may have been published between reading the manifest and opening its files.
    const bool is_gone =
        absl::IsNotFound(status) && ReadManifest(directory, writer->files_.get()).ok();
    if (!is_gone || tries == kMaxTries) return status;
  }
}

absl::Status IndexWriter::OpenFiles(const std::string& directory) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Base> base, Base::Open(directory, options_));
  const Manifest& manifest = base->manifest;
  if (!DeltaFilesOf(manifest).empty()) RETURN_IF_ERROR(base->Prove(threads()));
  ASSIGN_OR_RETURN(deltas_,
                   RestoreDelta(directory, manifest, base->run(), base->rows(), options_.verify,
                                threads(), files_.get(), base->columns()));
  absl::StatusOr<Anchor> anchor = Anchor::Parse(manifest.anchor);
  if (!anchor.ok()) {
    return absl::DataLossError(
        absl::StrFormat("index '%s': %s", directory, anchor.status().message()));
  }
  anchor_ = *std::move(anchor);
  if (!manifest.tables.empty()) {
    absl::StatusOr<TableFiles> tables = TableFiles::Parse(manifest.tables);
    if (!tables.ok()) {
      return absl::DataLossError(
          absl::StrFormat("index '%s': %s", directory, tables.status().message()));
    }
    anchor_.tables = std::make_shared<const TableFiles>(*std::move(tables));
  }
  absl::StatusOr<std::vector<LogPosition>> logs = ParseOlderLogs(manifest.logs);
  if (!logs.ok()) {
    return absl::DataLossError(
        absl::StrFormat("index '%s': %s", directory, logs.status().message()));
  }
  anchor_.older_logs = *std::move(logs);
  const SequenceNumber sequence = manifest.sequence;
  stored_ = {std::make_shared<const Manifest>(manifest), true, sequence, anchor_.HasAllInFiles(),
             deltas_->delta()};
  Publish(NewVersion(std::move(base), deltas_->delta(), sequence));
  return absl::OkStatus();
}

int IndexWriter::threads() const {
  return Topology::Get().Threads(options_.threads);
}

std::shared_ptr<const IndexVersion> IndexWriter::version() const {
  const MutexLock lock(&version_mutex_);
  return version_;
}

void IndexWriter::Publish(std::shared_ptr<const IndexVersion> version) noexcept {
  const MutexLock lock(&version_mutex_);
  version_.swap(version);  // the previous one is freed without the lock
}

IndexWriter::Update::Update(IndexWriter* writer)
    : writer_(writer), lock_(&writer->update_mutex_), version_(writer->version()) {}

IndexWriter::Update::~Update() {
  writer_->update_mutex_.AssertHeld();
  if (applied_) writer_->deltas_->RollBack(version_->delta);
}

absl::Status IndexWriter::Update::Apply(const RowUpdates& updates) {
  writer_->update_mutex_.AssertHeld();
  // A delta relies on the contents of the base.
  RETURN_IF_ERROR(version_->base->Prove(writer_->threads()));
  applied_ = true;
  return writer_->deltas_->Apply(updates).status();
}

absl::Status IndexWriter::Update::Publish(SequenceNumber sequence, Anchor anchor,
                                          const RowHasKey& row_has_key) {
  writer_->update_mutex_.AssertHeld();
  if (applied_ && version_->spec().unique) {
    RETURN_IF_ERROR(CheckUniqueSince(*version_, writer_->deltas_->delta(), row_has_key));
  }
  writer_->Publish(NewVersion(version_->base, writer_->deltas_->delta(), sequence));
  writer_->anchor_ = std::move(anchor);
  applied_ = false;
  writer_->RenumberIfPays();
  return absl::OkStatus();
}

absl::Status IndexWriter::PrepareUpdates() {
  Update update(this);
  RETURN_IF_ERROR(update.Apply(RowUpdates(update.version().base->run().kind())));
  return update.Publish(update.version().sequence, update.anchor());
}

absl::StatusOr<std::shared_ptr<IndexDirectory>> IndexWriter::Directory() {
  const std::string path = version()->base->directory;
  std::shared_ptr<IndexDirectory> directory = directory_.lock();
  if (directory == nullptr) {
    ASSIGN_OR_RETURN(directory, IndexDirectory::OpenForWrite(path, files_.get()));
    directory_ = directory;
    if (access_ == Access::kExclusive) held_ = directory;
  }
  if (directory->manifest() == nullptr || *directory->manifest() != *stored_.manifest) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "index '%s': another handle or process has published a version: open it again", path));
  }
  return directory;
}

void IndexWriter::LetGoOfDirectory() {
  const MutexLock lock(&store_mutex_);
  access_ = Access::kShared;
  held_ = nullptr;
}

void IndexWriter::OpenDirectoryAgain() {
  if (access_ != Access::kExclusive) return;
  held_ = nullptr;
  Guarded("opening its directory again", [&] {
    store_mutex_.AssertHeld();
    return Directory().status();
  }).IgnoreError();  // or the next time
}

absl::Status IndexWriter::Store() {
  size_t delta_files = 0;
  RETURN_IF_ERROR(StoreLatest(&delta_files));
  if (delta_files < kMaxDeltaFiles) return absl::OkStatus();
  if (!merge_mutex_.TryLock()) return absl::OkStatus();  // a running merge reduces their number
  const MutexLock lock(&merge_mutex_, std::adopt_lock);
  return MergeDeltaFiles();
}

absl::Status IndexWriter::StoreLatest(size_t* delta_files) {
  const MutexLock lock(&store_mutex_);
  std::shared_ptr<const IndexVersion> version;
  Anchor anchor;
  {
    const MutexLock update_lock(&update_mutex_);
    version = this->version();
    anchor = anchor_;
  }
  if (!opened_is_durable_) {
    RETURN_IF_ERROR(files_->SyncDirectory(version->base->directory));
    opened_is_durable_ = true;
  }
  if (cover_ != nullptr) RETURN_IF_ERROR(cover_(version->sequence, &anchor));
  if (record_ != nullptr) RETURN_IF_ERROR(record_(&anchor));
  // Proofs by files are also worth storing: the log may expire while nothing is written.
  const bool proves_more =
      anchor.HasAllInFiles() &&
      (!stored_.in_files || stored_.manifest->tables != anchor.tables->ToString());
  // Rows may change and be renumbered at one sequence number, for example rows that
  // DeleteFilesInRange removed.
  const bool has_all = version->delta->place->IsUpTo(*stored_.delta->place);
  if (version->sequence == stored_.sequence && stored_.durable && has_all && !proves_more) {
    return absl::OkStatus();
  }
  if (sync_ != nullptr) {
    RETURN_IF_ERROR(sync_());
  }
  ASSIGN_OR_RETURN(std::shared_ptr<IndexDirectory> directory, Directory());
  absl::Status status = StoreVersion(*version, anchor, directory.get());
  *delta_files = DeltaFilesOf(*directory->manifest()).size();
  if (!status.ok()) {
    directory = nullptr;
    OpenDirectoryAgain();
  }
  return status;
}

absl::Status IndexWriter::StoreVersion(const IndexVersion& version, const Anchor& anchor,
                                       IndexDirectory* directory) {
  ASSIGN_OR_RETURN(const DeltaChanges changes, DeltaChanges::Since(*stored_.delta, version.delta));
  Manifest next = *directory->manifest();
  if (!changes.rows().empty()) {
    RowUpdates updates(version.base->run().kind());
    RETURN_IF_ERROR(changes.Append(0, changes.rows().size(), &updates));
    RETURN_IF_ERROR(
        AddDelta(std::move(updates), stored_.sequence, version.sequence, directory, &next));
  }
  next.sequence = version.sequence;
  next.anchor = anchor.ToString();
  next.tables = anchor.tables == nullptr ? std::string() : anchor.tables->ToString();
  next.logs = FormatOlderLogs(anchor.older_logs);
  absl::Status status;
  if (PublishManifest(std::move(next), directory, &status)) {
    stored_.sequence = version.sequence;
    stored_.in_files = anchor.HasAllInFiles();
    stored_.delta = version.delta;
    // The files have them as deleted or not at all, so the next Renumber drops them.
    const MutexLock update_lock(&update_mutex_);
    dead_left_ = 0;
  }
  return status;
}

bool IndexWriter::PublishManifest(Manifest next, IndexDirectory* directory, absl::Status* status) {
  *status = Guarded("publishing a version", [&] { return directory->Publish(std::move(next)); });
  if (*directory->manifest() == *stored_.manifest) return false;
  stored_.manifest = directory->manifest();
  stored_.durable = status->ok();
  return true;
}

absl::Status IndexWriter::Tidy() {
  const MutexLock merge_lock(&merge_mutex_);
  bool pays = false;
  if (renumbers_) {
    const MutexLock update_lock(&update_mutex_);
    pays = RenumberPays(*version()->delta, 1);
  }
  if (pays) RETURN_IF_ERROR(RenumberLocked());
  return MergeDeltaFiles();
}

bool IndexWriter::RenumberPays(const Delta& delta, uint64_t patience) const {
  return DeadOf(delta) >= patience * (kMinDead + InUseOf(delta) + 2 * dead_left_);
}

void IndexWriter::RenumberIfPays() {
  if (!renumbers_) return;
  const std::shared_ptr<const IndexVersion> latest = version();
  const uint64_t patience = InUseOf(*latest->delta) <= kMaxAtOnce ? 1 : kPatience;
  if (!RenumberPays(*latest->delta, patience)) return;
  // Other threads lock these mutexes first and may wait for updates; then try again later.
  if (!merge_mutex_.TryLock()) return;
  const MutexLock merge_lock(&merge_mutex_, std::adopt_lock);
  if (!store_mutex_.TryLock()) return;
  const MutexLock store_lock(&store_mutex_, std::adopt_lock);
  if (merged_.delta != nullptr) return;
  Guarded("numbering rows again", [&]() -> absl::Status {
    update_mutex_.AssertHeld();
    store_mutex_.AssertHeld();
    ASSIGN_OR_RETURN(DeltaWriter::Renumbered next, deltas_->Renumber(*stored_.delta, *latest->delta,
                                                                     DeltaWriter::Sharing::kPages));
    auto version = NewVersion(latest->base, next.writer->delta(), latest->sequence);
    dead_left_ = DeadOf(*version->delta);
    deltas_ = std::move(next.writer);
    stored_.delta = std::move(next.since);
    Publish(std::move(version));
    return absl::OkStatus();
  }).IgnoreError();  // the next update tries again
}

absl::Status IndexWriter::Renumber() {
  const MutexLock merge_lock(&merge_mutex_);
  return RenumberLocked();
}

absl::Status IndexWriter::RenumberLocked() {
  const MutexLock store_lock(&store_mutex_);
  if (merged_.delta != nullptr) return absl::OkStatus();  // rows are renumbered with that base
  return Guarded("numbering rows again", [&]() -> absl::Status {
    store_mutex_.AssertHeld();
    std::shared_ptr<const IndexVersion> latest;
    DeltaWriter* writer = nullptr;
    {
      const MutexLock update_lock(&update_mutex_);
      latest = version();
      writer = deltas_.get();  // no other thread replaces it while store_mutex_ is held
    }
    ASSIGN_OR_RETURN(DeltaWriter::Renumbered next,
                     writer->Renumber(*stored_.delta, *latest->delta, DeltaWriter::Sharing::kNone));
    RETURN_IF_ERROR(TakeIntoUse(latest->base, std::move(next.writer), latest->delta).status());
    stored_.delta = std::move(next.since);
    return absl::OkStatus();
  });
}

absl::Status IndexWriter::MergeDeltaFiles() {
  std::shared_ptr<IndexDirectory> directory;
  bool failed = true;
  const absl::Cleanup close = [&] {
    const MutexLock lock(&store_mutex_);
    directory = nullptr;
    if (failed) OpenDirectoryAgain();
  };
  Manifest at;
  const std::shared_ptr<const Base> base = version()->base;  // stays alive meanwhile
  bool is_of_base = false;
  {
    const MutexLock lock(&store_mutex_);
    ASSIGN_OR_RETURN(directory, Directory());
    at = *directory->manifest();
    is_of_base = merged_.delta == nullptr;
  }
  ASSIGN_OR_RETURN(
      const std::optional<MergedDeltas> merged,
      MergeDeltas(at, base->run().kind(), directory.get(), is_of_base ? &base->rows() : nullptr));
  failed = false;
  if (!merged.has_value()) return absl::OkStatus();
  const MutexLock lock(&store_mutex_);
  Manifest next = *directory->manifest();
  absl::Status status;
  if (merged->Replace(&next)) {
    PublishManifest(std::move(next), directory.get(), &status);
  } else {  // a store has locked one of them; try again later
    status = files_->Remove(directory->PathOf(merged->file.name));
  }
  failed = !status.ok();
  return status;
}

absl::Status IndexWriter::Compact(const CompactOptions& options) {
  const MutexLock merge_lock(&merge_mutex_);
  // Changes are stored before they are merged, so that the files show which of them the merge
  // replaces.
  size_t delta_files = 0;
  RETURN_IF_ERROR(StoreLatest(&delta_files));
  // Freed at the very end, without locks: merged data may be gigabytes.
  absl::StatusOr<std::shared_ptr<const IndexVersion>> old = nullptr;
  std::shared_ptr<IndexDirectory> directory;
  bool failed = false;
  // The lock is held while the directory is closed, so that no other thread opens it.
  const absl::Cleanup close = [&] {
    const MutexLock lock(&store_mutex_);
    directory = nullptr;
    if (failed) OpenDirectoryAgain();
  };
  IndexVersion merged;
  std::vector<ManifestFile> merged_files;
  {
    const MutexLock lock(&store_mutex_);
    ASSIGN_OR_RETURN(directory, Directory());
    if (merged_.delta != nullptr) {
      old = TakeMergedBase();
      if (!old.ok()) return old.status();
    }
    merged = {version()->base, stored_.delta, stored_.sequence};
    merged_files = DeltaFilesOf(*directory->manifest());
  }
  WaitForReaders(*std::exchange(old, nullptr));
  if (merged_files.empty()) {  // all changes have cancelled out
    return DeadOf(*merged.delta) == 0 ? absl::OkStatus() : RenumberLocked();
  }
  const absl::StatusOr<WrittenBase> base =
      MergeBase(*merged.delta, directory.get(), options, merged.base->run_file.has_leaves());
  failed = true;
  if (!base.ok()) return base.status();
  absl::Status status;
  {
    const MutexLock lock(&store_mutex_);
    Manifest next = AfterMerge(*directory->manifest(), *base, merged_files);
    if (!PublishManifest(std::move(next), directory.get(), &status)) return status;
    merged_ = std::exchange(merged, {});
    old = TakeMergedBase();
  }
  status.Update(old.status());
  failed = !status.ok();
  if (old.ok()) WaitForReaders(*old);
  return status;
}

absl::StatusOr<std::shared_ptr<const IndexVersion>> IndexWriter::TakeMergedBase() {
  OpenOptions open = options_;
  open.verify = VerifyLevel::kMetadata;  // just written
  ASSIGN_OR_RETURN(std::shared_ptr<const Base> opened, Base::Open(merged_.base->directory, open));
  const std::shared_ptr<const Base> base = std::move(opened);
  const PhysicalType kind = base->run().kind();
  ASSIGN_OR_RETURN(std::unique_ptr<DeltaWriter> writer,
                   DeltaWriter::Create(base->run(), base->rows(), threads(), base->columns()));
  RETURN_IF_ERROR(base->Prove(threads()));
  // No query may wait for structures that the old base had; without memory, one may have to.
  const absl::Status made = base->aggregates->MakeAs(*merged_.base->aggregates, threads());
  if (!made.ok() && !absl::IsResourceExhausted(made)) return made;
  // Work that is linear in the base is done now, not at the first update.
  RETURN_IF_ERROR(writer->Apply(RowUpdates(kind)).status());

  // First changes that were stored since, then those that were published since, then those during
  // that, and so on, until there are so few that updates may wait for them.
  ASSIGN_OR_RETURN(const DeltaChanges changes, DeltaChanges::Since(*merged_.delta, stored_.delta));
  RETURN_IF_ERROR(ApplyChanges(changes, kind, writer.get()));
  std::shared_ptr<const Delta> stored = writer->delta();
  ASSIGN_OR_RETURN(std::shared_ptr<const IndexVersion> latest,
                   TakeIntoUse(base, std::move(writer), stored_.delta));
  stored_.delta = std::move(stored);
  merged_ = {};
  return latest;
}

absl::StatusOr<std::shared_ptr<const IndexVersion>> IndexWriter::TakeIntoUse(
    std::shared_ptr<const Base> base, std::unique_ptr<DeltaWriter> writer,
    std::shared_ptr<const Delta> carried) {
  const PhysicalType kind = base->run().kind();
  const auto carry_to = [&](const std::shared_ptr<const Delta>& delta) -> absl::Status {
    ASSIGN_OR_RETURN(const DeltaChanges changes, DeltaChanges::Since(*carried, delta));
    carried = delta;
    return ApplyChanges(changes, kind, writer.get());
  };
  std::shared_ptr<const IndexVersion> latest = version();
  for (int round = 0;; ++round) {
    RETURN_IF_ERROR(carry_to(latest->delta));
    const MutexLock lock(&update_mutex_);
    latest = version();
    ASSIGN_OR_RETURN(const uint64_t left, DeltaChanges::MostRowsSince(*carried, *latest->delta));
    if (left > kRowsToWaitFor && round < kMaxRounds) continue;
    RETURN_IF_ERROR(carry_to(latest->delta));
    auto next = NewVersion(std::move(base), writer->delta(), latest->sequence);
    dead_left_ = DeadOf(*next->delta);
    deltas_.swap(writer);  // the old one is freed without the lock
    Publish(std::move(next));
    return latest;
  }
}

bool IndexWriter::ShouldCompact() const {
  const std::shared_ptr<const IndexVersion> at = version();
  const DeltaStats stats = at->delta->Stats();
  // Rows that Renumber drops need not be merged.
  const uint64_t dead = renumbers_ ? 0 : DeadOf(*at->delta);
  const uint64_t changed = stats.added_entries + stats.removed_entries + dead;
  if (changed < kMinThatPays) return false;
  if (static_cast<double>(changed) >=
      kShareThatPays * static_cast<double>(at->base->run().size())) {
    return true;
  }
  // Before row ids or numbers of tuples are exhausted.
  const uint64_t ids = kMaxEntries - at->base->rows().rows();
  return stats.new_rows > ids / 2 || at->delta->end_tuple > DeltaTuples::kMax / 2;
}

}  // namespace cairn
