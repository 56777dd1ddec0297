#include "engine/log/update_log.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/log/table_files.h"
#include "engine/source/db_source.h"
#include "engine/util/status.h"
#include "index/keys/escaped_text.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Checks whether a database's log can be followed at all.
absl::Status CheckDatabase(rocksdb::DB* db, const rocksdb::DBOptions& options) {
  if (options.unordered_write) {
    return absl::FailedPreconditionError(
        absl::StrFormat("database '%s' is open with unordered_write: its snapshots change, so an "
                        "index cannot catch up with it",
                        db->GetName()));
  }
  // RocksDB rejects this call for databases that number batches. Otherwise a sequence number that
  // is out of reach has no effect.
  std::unique_ptr<rocksdb::TransactionLogIterator> none;
  if (db->GetUpdatesSince(UINT64_MAX, &none).IsNotSupported()) {
    return absl::UnimplementedError(absl::StrFormat(
        "database '%s' writes transactions before they commit (WritePrepared or WriteUnprepared); "
        "its log cannot be followed",
        db->GetName()));
  }
  return absl::OkStatus();
}

// Returns the number of sequence numbers that a batch took. Each transaction that it commits counts
// as one.
absl::StatusOr<uint64_t> NumbersOf(std::string_view record) {
  const auto any = [](std::string_view) {
    PreparedTransaction transaction;
    transaction.count = 1;
    return transaction;
  };
  WriteBatchReader reader({}, any);
  return reader.Read(rocksdb::WriteBatch{std::string(record)}, {});
}

// Returns whether a live table file's smallest or largest sequence number is in [first, end).
bool AnyFileHas(rocksdb::DB* db, SequenceNumber first, SequenceNumber end) {
  const std::vector<rocksdb::LiveFileMetaData> files = LiveFiles(db);
  const auto has = [&](SequenceNumber number) { return first <= number && number < end; };
  return std::any_of(files.begin(), files.end(), [&](const rocksdb::LiveFileMetaData& file) {
    return has(file.smallest_seqno) || has(file.largest_seqno);
  });
}

}  // namespace

LiveLog LiveLog::Of(rocksdb::DB* db,
                    absl::Span<rocksdb::ColumnFamilyHandle* const> column_families) {
  LiveLog live;
  live.files = TableFilesNow(db, column_families);
  std::unique_ptr<rocksdb::LogFile> current;
  // Get the file first: later writes are in this file or in a newer one.
  if (!db->GetCurrentWalFile(&current).ok()) return live;
  live.log_number = current->LogNumber();
  live.sequence = db->GetLatestSequenceNumber();
  return live;
}

absl::StatusOr<bool> LiveLog::HasAllNumbers(rocksdb::DB* db) const {
  ASSIGN_OR_RETURN(const std::vector<WalFile> files, ListWalFiles(db));
  for (size_t i = files.size(); i-- > 0;) {
    if (files[i].number >= log_number) continue;
    const absl::StatusOr<std::unique_ptr<WalReader>> reader = OpenWalFile(db, files[i]);
    if (absl::IsNotFound(reader.status())) continue;
    RETURN_IF_ERROR(reader.status());
    bool has_records = false;
    while ((*reader)->Next()) {
      has_records = true;
      if ((*reader)->sequence() > sequence) return false;
    }
    if (!absl::IsDataLoss((*reader)->status())) RETURN_IF_ERROR((*reader)->status());
    if (has_records) return true;
  }
  return true;
}

absl::StatusOr<std::unique_ptr<UpdateLog>> UpdateLog::Open(
    rocksdb::DB* db, absl::Span<rocksdb::ColumnFamilyHandle* const> column_families,
    SequenceNumber after, SequenceNumber until, LogPosition position, LiveLog live,
    FlushedRows* flushed) try {
  const std::string where = absl::StrFormat("database '%s'", db->GetName());
  std::vector<FollowedFamily> followed;
  for (rocksdb::ColumnFamilyHandle* family : column_families) {
    ASSIGN_OR_RETURN(const KeyOrder order,
                     KeyOrderOf(family->GetComparator(), family->GetName(), where));
    followed.push_back({family->GetID(), order});
  }
  if (until < after) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s is at sequence number %d, but the index is at %d: the database was "
                        "restored to an older state, or is another one; rebuild the index",
                        where, until, after));
  }
  RETURN_IF_ERROR(CheckDatabase(db, db->GetDBOptions()));
  std::unique_ptr<UpdateLog> log(
      new UpdateLog(db, std::move(followed), after, until, std::move(live), flushed));
  log->position_ = position;
  // Even if nothing seems to be new, numbers may have been used twice.
  if (!log->done() || position.log_number != 0) RETURN_IF_ERROR(log->OpenFiles(position));
  return log;
} catch (...) {
  return StatusOfException("opening a database's log");
}

UpdateLog::UpdateLog(rocksdb::DB* db, std::vector<FollowedFamily> column_families,
                     SequenceNumber after, SequenceNumber until, LiveLog live, FlushedRows* flushed)
    : db_(db),
      column_families_(std::move(column_families)),
      after_(after),
      until_(until),
      live_(std::move(live)),
      flushed_(flushed),
      batches_(
          column_families_, [this](std::string_view name) { return FindPrepared(name); },
          OrdersOfFamilies(db)),
      next_(after + 1) {}

absl::Status UpdateLog::OpenFiles(const LogPosition& position) {
  if (db_->GetDBOptions().manual_wal_flush) {
    RETURN_IF_ERROR(
        FromRocksDb(db_->FlushWAL(/*sync=*/false),
                    absl::StrFormat("cannot write out the log of database '%s'", db_->GetName())));
  }
  ASSIGN_OR_RETURN(files_, ListWalFiles(db_));
  ASSIGN_OR_RETURN(const size_t first, FindWalFile(db_, next_, &files_));
  if (absl::Status s = CheckNumbers(position); !s.ok() || done()) return s;
  if (first == files_.size()) {
    const auto begin = std::find_if(files_.begin(), files_.end(),
                                    [](const WalFile& file) { return file.start > 0; });
    return Missing(begin == files_.end() ? std::string("which is empty")
                                         : absl::StrFormat("which begins at %d", begin->start));
  }
  start_file_ = file_ = first;
  ASSIGN_OR_RETURN(const bool starts, StartsAt(position));
  if (starts) {
    start_ = position.place;
  } else if (files_[file_].start != next_) {
    RETURN_IF_ERROR(FindStart());
  }
  readers_.resize(files_.size());
  for (size_t i = file_; i < files_.size(); ++i) {
    ASSIGN_OR_RETURN(readers_[i], OpenFile(i, i == file_ ? start_ : WalPlace()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<WalReader>> UpdateLog::OpenFile(size_t file, WalPlace from) const {
  absl::StatusOr<std::unique_ptr<WalReader>> reader = OpenWalFile(db_, files_[file], from);
  if (!absl::IsNotFound(reader.status())) return reader;
  return Missing(absl::StrFormat("whose file '%s' has just been removed", files_[file].path));
}

absl::Status UpdateLog::CheckNumbers(const LogPosition& position) const {
  if (position.log_number == 0) return absl::OkStatus();
  for (const WalFile& file : files_) {
    if (file.number <= position.log_number || file.start == 0 || file.start > after_) continue;
    return absl::FailedPreconditionError(absl::StrFormat(
        "'%s' begins with sequence number %d, though up to %d has been read from older files: "
        "database '%s' has lost changes and used their numbers again; rebuild the index",
        file.path, file.start, after_, db_->GetName()));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> UpdateLog::StartsAt(const LogPosition& position) const {
  if (files_[file_].number != position.log_number || position.place.offset == 0) return false;
  ASSIGN_OR_RETURN(const std::unique_ptr<WalReader> reader, OpenFile(file_, position.place));
  if (!reader->Next() || reader->sequence() > next_) return false;
  if (reader->sequence() == next_) return true;
  ASSIGN_OR_RETURN(const uint64_t count, NumbersOf(reader->record()));
  const bool new_numbers = count == 0 || reader->sequence() + count > next_;
  if (!new_numbers) return GivenTwice(reader->path(), reader->sequence());
  return false;
}

absl::Status UpdateLog::FindStart() {
  ASSIGN_OR_RETURN(const std::unique_ptr<WalReader> reader, OpenFile(file_, {}));
  // If no record starts at next_, the last one before it may contain that number, or no record
  // does. Reading from there decides.
  SequenceNumber start = files_[file_].start;
  while (reader->Next()) {
    bytes_read_ += reader->record().size();
    if (reader->sequence() > next_) break;
    if (reader->sequence() > start) {
      start = reader->sequence();
      start_ = reader->start();
    }
    if (start == next_) break;
  }
  next_ = start;
  return absl::OkStatus();
}

absl::Status UpdateLog::Read(size_t max_bytes, absl::Span<RowChanges> changes,
                             const rocksdb::Snapshot* snapshot) try {
  for (size_t bytes = 0; !done() && bytes < std::max(max_bytes, size_t{1});) {
    ASSIGN_OR_RETURN(auto* const reader, Next());
    RETURN_IF_ERROR(ReadRecord(reader, changes));
    bytes = 0;
    for (const RowChanges& c : changes) bytes += c.bytes();
  }
  for (size_t i = 0; i < changes.size() && flushed_ != nullptr && done(); ++i) {
    RETURN_IF_ERROR(flushed_->LookUpRanges(i, snapshot, &changes[i]));
  }
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("reading a database's log");
}

absl::StatusOr<WalReader*> UpdateLog::Next() {
  for (; file_ < files_.size(); ++file_) {
    WalReader* const reader = readers_[file_].get();
    if (reader->Next()) {
      bytes_read_ += reader->record().size();
      return reader;
    }
    // RocksDB also ignores damage at the end of a file, and continues in a new one.
    if (!reader->status().ok() && !absl::IsDataLoss(reader->status())) return reader->status();
    if (!reader->status().ok()) damage_ = reader->status();
    readers_[file_].reset();
  }
  return Missing("which ends there");
}

absl::Status UpdateLog::ReadRecord(WalReader* reader, absl::Span<RowChanges> changes) {
  const WalFile& file = files_[file_];
  const SequenceNumber first = reader->sequence();
  const auto batch = std::make_shared<const rocksdb::WriteBatch>(reader->TakeRecord());
  if (first >= file.limit) return ReadSuperseded(*batch, changes);
  if (first != next_) {
    return Missing(absl::StrFormat("where %d follows in file '%s'", first, reader->path()));
  }
  damage_ = absl::OkStatus();
  RETURN_IF_ERROR(CheckKeys(*reader));

  const bool is_older = flushed_ != nullptr && file.number < live_.log_number;
  sizes_before_.clear();
  for (const RowChanges& c : changes) sizes_before_.push_back(c.size());
  const absl::StatusOr<uint64_t> count = batches_.Read(batch, first, after_, until_, changes);
  if (!count.ok()) {
    return absl::Status(
        count.status().code(),
        absl::StrFormat("%s (log file '%s', record at offset %d)", count.status().message(),
                        reader->path(), reader->start().offset));
  }
  for (size_t i = 0; i < changes.size(); ++i) {
    changes_ += changes[i].size() - sizes_before_[i];
    if (!is_older) continue;
    flushed_->Check({file.number, first, first + *count - 1}, i, sizes_before_[i], &changes[i]);
  }
  next_ += *count;
  if (const uint64_t empty = batches_.empty_ranges(); empty > 0) {
    ASSIGN_OR_RETURN(next_, EndOfEmptyRanges(first, next_ - empty, *reader));
  }
  if (next_ <= until_ + 1) position_ = {file.number, reader->end()};
  return done() ? CheckFollowing(*reader) : absl::OkStatus();
}

absl::StatusOr<SequenceNumber> UpdateLog::EndOfEmptyRanges(SequenceNumber first,
                                                           SequenceNumber least,
                                                           const WalReader& reader) const {
  // If RocksDB recovered the log up to this record, it may end at any of these numbers. Then an
  // empty range takes no number, unless its column family had been flushed.
  const WalFile& file = files_[file_];
  const auto may_end = [&](SequenceNumber end) { return least <= end && end <= next_; };
  SequenceNumber end = next_;
  if (may_end(file.limit)) {
    end = file.limit;
  } else if (may_end(until_ + 1)) {
    end = until_ + 1;
  }
  // Only the last record of a file can have been recovered like that, and not in the newest file.
  const bool newest = file_ + 1 == files_.size() || file.number >= live_.log_number;
  if (newest || (end != file.limit && end != until_ + 1)) return end;
  ASSIGN_OR_RETURN(const std::unique_ptr<WalReader> following, OpenFile(file_, reader.end()));
  if (following->Next() && following->sequence() == next_) return end;

  if (live_.sequence < end) end = live_.sequence + 1;
  // The index has a state within the record, so the record was recovered.
  if (first <= after_ && least <= after_ + 1) end = std::min(end, after_ + 1);
  end = std::max(end, least);
  return end > least && AnyFileHas(db_, least, end) ? least : end;
}

absl::Status UpdateLog::CheckFollowing(const WalReader& reader) const {
  ASSIGN_OR_RETURN(const std::unique_ptr<WalReader> following, OpenFile(file_, reader.end()));
  if (!following->Next() || following->sequence() >= next_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const uint64_t count, NumbersOf(following->record()));
  return count == 0 ? absl::OkStatus() : GivenTwice(following->path(), following->sequence());
}

absl::Status UpdateLog::CheckKeys(const WalReader& reader) const {
  for (const uint32_t id : reader.with_timestamps()) {
    if (absl::c_any_of(column_families_,
                       [&](const FollowedFamily& family) { return family.id == id; })) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "log file '%s': keys of column family %d end in a timestamp, which they do not have in "
          "table files (persist_user_defined_timestamps); rebuild the index",
          reader.path(), id));
    }
  }
  return absl::OkStatus();
}

absl::Status UpdateLog::ReadSuperseded(const rocksdb::WriteBatch& batch,
                                       absl::Span<RowChanges> changes) {
  // A record that takes no sequence number may be at the end of a file, with the first number of
  // the next file. If a batch commits a transaction, it takes a number.
  const absl::StatusOr<uint64_t> count = NumbersOf(batch.Data());
  if (!count.ok() || *count > 0) return count.status();
  return batches_.Read(batch, 1, 0, 0, changes).status();
}

absl::Status UpdateLog::GivenTwice(std::string_view path, SequenceNumber sequence) const {
  return absl::FailedPreconditionError(absl::StrFormat(
      "log file '%s' of database '%s' has two writes with sequence number %d, and the first one "
      "failed; rebuild the index",
      path, db_->GetName(), sequence));
}

absl::Status UpdateLog::Missing(std::string_view found) const {
  if (!damage_.ok()) {
    return absl::DataLossError(
        absl::StrFormat("%s; all writes from sequence number %d on are lost; rebuild the index",
                        damage_.message(), next_));
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "sequence number %d of database '%s' is not in its log, %s; needed up to %d: the log has "
      "expired, writes bypassed it, or files were ingested; rebuild the index",
      std::max(next_, after_ + 1), db_->GetName(), found, until_));
}

absl::StatusOr<PreparedTransaction> UpdateLog::FindPrepared(std::string_view name) const {
  // Searches the log before the position where reading began, the last file first. Commits there do
  // not matter.
  const auto ignore = [](std::string_view) { return PreparedTransaction(); };
  std::vector<RowChanges> none(column_families_.size());
  for (size_t i = start_file_ + 1; i-- > 0;) {
    const absl::StatusOr<std::unique_ptr<WalReader>> reader = OpenWalFile(db_, files_[i]);
    if (absl::IsNotFound(reader.status())) continue;
    if (!reader.ok()) return reader.status();
    WriteBatchReader batches(column_families_, ignore, OrdersOfFamilies(db_));
    while ((*reader)->Next()) {
      if (i == start_file_ && (*reader)->start().offset >= start_.offset) break;
      RETURN_IF_ERROR(CheckKeys(**reader));
      const auto batch = std::make_shared<const rocksdb::WriteBatch>((*reader)->TakeRecord());
      const absl::StatusOr<uint64_t> count = batches.Read(batch, 1, 0, 0, absl::MakeSpan(none));
      if (!count.ok()) return count.status();
    }
    const absl::Status& end = (*reader)->status();
    if (!end.ok() && !absl::IsDataLoss(end)) return end;
    if (std::optional<PreparedTransaction> found = batches.TakePrepared(name)) {
      return *std::move(found);
    }
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "transaction %s commits at sequence number %d of database '%s', but its changes are in a "
      "part of the log that is gone; rebuild the index",
      Quoted(name), next_, db_->GetName()));
}

}  // namespace cairn
