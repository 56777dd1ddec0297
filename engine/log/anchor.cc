#include "engine/log/anchor.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "engine/log/ingested_files.h"
#include "engine/log/table_files.h"
#include "engine/log/update_log.h"
#include "engine/util/status.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

absl::StatusOr<std::string> SessionId(rocksdb::DB* db) {
  std::string id;
  RETURN_IF_ERROR(
      FromRocksDb(db->GetDbSessionId(id),
                  absl::StrFormat("cannot tell the session of database '%s'", db->GetName())));
  return id;
}

// The place in the log behind what ends at `sequence`, of which it must have everything after
// `after`. Errors as UpdateLog's.
absl::StatusOr<LogPosition> ReadTo(rocksdb::DB* db, SequenceNumber after, SequenceNumber sequence) {
  ASSIGN_OR_RETURN(std::unique_ptr<UpdateLog> log, UpdateLog::Open(db, {}, after, sequence));
  while (!log->done()) {
    RETURN_IF_ERROR(log->Read(SIZE_MAX, {}));
  }
  return log->position();
}

// The sequence number of the first or the last record by `sequence` of some of the log's files; 0
// where there is none.
enum class Which : uint8_t { kFirst, kLast };
absl::StatusOr<SequenceNumber> FindRecord(Which which, rocksdb::DB* db, SequenceNumber sequence,
                                          absl::Span<const WalFile> files) {
  SequenceNumber found = 0;
  for (const WalFile& file : files) {
    const absl::StatusOr<std::unique_ptr<WalReader>> reader = OpenWalFile(db, file);
    if (absl::IsNotFound(reader.status())) continue;
    if (!reader.ok()) return reader.status();
    while ((*reader)->Next() && (*reader)->sequence() <= sequence) {
      found = (*reader)->sequence();
      if (which == Which::kFirst) return found;
    }
    if (!(*reader)->status().ok() && !absl::IsDataLoss((*reader)->status())) {
      return (*reader)->status();
    }
  }
  return found;
}

// Adds what names a file, if there is something.
void AddFile(const std::string& file, Anchor* anchor) {
  if (!file.empty()) absl::StrAppend(&anchor->files, anchor->files.empty() ? "" : ",", file);
}

// Whether table files show that everything that was written before the record `first`, with which
// the log's file `first_log` begins, was in the log or in files before.
bool IsInFilesBefore(rocksdb::DB* db, SequenceNumber first, uint64_t first_log) {
  if (first == 1) return true;
  const std::vector<rocksdb::LiveFileMetaData> files = LiveFiles(db);
  return std::any_of(files.begin(), files.end(), [&](const rocksdb::LiveFileMetaData& file) {
    return file.file_number < first_log && file.largest_seqno == first - 1;
  });
}

absl::Status Differs(rocksdb::DB* db, SequenceNumber sequence, std::string_view what) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "database '%s' does not continue the state %d that the index has: %s; it was restored from "
      "an older copy, or has lost the end of its log; build the index anew",
      db->GetName(), sequence, what));
}

// Whether the log's file begins with the records that lie before the anchor; nothing where it is
// gone.
absl::StatusOr<std::optional<bool>> LogAgrees(const LogPosition& position, rocksdb::DB* db) {
  ASSIGN_OR_RETURN(const std::vector<WalFile> files, ListWalFiles(db));
  for (const WalFile& file : files) {
    if (file.number != position.log_number) continue;
    const absl::StatusOr<std::unique_ptr<WalReader>> reader = OpenWalFile(db, file);
    if (absl::IsNotFound(reader.status())) break;
    if (!reader.ok()) return reader.status();
    while ((*reader)->end().offset < position.place.offset && (*reader)->Next()) continue;
    if (!(*reader)->status().ok() && !absl::IsDataLoss((*reader)->status())) {
      return (*reader)->status();
    }
    return (*reader)->end() == position.place;
  }
  // Numbers only grow: of a newer copy, there would be a file by this number or above.
  if (!files.empty() && files.back().number < position.log_number) return false;
  return std::optional<bool>();
}

// Has the anchor ask for the files that hold what the log did not tell, or everything where
// `position` is none.
absl::Status HoldFiles(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                       SequenceNumber sequence, const absl::StatusOr<LogPosition>& position,
                       Anchor* anchor) {
  ASSIGN_OR_RETURN(const std::vector<WalFile> logs, ListWalFiles(db));
  const uint64_t newest_log = logs.empty() ? 0 : logs.back().number;
  anchor->log_behind_files = std::max(anchor->log_behind_files, newest_log);
  if (!position.ok()) anchor->log.log_number = newest_log;

  const std::vector<rocksdb::LiveFileMetaData> files = LiveFiles(db);
  const rocksdb::LiveFileMetaData* const own = Newest(files, column_family);
  const rocksdb::LiveFileMetaData* const newest = Newest(files, nullptr);
  std::string own_file;
  if (own != nullptr) {
    ASSIGN_OR_RETURN(own_file, OwnFileId(db, column_family, own->file_number));
  }
  const bool all_in_files = own == nullptr || !own_file.empty();
  if (own != nullptr && own->file_number != anchor->ingested_file) AddFile(own_file, anchor);
  if (position.ok()) {
    if (!all_in_files) anchor->unproven = "its table files have no identity";
    return absl::OkStatus();
  }
  // Nothing is in the log: the newest file of all shows that the database has come so far.
  const bool nothing_in_memory = EntriesInMemory(db, column_family) == 0;
  if (newest != nullptr && newest != own) AddFile(AnyFileId(*newest), anchor);
  if (sequence > 0 && (newest == nullptr || !all_in_files || !nothing_in_memory)) {
    anchor->files.clear();
    anchor->unproven = absl::StrFormat(
        "its state %d stood neither in the log nor in table files alone when the index was built: "
        "%s",
        sequence, position.status().message());
  }
  return absl::OkStatus();
}

// Whether a file that an anchor names is live. An error where it is another than then.
absl::StatusOr<bool> IsLive(const std::string& file, rocksdb::DB* db,
                            rocksdb::ColumnFamilyHandle* column_family, SequenceNumber sequence) {
  uint64_t number = 0;
  if (!absl::SimpleAtoi(file.substr(0, file.find(':')), &number)) number = 0;
  for (const rocksdb::LiveFileMetaData& live : LiveFiles(db)) {
    if (live.file_number != number) continue;
    if (AnyFileId(live) == file) return true;
    ASSIGN_OR_RETURN(const std::string own, OwnFileId(db, column_family, number));
    if (own == file) return true;
    return Differs(db, sequence, absl::StrFormat("its table file %d is another than then", number));
  }
  return false;
}

}  // namespace

void Anchor::MoveTo(const LogPosition& position) {
  if (position.place.offset == 0) return;  // nothing was there to read
  log = position;
  if (position.log_number > log_behind_files) AssumeProven();
}

void Anchor::AssumeProven() {
  files.clear();
  log_behind_files = 0;
  unproven.clear();
}

std::string Anchor::ToString() const {
  return absl::StrFormat(
      "session=%s family=%d log=%d:%d:%016x ingested=%d files=%s until=%d "
      "unproven=%s",
      session_id, column_family_id, log.log_number, log.place.offset, log.place.checksum,
      ingested_file, files, log_behind_files, unproven);
}

absl::StatusOr<Anchor> Anchor::Parse(std::string_view text) {
  Anchor anchor;
  const std::vector<std::string> fields =
      absl::StrSplit(absl::string_view(text.data(), text.size()), absl::MaxSplits(' ', 6));
  const auto value = [&fields](size_t i, std::string_view name) {
    const std::string field = i < fields.size() ? fields[i] : std::string();
    return field.starts_with(name) ? field.substr(name.size()) : std::string();
  };
  const std::vector<std::string> log = absl::StrSplit(value(2, "log="), ':');
  anchor.session_id = value(0, "session=");
  anchor.files = value(4, "files=");
  anchor.unproven = value(6, "unproven=");
  const bool numbers = log.size() == 3 &&
                       absl::SimpleAtoi(value(1, "family="), &anchor.column_family_id) &&
                       absl::SimpleAtoi(log[0], &anchor.log.log_number) &&
                       absl::SimpleAtoi(log[1], &anchor.log.place.offset) &&
                       absl::SimpleHexAtoi(log[2], &anchor.log.place.checksum) &&
                       absl::SimpleAtoi(value(3, "ingested="), &anchor.ingested_file) &&
                       absl::SimpleAtoi(value(5, "until="), &anchor.log_behind_files);
  if (!numbers || anchor.ToString() != text) {
    return absl::DataLossError(
        absl::StrFormat("%s does not say which state of a database an index is of", Quoted(text)));
  }
  return anchor;
}

absl::StatusOr<Anchor> TakeAnchor(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                                  SequenceNumber sequence, bool read_only) {
  Anchor anchor;
  ASSIGN_OR_RETURN(anchor.session_id, SessionId(db));
  anchor.column_family_id = column_family->GetID();
  ASSIGN_OR_RETURN(anchor.ingested_file, NewestIngestedFile(db, column_family, sequence));

  if (db->GetDBOptions().manual_wal_flush) {
    if (absl::Status s = FromRocksDb(
            db->FlushWAL(/*sync=*/false),
            absl::StrFormat("cannot write the log of database '%s' out", db->GetName()));
        !s.ok() && !read_only) {
      return s;
    }
  }
  ASSIGN_OR_RETURN(const std::vector<WalFile> files, ListWalFiles(db));
  size_t archived = 0;
  while (archived < files.size() && files[archived].path == files[archived].archived_path) {
    ++archived;
  }
  // The files that are not archived, or, where these have nothing, the last that has something.
  size_t first_file = archived;
  absl::Span<const WalFile> live = absl::MakeConstSpan(files).subspan(first_file);
  absl::StatusOr<SequenceNumber> first = FindRecord(Which::kFirst, db, sequence, live);
  while (first.ok() && *first == 0 && first_file > 0) {
    live = absl::MakeConstSpan(files).subspan(--first_file, 1);
    first = FindRecord(Which::kFirst, db, sequence, live);
  }
  if (!first.ok()) return first.status();
  const uint64_t first_log = first_file < files.size() ? files[first_file].number : UINT64_MAX;
  absl::StatusOr<LogPosition> position = absl::FailedPreconditionError("the log was empty");
  bool complete = false, has_gap = false;
  if (*first > 0) {
    const bool in_files_before = IsInFilesBefore(db, *first, first_log);
    // Else what was before may be told by what is archived, from its last record on.
    SequenceNumber before = 0;
    for (size_t i = first_file; i-- > 0 && before == 0 && !in_files_before;) {
      ASSIGN_OR_RETURN(before, FindRecord(Which::kLast, db, *first - 1,
                                          absl::MakeConstSpan(files).subspan(i, 1)));
    }
    if (before > 0) position = ReadTo(db, before - 1, sequence);
    if (position.ok() && position->log_number < first_log) {
      position = absl::FailedPreconditionError("numbers of the archived log were given again");
    }
    const bool is_told_before = in_files_before || position.ok();
    if (!position.ok()) position = ReadTo(db, *first - 1, sequence);
    // A gap: of ingested files, or of rows written past the log.
    has_gap = !position.ok() || (*first > 1 && archived == 0 && LiveFiles(db).empty());
    complete = is_told_before && !has_gap;
    if (!position.ok()) {
      ASSIGN_OR_RETURN(const SequenceNumber last, FindRecord(Which::kLast, db, sequence, live));
      position = ReadTo(db, last - 1, sequence);
    }
    if (position.ok()) anchor.log = *position;
  }
  if (anchor.ingested_file > first_log) {
    ASSIGN_OR_RETURN(const std::string file, OwnFileId(db, column_family, anchor.ingested_file));
    AddFile(file, &anchor);
    anchor.log_behind_files = files.back().number;
  }
  if (complete) return anchor;

  if (read_only) {
    if (has_gap) {
      anchor.unproven = absl::StrFormat(
          "its log did not tell everything up to its state %d when the index was built, and what "
          "it did not tell may have been in the memory of the process that writes to it",
          sequence);
      anchor.log_behind_files = UINT64_MAX;
    }
    if (position.ok()) return anchor;
  } else if (EntriesInMemory(db, column_family) > 0) {
    const rocksdb::Status flushed = db->Flush(rocksdb::FlushOptions(), column_family);
    // What cannot be written to holds nothing but what its log has.
    if (!flushed.IsNotSupported()) {
      RETURN_IF_ERROR(
          FromRocksDb(flushed, absl::StrFormat("cannot flush column family '%s' of database '%s'",
                                               column_family->GetName(), db->GetName())));
    }
  }
  RETURN_IF_ERROR(HoldFiles(db, column_family, sequence, position, &anchor));
  return anchor;
}

absl::Status CheckContinues(SequenceNumber sequence, rocksdb::DB* db,
                            rocksdb::ColumnFamilyHandle* column_family, Anchor* anchor,
                            bool* proven) {
  *proven = true;
  const bool of_database = !anchor->session_id.empty();
  if (of_database && column_family->GetID() != anchor->column_family_id) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "column family '%s' of database '%s' was dropped and made again, or is another's: the "
        "index is of the one with id %d, and this has %d; build the index anew",
        column_family->GetName(), db->GetName(), anchor->column_family_id, column_family->GetID()));
  }
  ASSIGN_OR_RETURN(std::string session, SessionId(db));
  if (session == anchor->session_id) return absl::OkStatus();
  anchor->session_id = std::move(session);
  anchor->column_family_id = column_family->GetID();
  std::string missing = anchor->unproven;
  const bool in_log = anchor->log.place.offset > 0;
  if (in_log) {
    ASSIGN_OR_RETURN(const std::optional<bool> agrees, LogAgrees(anchor->log, db));
    if (!agrees.has_value()) {
      missing = absl::StrFormat(
          "its log %d, which would prove it, is gone (set DBOptions::WAL_ttl_seconds or "
          "WAL_size_limit_MB to have logs kept)",
          anchor->log.log_number);
    } else if (!*agrees) {
      return Differs(db, sequence,
                     absl::StrFormat("its log %d is not, up to byte %d, as it was then",
                                     anchor->log.log_number, anchor->log.place.offset));
    }
  }
  if (!anchor->files.empty()) {
    for (const std::string& file : std::vector<std::string>(absl::StrSplit(anchor->files, ','))) {
      ASSIGN_OR_RETURN(const bool live, IsLive(file, db, column_family, sequence));
      if (live) continue;
      missing = absl::StrFormat("its table file %s, which would prove it, has been compacted",
                                file.substr(0, file.find(':')));
    }
  } else if (!in_log && missing.empty() && sequence > 0) {
    missing = "the index does not say of which log or files it is";
  }
  if (missing.empty()) return absl::OkStatus();
  *proven = false;
  return absl::FailedPreconditionError(absl::StrFormat(
      "nothing proves that database '%s' continues the state %d that the index has: %s; build the "
      "index anew",
      db->GetName(), sequence, missing));
}

}  // namespace cairn
