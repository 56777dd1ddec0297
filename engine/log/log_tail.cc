#include "engine/log/log_tail.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/log/wal_files.h"
#include "engine/log/wal_reader.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

std::vector<FollowedFamily> Followed(
    const std::vector<rocksdb::ColumnFamilyHandle*>& column_families) {
  std::vector<FollowedFamily> followed;
  for (rocksdb::ColumnFamilyHandle* family : column_families) {
    followed.push_back(FollowedFamily::Of(family));
  }
  return followed;
}

}  // namespace

LogTail::LogTail(rocksdb::DB* db, std::vector<rocksdb::ColumnFamilyHandle*> column_families,
                 SequenceNumber after, LogPosition position, LiveLog live)
    : db_(db),
      column_families_(std::move(column_families)),
      followed_(Followed(column_families_)),
      manual_flush_(db->GetDBOptions().manual_wal_flush),
      directory_(LogDirectory(db)),
      live_(std::move(live)),
      sequence_(after),
      position_(position) {}

absl::Status LogTail::Read(SequenceNumber until, size_t max_bytes, absl::Span<RowChanges> changes,
                           const rocksdb::Snapshot* snapshot) {
  for (RowChanges& c : changes) c.Clear();
  if (log_ == nullptr && ReadOn(until, max_bytes, /*may_end=*/false, changes)) {
    return absl::OkStatus();
  }
  batches_ = nullptr;  // it does not see what UpdateLog sees committed
  reader_ = nullptr;
  for (RowChanges& c : changes) c.Clear();
  absl::Status read = ReadLog(until, max_bytes, snapshot, changes);
  if (!read.ok()) log_ = nullptr;
  return read;
}

bool LogTail::ReadAvailable(SequenceNumber until, size_t max_bytes,
                            absl::Span<RowChanges> changes) {
  for (RowChanges& c : changes) c.Clear();
  if (log_ == nullptr && ReadOn(until, max_bytes, /*may_end=*/true, changes)) return true;
  for (RowChanges& c : changes) c.Clear();
  return false;
}

absl::Status LogTail::ReadUnlogged(absl::Span<const UnloggedBatch> batches, SequenceNumber until,
                                   absl::Span<RowChanges> changes) {
  for (RowChanges& c : changes) c.Clear();
  if (unlogged_ == nullptr) {
    unlogged_ = std::make_unique<WriteBatchReader>(followed_, nullptr, OrdersOfFamilies(db_));
  }
  SequenceNumber last = sequence_;
  for (const UnloggedBatch& batch : batches) {
    ASSIGN_OR_RETURN(const uint64_t count,
                     unlogged_->Read(batch.batch, batch.first, sequence_, until, changes));
    if (count != batch.count) {
      return absl::InternalError(absl::StrFormat(
          "a batch without a log: expected %d records, got %d", batch.count, count));
    }
    last = batch.first + count - 1;
  }
  newest_family_ = std::max(newest_family_, unlogged_->newest_family());
  PassTo(std::min(last, until));
  return absl::OkStatus();
}

bool LogTail::ReadOn(SequenceNumber until, size_t max_bytes, bool may_end,
                     absl::Span<RowChanges> changes) {
  if (position_.log_number == 0) return false;
  if (manual_flush_ && !db_->FlushWAL(/*sync=*/false).ok()) return false;
  // If the current file is another one, this file might end with a write that failed and whose
  // sequence numbers were used again.
  std::unique_ptr<rocksdb::LogFile> current;
  if (!db_->GetCurrentWalFile(&current).ok() || current->LogNumber() != position_.log_number) {
    return false;
  }
  std::unique_ptr<WalReader> reader = std::move(reader_);
  if (reader == nullptr || !reader->Resume()) {
    absl::StatusOr<std::unique_ptr<WalReader>> opened =
        WalReader::Open(db_->GetFileSystem(), directory_ + current->PathName(),
                        position_.log_number, position_.place);
    if (!opened.ok()) return false;
    reader = *std::move(opened);
  }
  if (batches_ == nullptr) {
    batches_ = std::make_unique<WriteBatchReader>(followed_, nullptr, OrdersOfFamilies(db_));
  }

  SequenceNumber next = sequence_ + 1;
  WalPlace end = position_.place;
  size_t bytes = 0;
  bool ended = false;
  while (next <= until && bytes < max_bytes) {
    if (!reader->Next()) {
      if (!may_end || next == sequence_ + 1) return false;
      ended = true;
      break;
    }
    const std::string_view record = reader->record();
    if (record.size() > kBatchHeaderBytes) {
      SequenceNumber first;
      std::memcpy(&first, record.data(), sizeof first);
      if (first != next) {
        if (!may_end || first < next || next == sequence_ + 1) return false;
        reader = nullptr;  // it has passed a record that belongs after the gap
        break;
      }
      const auto batch = std::make_shared<const rocksdb::WriteBatch>(reader->TakeRecord());
      const absl::StatusOr<uint64_t> count =
          batches_->Read(batch, first, sequence_, until, changes);
      if (!count.ok()) return false;
      next += *count;
      // Writers whose records are logged together may be published one by one.
      if (next > until + 1) return false;
    }
    end = reader->end();
    bytes = 0;
    for (const RowChanges& c : changes) bytes += c.bytes();
  }
  // Two writes have the same number: UpdateLog reports it.
  const bool has_more = reader != nullptr && !ended && reader->Next();
  if (has_more && reader->sequence() < next) return false;
  if (reader != nullptr && !has_more) reader_ = std::move(reader);
  sequence_ = next - 1;
  position_.place = end;
  newest_family_ = std::max(newest_family_, batches_->newest_family());
  return true;
}

absl::Status LogTail::ReadLog(SequenceNumber until, size_t max_bytes,
                              const rocksdb::Snapshot* snapshot, absl::Span<RowChanges> changes) {
  if (log_ == nullptr || log_until_ != until) {
    log_ = nullptr;
    const bool is_older = sequence_ < live_.sequence;
    // An earlier one may have ranges to be looked up.
    if (is_older && flushed_ == nullptr) {
      flushed_ = std::make_unique<FlushedRows>(db_, column_families_, live_.files.get());
    }
    ASSIGN_OR_RETURN(log_, UpdateLog::Open(db_, column_families_, sequence_, until, position_,
                                           live_, flushed_.get()));
    log_until_ = until;
  }
  RETURN_IF_ERROR(log_->Read(max_bytes, changes, snapshot));
  sequence_ = log_->sequence();
  position_ = log_->position();
  newest_family_ = std::max(newest_family_, log_->newest_family());
  if (log_->done()) {
    log_ = nullptr;
    flushed_ = nullptr;
  }
  return absl::OkStatus();
}

}  // namespace cairn
