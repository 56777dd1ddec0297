// How indexes join a LogFollower.

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/live/log_follower.h"
#include "engine/log/anchor.h"
#include "engine/log/ingested_files.h"
#include "engine/log/row_reading.h"
#include "engine/log/table_files.h"
#include "engine/log/update_log.h"
#include "engine/serve/catch_up.h"
#include "engine/util/status.h"
#include "index/keys/escaped_text.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

absl::Status CheckIsOf(const Manifest& manifest, const FollowedIndex& index, rocksdb::DB* db) {
  if (manifest.column_family != index.column_family()->GetName()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("index %s: expected column family %s, got %s", Quoted(index.name()),
                        Quoted(manifest.column_family), Quoted(index.column_family()->GetName())));
  }
  std::string id;
  RETURN_IF_ERROR(FromRocksDb(db->GetDbIdentity(id),
                              absl::StrFormat("cannot identify database '%s'", db->GetName())));
  if (manifest.database_id.empty() || id.empty() || manifest.database_id == id) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrFormat("index %s was built from the database with the id %s, but '%s' has the id %s",
                      Quoted(index.name()), manifest.database_id, db->GetName(), id));
}

}  // namespace

std::vector<absl::Status> LogFollower::Join(
    absl::Span<const std::shared_ptr<FollowedIndex>> indexes, Ingested ingested) {
  std::vector<absl::Status> status(indexes.size());
  std::vector<KnownFiles> known(indexes.size());
  std::vector<Member> admitted;
  for (size_t i = 0; i < indexes.size(); ++i) {
    absl::StatusOr<Member> member =
        Guarded("joining those that follow the log", [&] { return Admit(indexes[i]); });
    if (!member.ok()) {
      status[i] = member.status();
      continue;
    }
    known[i] = member->known;
    member->joining = &status[i];
    admitted.push_back(*std::move(member));
  }
  if (admitted.empty()) return status;
  const std::shared_ptr<rocksdb::ManagedSnapshot> snapshot = TakeIn(&admitted);
  if (snapshot == nullptr || ingested == Ingested::kUnchecked) return status;
  CheckIngested(indexes, known, snapshot->snapshot()->GetSequenceNumber(), absl::MakeSpan(status));
  return status;
}

absl::StatusOr<LogFollower::Member> LogFollower::Admit(
    const std::shared_ptr<FollowedIndex>& index) {
  rocksdb::ColumnFamilyHandle* const column_family = index->column_family();
  const std::shared_ptr<IndexWriter> writer = index->writer();
  Member member;
  member.index = index;
  ASSIGN_OR_RETURN(ChangeExtractor extractor, ChangeExtractor::Create(index->spec()));
  member.extractor = std::make_unique<ChangeExtractor>(std::move(extractor));
  member.updates = std::make_unique<RowUpdates>(index->codec().kind());

  RowsToReadAgain again;
  do {
    // Rows whose changes are not in the log are read again first. No other index waits for that.
    if (!again.empty()) RETURN_IF_ERROR(CatchUpAlone(*index));
    IndexWriter::Update update(writer.get());
    const Manifest& manifest = update.version().base->manifest;
    RETURN_IF_ERROR(CheckIsOf(manifest, *index, db_));
    RETURN_IF_ERROR(CheckRowReading(manifest.reading, index->spec(), db_, column_family));
    Anchor anchor = update.anchor();
    member.from = update.version().sequence;
    member.position = anchor.log;
    member.known = {anchor.ingested_file, anchor.tables};
    bool proven = true;
    RETURN_IF_ERROR(CheckContinues(member.from, db_, column_family, live_.files.get(), &anchor,
                                   &proven, &again));
    if (!again.empty()) continue;
    // Check here that the log has the missing changes: here an error affects no other index.
    // Numbers that were used twice are not detected anywhere else.
    const SequenceNumber latest = db_->GetLatestSequenceNumber();
    unlogged().AwaitAll();
    const SequenceNumber from = unlogged().PassAll(member.from, latest);
    RETURN_IF_ERROR(UpdateLog::Open(db_, absl::MakeConstSpan(&column_family, 1), from, latest,
                                    member.position, live_)
                        .status());
    RETURN_IF_ERROR(TableFilesRecorder(db_, column_family).Record(&anchor.tables));
    RETURN_IF_ERROR(update.Publish(member.from, std::move(anchor)));
  } while (!again.empty());
  return member;
}

absl::Status LogFollower::CatchUpAlone(const FollowedIndex& index) const {
  // The layers above the root do not change values; otherwise there would be no index.
  ASSIGN_OR_RETURN(const std::unique_ptr<SnapshotSource> source,
                   SnapshotSource::FromDb(db_->GetRootDB(), index.column_family()));
  // Durable, because the files of a later session may no longer show that rows were read again.
  CatchUpOptions options;
  options.durable = true;
  options.cancelled = &index.cancelled();
  return CatchUp(*source, options, index.writer().get(), live_).status();
}

std::shared_ptr<rocksdb::ManagedSnapshot> LogFollower::TakeIn(std::vector<Member>* admitted) {
  const MutexLock lock(&mutex_);
  std::shared_ptr<rocksdb::ManagedSnapshot> snapshot;
  const absl::Status ready = Guarded("joining those that follow the log", [&]() -> absl::Status {
    mutex_.AssertHeld();
    if (closed_) return absl::CancelledError("the database has been closed");
    RefuseMembers(admitted);
    RETURN_IF_ERROR(LoseThoseOfGoneFamilies(admitted));
    members_.reserve(members_.size() + admitted->size());
    snapshot = std::make_shared<rocksdb::ManagedSnapshot>(db_);
    if (snapshot->snapshot() != nullptr) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrFormat(
        "database '%s' does not support snapshots (inplace_update_support)", db_->GetName()));
  });
  if (!ready.ok()) {
    for (const Member& member : *admitted) *member.joining = ready;
    return nullptr;
  }
  EndTail();  // before indexes with lower states join
  for (Member& member : *admitted) members_.push_back(std::move(member));
  // Sorted by name, so that updates of several begin in one order, regardless of the order of
  // joining.
  std::sort(members_.begin(), members_.end(),
            [](const Member& a, const Member& b) { return a.index->name() < b.index->name(); });
  RestartTail();
  FollowTo(snapshot->snapshot()->GetSequenceNumber(), snapshot);
  for (Member& member : members_) member.joining = nullptr;
  return snapshot;
}

void LogFollower::RefuseMembers(std::vector<Member>* admitted) const {
  std::erase_if(*admitted, [&](const Member& member) {
    mutex_.AssertHeld();
    if (std::none_of(members_.begin(), members_.end(),
                     [&](const Member& m) { return m.index == member.index; })) {
      return false;
    }
    *member.joining =
        absl::InternalError(absl::StrFormat("index %s joined twice", Quoted(member.index->name())));
    return true;
  });
}

void LogFollower::CheckIngested(absl::Span<const std::shared_ptr<FollowedIndex>> indexes,
                                absl::Span<const KnownFiles> known, SequenceNumber until,
                                absl::Span<absl::Status> status) {
  // Indexes that know the same files share a result.
  struct Checked {
    uint32_t column_family;
    const KnownFiles* known;
    absl::StatusOr<uint64_t> newest;
  };
  const auto same = [](const KnownFiles& a, const KnownFiles& b) {
    if (a.tables == nullptr || b.tables == nullptr) {
      return a.tables == b.tables && a.ingested_file == b.ingested_file;
    }
    return a.tables == b.tables || *a.tables == *b.tables;
  };
  std::vector<Checked> checked;
  for (size_t i = 0; i < indexes.size(); ++i) {
    if (!status[i].ok()) continue;
    rocksdb::ColumnFamilyHandle* const column_family = indexes[i]->column_family();
    auto found = std::find_if(checked.begin(), checked.end(), [&](const Checked& c) {
      return c.column_family == column_family->GetID() && same(*c.known, known[i]);
    });
    if (found == checked.end()) {
      checked.push_back(
          {column_family->GetID(), &known[i], Guarded("looking for ingested files", [&] {
             return NewestIngestedFile(db_, column_family, until, known[i].ingested_file,
                                       known[i].tables.get());
           })});
      found = std::prev(checked.end());
    }
    if (!found->newest.ok()) {
      status[i] = found->newest.status();
    } else if (*found->newest != 0) {
      status[i] = absl::FailedPreconditionError(absl::StrFormat(
          "index %s: file %06d.sst was ingested into column family %s after the state that the "
          "index has, which the log does not record; rebuild the index",
          Quoted(indexes[i]->name()), *found->newest, Quoted(column_family->GetName())));
    }
    if (!status[i].ok()) Leave(*indexes[i]);
  }
}

}  // namespace cairn
