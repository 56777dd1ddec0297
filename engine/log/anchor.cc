#include "engine/log/anchor.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "engine/log/flushed_rows.h"
#include "engine/log/ingested_files.h"
#include "engine/log/older_logs.h"
#include "engine/log/table_files.h"
#include "engine/log/update_log.h"
#include "engine/log/wal_reader.h"
#include "engine/log/write_batch_reader.h"
#include "engine/source/manifest_families.h"
#include "engine/util/status.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

absl::StatusOr<std::string> SessionId(rocksdb::DB* db) {
  std::string id;
  RETURN_IF_ERROR(
      FromRocksDb(db->GetDbSessionId(id),
                  absl::StrFormat("cannot get the session id of database '%s'", db->GetName())));
  return id;
}

// Returns the position in the log after the last record up to `sequence`. The log must have
// everything after `after`. Errors: those of UpdateLog.
absl::StatusOr<LogPosition> ReadTo(rocksdb::DB* db, SequenceNumber after, SequenceNumber sequence) {
  ASSIGN_OR_RETURN(std::unique_ptr<UpdateLog> log, UpdateLog::Open(db, {}, after, sequence));
  while (!log->done()) {
    RETURN_IF_ERROR(log->Read(SIZE_MAX, {}));
  }
  return log->position();
}

// Returns the sequence number of the first or last record up to `sequence` in some files of the
// log; 0 if there is none.
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

// Returns whether table files show that all writes before the record `first`, the first one of the
// log file `first_log`, were in the log or in files.
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
      "an older copy, or has lost the end of its log; rebuild the index",
      db->GetName(), sequence, what));
}

// The relation of the anchor's log file in a later session to the anchor.
enum class LogEvidence : uint8_t {
  kGone,       // nothing: there is no such file
  kDiffers,    // it does not begin with the records before the anchor's position
  kMayRepeat,  // RocksDB may have assigned sequence numbers up to the position a second time
  kContinues,
};

// Reads the anchor's log file in one pass, so that the result is of one moment even if the file is
// archived or purged during the call. Its records up to the position are given to *lost, if any.
//
// RocksDB assigns numbers again if those at the end of a log file are in no table file, and the log
// file is not read at an opening, because it is archived. So a row at the position or after it in
// an archived file must be of a column family that still exists, and one that a flush keeps. Log
// files and table files do not tell rows with repeated numbers from those that the index has.
absl::StatusOr<LogEvidence> ReadLogEvidence(const LogPosition& position, rocksdb::DB* db,
                                            LostRows* lost) {
  ASSIGN_OR_RETURN(const std::vector<WalFile> files, ListWalFiles(db));
  const auto file = std::find_if(files.begin(), files.end(),
                                 [&](const WalFile& f) { return f.number == position.log_number; });
  absl::StatusOr<std::unique_ptr<WalReader>> opened = absl::NotFoundError("");
  if (file != files.end()) opened = OpenWalFile(db, *file);
  if (absl::IsNotFound(opened.status())) {
    // Numbers only grow, so a newer copy would have a file with this number or a higher one.
    const bool is_older = !files.empty() && files.back().number < position.log_number;
    return is_older ? LogEvidence::kDiffers : LogEvidence::kGone;
  }
  RETURN_IF_ERROR(opened.status());
  WalReader& reader = **opened;
  const bool is_archived = file->path == file->archived_path;
  WriteBatchReader batches({});
  absl::Status readable;                // of the batches
  std::optional<uint32_t> kept_family;  // of the last row before the end of the record, if kept
  const auto next = [&] {
    if (!reader.Next()) return false;
    const bool is_before = reader.end().offset <= position.place.offset;
    if (!is_archived && (lost == nullptr || !is_before)) return true;
    if (!readable.ok()) return true;
    const SequenceNumber first = reader.sequence();
    const rocksdb::WriteBatch batch(reader.TakeRecord());
    if (lost != nullptr && is_before) readable = lost->Read(position.log_number, first, batch);
    if (!is_archived) return true;
    // A transaction that was prepared in an older file may be of any column family.
    const absl::StatusOr<uint64_t> count = batches.Read(batch, {});
    kept_family = count.ok() ? batches.last_kept_family() : std::nullopt;
    if (!absl::IsFailedPrecondition(count.status())) readable.Update(count.status());
    return true;
  };
  const auto read_error = [&] {
    return absl::IsDataLoss(reader.status()) ? absl::OkStatus() : reader.status();
  };
  while (reader.end().offset < position.place.offset && next()) continue;
  RETURN_IF_ERROR(read_error());
  if (reader.end() != position.place) return LogEvidence::kDiffers;
  RETURN_IF_ERROR(readable);
  if (!is_archived) return LogEvidence::kContinues;
  ASSIGN_OR_RETURN(const auto families, ManifestFamilies(db).Read());
  do {
    RETURN_IF_ERROR(readable);
    if (kept_family.has_value() && families.contains(*kept_family)) return LogEvidence::kContinues;
  } while (next());
  RETURN_IF_ERROR(read_error());
  return LogEvidence::kMayRepeat;
}

// Returns whether the log may have changes up to `sequence` that are not in table files. Changes in
// archived log files are.
absl::StatusOr<bool> LogHasAnyOf(SequenceNumber sequence, rocksdb::DB* db) {
  ASSIGN_OR_RETURN(std::vector<WalFile> files, ListWalFiles(db));
  std::erase_if(files, [](const WalFile& file) { return file.path == file.archived_path; });
  ASSIGN_OR_RETURN(const SequenceNumber first,
                   FindRecord(Which::kFirst, db, sequence, absl::MakeConstSpan(files)));
  return first > 0;
}

// Returns the reason why files cannot prove the anchor's state; empty if they can. The proof
// requires that the rows of all changed files are read again.
absl::StatusOr<std::string> MissingForFiles(SequenceNumber sequence, rocksdb::DB* db,
                                            rocksdb::ColumnFamilyHandle* column_family,
                                            const Anchor& anchor) {
  const TableFiles* const tables = anchor.tables.get();
  if (tables == nullptr || !tables->complete)
    return std::string("its table files did not contain all rows");
  ASSIGN_OR_RETURN(const bool in_log, LogHasAnyOf(sequence, db));
  if (in_log) return std::string("its log has older changes, which may not be those of the index");
  if (tables->newest.empty()) return std::string();
  const uint64_t newest = tables->files.back().number;
  ASSIGN_OR_RETURN(const std::string id, OwnFileId(db, column_family, newest));
  if (id.empty() || id == tables->newest) return std::string();
  return Differs(db, sequence,
                 absl::StrFormat("its table file %06d.sst is a different one", newest));
}

// Returns the files without those that FIFO compaction may have dropped. It drops the oldest files
// of level 0 first; their rows remain in an index.
TableFiles WithoutDropped(const TableFiles& then, const rocksdb::ColumnFamilyMetaData& now) {
  SequenceNumber oldest_left = UINT64_MAX;
  std::set<uint64_t> left;
  for (const rocksdb::LevelMetaData& level : now.levels) {
    for (const rocksdb::SstFileMetaData& file : level.files) {
      left.insert(file.file_number);
      if (level.level > 0 || then.Find(file.file_number) == nullptr) continue;
      oldest_left = std::min<SequenceNumber>(oldest_left, file.largest_seqno);
    }
  }
  TableFiles files = then;
  std::erase_if(files.files, [&](const TableFile& file) {
    return file.largest_sequence <= oldest_left && !left.contains(file.number);
  });
  return files;
}

// Returns a sequence number up to which all rows of the anchor's state were in table files.
// Memtables are flushed in order; an ingested file may have a higher number than rows in memory.
SequenceNumber FlushedUpTo(const Anchor& anchor) {
  SequenceNumber flushed = 0;
  if (anchor.tables == nullptr || anchor.ingested_file > 0) return flushed;
  for (const TableFile& file : anchor.tables->files) {
    flushed = std::max(flushed, file.largest_sequence);
  }
  return flushed;
}

// FindChangedRanges, between the anchor's files and those at the beginning of the session.
absl::Status FindRanges(SequenceNumber sequence, rocksdb::DB* db,
                        rocksdb::ColumnFamilyHandle* column_family,
                        const TableFilesOfFamilies* files, const Anchor& anchor, ChangedFiles which,
                        std::vector<ChangedRange>* ranges) {
  if (anchor.tables == nullptr) return absl::OkStatus();
  const bool drops =
      db->GetOptions(column_family).compaction_style == rocksdb::kCompactionStyleFIFO;
  const rocksdb::ColumnFamilyMetaData metadata = FilesOf(db, column_family, files);
  const TableFiles now = ListTableFiles(metadata, KnownKeyOrderOf(column_family));
  absl::StatusOr<std::vector<ChangedRange>> found =
      drops && which == ChangedFiles::kLost
          ? FindChangedRanges(WithoutDropped(*anchor.tables, metadata), now, which)
          : FindChangedRanges(*anchor.tables, now, which);
  if (!found.ok()) return Differs(db, sequence, std::string(found.status().message()));
  *ranges = *std::move(found);
  return absl::OkStatus();
}

// Finds a new anchor's position in the log. Has rows that are not in the log written to files.
absl::Status FindInLog(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                       SequenceNumber sequence, bool read_only, Anchor* anchor) {
  if (sequence == 0) return absl::OkStatus();
  if (db->GetDBOptions().manual_wal_flush) {
    if (absl::Status s = FromRocksDb(
            db->FlushWAL(/*sync=*/false),
            absl::StrFormat("cannot write out the log of database '%s'", db->GetName()));
        !s.ok() && !read_only) {
      return s;
    }
  }
  ASSIGN_OR_RETURN(const std::vector<WalFile> files, ListWalFiles(db));
  size_t archived = 0;
  while (archived < files.size() && files[archived].path == files[archived].archived_path) {
    ++archived;
  }
  // The files that are not archived or, if these have no records, the last file that has one.
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
    // Otherwise archived files may have everything from their last record on.
    SequenceNumber before = 0;
    for (size_t i = first_file; i-- > 0 && before == 0 && !in_files_before;) {
      ASSIGN_OR_RETURN(before, FindRecord(Which::kLast, db, *first - 1,
                                          absl::MakeConstSpan(files).subspan(i, 1)));
    }
    if (before > 0) position = ReadTo(db, before - 1, sequence);
    if (position.ok() && position->log_number < first_log) {
      position = absl::FailedPreconditionError("numbers of the archived log were used again");
    }
    const bool is_told_before = in_files_before || position.ok();
    if (!position.ok()) position = ReadTo(db, *first - 1, sequence);
    // A gap is due to ingested files, or to rows that bypassed the log.
    has_gap = !position.ok() || (*first > 1 && archived == 0 && LiveFiles(db).empty());
    complete = is_told_before && !has_gap;
    if (!position.ok()) {
      ASSIGN_OR_RETURN(const SequenceNumber last, FindRecord(Which::kLast, db, sequence, live));
      position = ReadTo(db, last - 1, sequence);
    }
    if (position.ok()) anchor->log = *position;
  }
  if (anchor->ingested_file > first_log) anchor->log_behind_files = files.back().number;
  if (complete) return absl::OkStatus();

  if (read_only) {
    if (has_gap) {
      anchor->unproven = absl::StrFormat(
          "its log did not contain everything up to its state %d when the index was built, and the "
          "rest may have been only in the memory of the process that writes to it",
          sequence);
      anchor->log_behind_files = UINT64_MAX;
    }
    if (position.ok()) return absl::OkStatus();
  } else if (EntriesInMemory(db, column_family) > 0) {
    const rocksdb::Status flushed = db->Flush(rocksdb::FlushOptions(), column_family);
    // A database that cannot be written to has only the contents of its log in memory.
    if (!flushed.IsNotSupported()) {
      RETURN_IF_ERROR(
          FromRocksDb(flushed, absl::StrFormat("cannot flush column family '%s' of database '%s'",
                                               column_family->GetName(), db->GetName())));
    }
  }
  // Files contain everything that the log lacks. A copy of a log that begins after these files also
  // has the files.
  ASSIGN_OR_RETURN(const std::vector<WalFile> logs, ListWalFiles(db));
  const uint64_t newest_log = logs.empty() ? 0 : logs.back().number;
  anchor->log_behind_files = std::max(anchor->log_behind_files, newest_log);
  if (!position.ok()) anchor->log.log_number = newest_log;
  return absl::OkStatus();
}

}  // namespace

void Anchor::MoveTo(const LogPosition& position) {
  if (position.place.offset == 0) return;  // there was nothing to read
  log = position;
  if (position.log_number > log_behind_files) AssumeProven();
}

void Anchor::AssumeProven() {
  files.clear();
  log_behind_files = 0;
  unproven.clear();
}

absl::Status Anchor::RecordFiles(TableFilesRecorder* recorder, OlderLogs* logs) {
  RETURN_IF_ERROR(recorder->Record(&tables));
  std::vector<LogPosition> found;
  if (!HasAllInFiles() && log.place.offset > 0) {
    ASSIGN_OR_RETURN(found, logs->Before(log.log_number, older_logs));
    RETURN_IF_ERROR(recorder->Record(&tables));
    if (HasAllInFiles()) found.clear();
  }
  older_logs = std::move(found);
  return absl::OkStatus();
}

void Anchor::SetSeen(SequenceNumber sequence) {
  if (tables == nullptr) return;
  auto seen = std::make_shared<TableFiles>(*tables);
  for (TableFile& file : seen->files) file.seen |= file.largest_sequence <= sequence;
  tables = std::move(seen);
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
        absl::StrFormat("malformed description of a database state: %s", Quoted(text)));
  }
  return anchor;
}

absl::StatusOr<Anchor> TakeAnchor(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                                  SequenceNumber sequence, bool read_only) {
  Anchor anchor;
  ASSIGN_OR_RETURN(anchor.session_id, SessionId(db));
  anchor.column_family_id = column_family->GetID();
  ASSIGN_OR_RETURN(anchor.ingested_file, NewestIngestedFile(db, column_family, sequence));
  RETURN_IF_ERROR(FindInLog(db, column_family, sequence, read_only, &anchor));
  TableFilesRecorder recorder(db, column_family);
  OlderLogs older_logs(db);
  RETURN_IF_ERROR(anchor.RecordFiles(&recorder, &older_logs));
  anchor.SetSeen(sequence);
  const bool in_files = anchor.tables != nullptr && anchor.tables->complete;
  if (sequence > 0 && anchor.log.place.offset == 0 && anchor.unproven.empty() && !in_files) {
    anchor.unproven = absl::StrFormat(
        "its state %d was neither completely in the log nor completely in table files when the "
        "index was built",
        sequence);
  }
  return anchor;
}

absl::Status CheckContinues(SequenceNumber sequence, rocksdb::DB* db,
                            rocksdb::ColumnFamilyHandle* column_family,
                            const TableFilesOfFamilies* files, Anchor* anchor, bool* proven,
                            RowsToReadAgain* again) {
  *proven = true;
  *again = {};
  const bool of_database = !anchor->session_id.empty();
  if (of_database && column_family->GetID() != anchor->column_family_id) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "column family '%s' of database '%s' was dropped and made again, or belongs to another "
        "database: the index has id %d, the column family has id %d; rebuild the index",
        column_family->GetName(), db->GetName(), anchor->column_family_id, column_family->GetID()));
  }
  ASSIGN_OR_RETURN(std::string session, SessionId(db));
  if (session == anchor->session_id) return absl::OkStatus();
  std::string missing = anchor->unproven;
  bool by_files = false;
  std::optional<LostRows> lost;
  if (sequence > 0 && anchor->log.place.offset > 0) {
    if (!anchor->HasAllInFiles()) {
      lost.emplace(db, column_family, FlushedUpTo(*anchor), files);
      for (const LogPosition& log : anchor->older_logs) RETURN_IF_ERROR(lost->ReadFile(log));
    }
    ASSIGN_OR_RETURN(const LogEvidence evidence,
                     ReadLogEvidence(anchor->log, db, lost.has_value() ? &*lost : nullptr));
    by_files = evidence == LogEvidence::kGone;
    if (evidence == LogEvidence::kDiffers) {
      return Differs(
          db, sequence,
          absl::StrFormat(
              "the first %d bytes of its log file %06d.log are not those that the index has read",
              anchor->log.place.offset, anchor->log.log_number));
    }
    if (evidence == LogEvidence::kMayRepeat) {
      return Differs(db, sequence,
                     "its last rows then are in no table file, since their column family was "
                     "dropped or a flush dropped them, and RocksDB may have given their sequence "
                     "numbers to other rows");
    }
  } else if (sequence > 0) {
    by_files = true;
  }
  if (missing.empty() && !anchor->files.empty()) {
    missing = "an older version of Cairn stored its proof";
  }
  if (missing.empty() && by_files) {
    ASSIGN_OR_RETURN(missing, MissingForFiles(sequence, db, column_family, *anchor));
    if (!missing.empty() && anchor->log.place.offset > 0) {
      missing = absl::StrFormat(
          "its log %d, which would prove it, is gone (set DBOptions::WAL_ttl_seconds or "
          "WAL_size_limit_MB to keep logs), and %s",
          anchor->log.log_number, missing);
    }
  }
  ChangedFiles which = ChangedFiles::kLost;
  if (missing.empty() && by_files) {
    which = ChangedFiles::kDifferent;
  } else if (anchor->log_behind_files > 0 && anchor->log.log_number <= anchor->log_behind_files) {
    which = ChangedFiles::kGone;
  }
  RETURN_IF_ERROR(FindRanges(sequence, db, column_family, files, *anchor, which, &again->ranges));
  if (lost.has_value()) {
    for (const std::string& row : lost->rows()) again->rows.LookUp(row);
    again->ranges.insert(again->ranges.end(), lost->ranges().begin(), lost->ranges().end());
    UniteRanges(&again->ranges);
  }
  anchor->session_id = std::move(session);
  anchor->column_family_id = column_family->GetID();
  if (missing.empty()) return absl::OkStatus();
  *proven = false;
  return absl::FailedPreconditionError(
      absl::StrFormat("nothing proves that database '%s' continues the state %d that the index "
                      "has: %s; "
                      "rebuild the index",
                      db->GetName(), sequence, missing));
}

}  // namespace cairn
