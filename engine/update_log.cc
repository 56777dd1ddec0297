#include "engine/update_log.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/db_source.h"
#include "engine/status.h"
#include "index/escaped_text.h"

namespace cairn {
namespace {

// A write batch starts with its sequence number (8 bytes) and how many records it has (4). RocksDB
// logs some that have nothing else, as a mark; their sequence numbers follow no rule.
constexpr size_t kBatchHeaderBytes = 12;

SequenceNumber FirstSequence(std::string_view record) {
  SequenceNumber sequence;
  std::memcpy(&sequence, record.data(), sizeof sequence);
  return sequence;
}

// Whether a database's log can be followed at all.
absl::Status CheckDatabase(rocksdb::DB* db, const rocksdb::DBOptions& options) {
  if (options.unordered_write) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "database '%s' is open with unordered_write: its snapshots change, so that no state of it "
        "can be caught up with",
        db->GetName()));
  }
  // RocksDB refuses this for databases that number batches, and does nothing else with a sequence
  // number that is out of reach.
  std::unique_ptr<rocksdb::TransactionLogIterator> none;
  if (db->GetUpdatesSince(UINT64_MAX, &none).IsNotSupported()) {
    return absl::UnimplementedError(absl::StrFormat(
        "database '%s' writes transactions before they commit (WritePrepared or WriteUnprepared); "
        "its log cannot be followed",
        db->GetName()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<UpdateLog>> UpdateLog::Open(
    rocksdb::DB* db, absl::Span<rocksdb::ColumnFamilyHandle* const> column_families,
    SequenceNumber after, SequenceNumber until, LogPosition position) {
  const std::string where = absl::StrFormat("database '%s'", db->GetName());
  std::vector<uint32_t> ids;
  for (rocksdb::ColumnFamilyHandle* family : column_families) {
    if (absl::Status s = CheckComparator(family->GetComparator(), family->GetName(), where);
        !s.ok()) {
      return s;
    }
    ids.push_back(family->GetID());
  }
  if (until < after) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s is at sequence number %d, before %d where the index is: it was restored to an older "
        "state, or is another one; rebuild the index",
        where, until, after));
  }
  std::unique_ptr<UpdateLog> log(new UpdateLog(db, std::move(ids), after, until));
  log->position_ = position;
  if (absl::Status s = CheckDatabase(db, db->GetDBOptions()); !s.ok()) return s;
  if (!log->done()) {
    if (absl::Status s = log->OpenFiles(position); !s.ok()) return s;
  }
  return log;
}

UpdateLog::UpdateLog(rocksdb::DB* db, std::vector<uint32_t> column_families, SequenceNumber after,
                     SequenceNumber until)
    : db_(db),
      column_families_(std::move(column_families)),
      after_(after),
      until_(until),
      // There, writers whose records are logged together are published one by one.
      snapshots_split_records_(db->GetDBOptions().enable_pipelined_write),
      batches_(column_families_, [this](std::string_view name) { return FindPrepared(name); }),
      next_(after + 1) {}

absl::Status UpdateLog::OpenFiles(const LogPosition& position) {
  if (db_->GetDBOptions().manual_wal_flush) {
    if (absl::Status s = FromRocksDb(
            db_->FlushWAL(/*sync=*/false),
            absl::StrFormat("cannot write the log of database '%s' out", db_->GetName()));
        !s.ok()) {
      return s;
    }
  }
  const FileDeletionPause pause(db_);
  absl::StatusOr<std::vector<WalFile>> files = ListWalFiles(db_);
  if (!files.ok()) return files.status();
  files_ = *std::move(files);
  if (StartAt(position)) return absl::OkStatus();

  // The first file that starts with the wanted record, or else the last one that starts before it.
  size_t first = 0;
  while (first < files_.size() && files_[first].start <= after_) ++first;
  if (first == files_.size() || files_[first].start != after_ + 1) {
    if (first == 0) {
      return Missing(files_.empty() ? std::string("which is empty")
                                    : absl::StrFormat("which begins at %d", files_[0].start));
    }
    --first;
  }
  if (absl::Status s = OpenReaders(first, 0); !s.ok()) return s;
  return files_[first].start == after_ + 1 ? absl::OkStatus() : FindStart();
}

absl::Status UpdateLog::OpenReaders(size_t first, uint64_t offset) {
  readers_.clear();
  readers_.resize(files_.size());
  for (size_t i = first; i < files_.size() && files_[i].start <= until_; ++i) {
    absl::StatusOr<std::unique_ptr<WalReader>> reader =
        OpenWalFile(db_, files_[i], i == first ? offset : 0);
    if (!reader.ok()) return reader.status();
    readers_[i] = *std::move(reader);
  }
  start_file_ = file_ = first;
  start_offset_ = offset;
  return absl::OkStatus();
}

bool UpdateLog::StartAt(const LogPosition& position) {
  const auto file = std::find_if(files_.begin(), files_.end(),
                                 [&](const WalFile& f) { return f.number == position.log_number; });
  if (file == files_.end()) return false;
  const size_t first = static_cast<size_t>(file - files_.begin());
  if (!OpenReaders(first, position.offset).ok()) return false;
  WalReader* const reader = readers_[first].get();
  while (reader != nullptr && reader->Next()) {
    const std::string_view record = reader->record();
    if (record.size() <= kBatchHeaderBytes) continue;
    if (FirstSequence(record) != next_) return false;
    start_records_.push_back({std::string(record), {position.log_number, reader->offset()}});
    return true;
  }
  return file + 1 != files_.end() && (file + 1)->start == next_;
}

absl::Status UpdateLog::FindStart() {
  const uint64_t number = files_[file_].number;
  WalReader* const reader = readers_[file_].get();
  Record previous;
  uint64_t previous_offset = 0;
  while (reader->Next()) {
    const std::string_view record = reader->record();
    bytes_read_ += record.size();
    if (record.size() <= kBatchHeaderBytes) continue;
    if (FirstSequence(record) > after_) {
      start_records_.push_back({std::string(record), {number, reader->offset()}});
      start_offset_ = reader->record_offset();
      if (FirstSequence(record) == next_) return absl::OkStatus();
      break;
    }
    previous.bytes.assign(record);
    previous.end = {number, reader->offset()};
    previous_offset = reader->record_offset();
  }
  // No record starts at the wanted one: the one before may hold it, or nothing does. Reading on
  // from there tells.
  if (!previous.bytes.empty()) {
    next_ = FirstSequence(previous.bytes);
    start_offset_ = previous_offset;
    start_records_.push_back(std::move(previous));
  }
  return absl::OkStatus();
}

absl::Status UpdateLog::Read(size_t max_bytes, absl::Span<RowChanges> changes) {
  size_t bytes = 0;
  while (!done()) {
    if (absl::Status s = Next(); !s.ok()) return s;
    if (absl::Status s = ReadRecord(changes); !s.ok()) return s;
    bytes = 0;
    for (const RowChanges& c : changes) bytes += c.bytes();
    if (bytes >= max_bytes) break;
  }
  return absl::OkStatus();
}

absl::Status UpdateLog::Next() {
  if (!start_records_.empty()) {
    current_ = std::move(start_records_.back());
    start_records_.pop_back();
    record_ = current_.bytes;
    record_end_ = current_.end;
    return absl::OkStatus();
  }
  while (readers_[file_] != nullptr) {
    WalReader* const reader = readers_[file_].get();
    if (reader->Next()) {
      record_ = reader->record();
      record_end_ = {files_[file_].number, reader->offset()};
      bytes_read_ += record_.size();
      return absl::OkStatus();
    }
    // RocksDB, too, leaves damage behind at the end of a file, and goes on in a new one.
    if (!reader->status().ok() && !absl::IsDataLoss(reader->status())) return reader->status();
    damage_ = reader->status();
    if (file_ + 1 == files_.size()) break;
    readers_[file_].reset();
    ++file_;
  }
  return Missing("which ends there");
}

absl::Status UpdateLog::ReadRecord(absl::Span<RowChanges> changes) {
  const std::string& path = files_[file_].path;
  if (record_.size() < kBatchHeaderBytes) {
    return absl::DataLossError(absl::StrFormat(
        "log file '%s' has a record of %d bytes that ends at offset %d; a write batch has at least "
        "%d",
        path, record_.size(), record_end_.offset, kBatchHeaderBytes));
  }
  if (record_.size() == kBatchHeaderBytes) return absl::OkStatus();
  const SequenceNumber first = FirstSequence(record_);
  const rocksdb::WriteBatch batch{std::string(record_)};
  if (first >= files_[file_].limit) return TakeSuperseded(batch, changes);
  if (first != next_) {
    return Missing(absl::StrFormat("where %d follows in file '%s'", first, path));
  }
  damage_ = absl::OkStatus();

  const absl::StatusOr<uint64_t> count = batches_.Read(batch, first, after_, until_, changes);
  if (!count.ok()) {
    return absl::Status(count.status().code(),
                        absl::StrFormat("%s (log file '%s', the record that ends at offset %d)",
                                        count.status().message(), path, record_end_.offset));
  }
  next_ += *count;
  if (first <= after_ && next_ > after_ + 1 && !snapshots_split_records_) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the log of database '%s' has %d to %d as one write, so that it never was in the state %d "
        "of the index: it has another past than when that was built; rebuild the index",
        db_->GetName(), first, next_ - 1, after_));
  }
  if (next_ <= until_ + 1) position_ = record_end_;
  return absl::OkStatus();
}

absl::Status UpdateLog::TakeSuperseded(const rocksdb::WriteBatch& batch,
                                       absl::Span<RowChanges> changes) {
  // What takes no sequence number may stand at a file's end, with the first one of the next.
  if (!batch.HasBeginPrepare() || batch.HasCommit()) return absl::OkStatus();
  return batches_.Read(batch, 1, 0, 0, changes).status();
}

absl::Status UpdateLog::Missing(std::string_view found) const {
  if (!damage_.ok()) {
    return absl::DataLossError(absl::StrFormat(
        "%s; what was written from sequence number %d on is lost; rebuild the index",
        damage_.message(), next_));
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "sequence number %d of database '%s' is not in its log, %s; up to %d is wanted: the log has "
      "expired, writes went past it, or files were ingested; rebuild the index",
      std::max(next_, after_ + 1), db_->GetName(), found, until_));
}

absl::StatusOr<PreparedTransaction> UpdateLog::FindPrepared(std::string_view name) const {
  // Before the place where reading began, the last file first. What transactions commit there does
  // not matter.
  const auto ignore = [](std::string_view) { return PreparedTransaction(); };
  std::vector<RowChanges> none(column_families_.size());
  for (size_t i = start_file_ + 1; i-- > 0;) {
    const absl::StatusOr<std::unique_ptr<WalReader>> reader = OpenWalFile(db_, files_[i]);
    if (!reader.ok()) break;
    WriteBatchReader batches(column_families_, ignore);
    while ((*reader)->Next()) {
      if (i == start_file_ && (*reader)->record_offset() >= start_offset_) break;
      const rocksdb::WriteBatch batch{std::string((*reader)->record())};
      if (batch.GetDataSize() <= kBatchHeaderBytes) continue;
      const absl::StatusOr<uint64_t> count = batches.Read(batch, 1, 0, 0, absl::MakeSpan(none));
      if (!count.ok()) return count.status();
    }
    if (std::optional<PreparedTransaction> found = batches.TakePrepared(name)) {
      return *std::move(found);
    }
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "transaction %s commits at sequence number %d of database '%s', but what it does is in a "
      "part of the log that is gone; rebuild the index",
      Quoted(name), next_, db_->GetName()));
}

}  // namespace cairn
