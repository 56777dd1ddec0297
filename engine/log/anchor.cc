#include "engine/log/anchor.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "engine/log/ingested_files.h"
#include "engine/log/update_log.h"
#include "engine/util/status.h"
#include "index/escaped_text.h"
#include "rocksdb/metadata.h"
#include "rocksdb/unique_id.h"

namespace cairn {
namespace {

absl::StatusOr<std::string> SessionId(rocksdb::DB* db) {
  std::string id;
  if (absl::Status s =
          FromRocksDb(db->GetDbSessionId(id),
                      absl::StrFormat("cannot tell the session of database '%s'", db->GetName()));
      !s.ok()) {
    return s;
  }
  return id;
}

// The place in the log behind what ends at `sequence`, of which it must have everything after
// `after`. Errors as UpdateLog's.
absl::StatusOr<LogPosition> ReadTo(rocksdb::DB* db, SequenceNumber after, SequenceNumber sequence) {
  absl::StatusOr<std::unique_ptr<UpdateLog>> log = UpdateLog::Open(db, {}, after, sequence);
  if (!log.ok()) return log.status();
  while (!(*log)->done()) {
    if (absl::Status s = (*log)->Read(SIZE_MAX, {}); !s.ok()) return s;
  }
  return (*log)->position();
}

// The first and the last record of the log's files from `first` on that begin by `sequence`; 0 for
// none.
struct Records {
  SequenceNumber first = 0;
  SequenceNumber last = 0;
};

absl::StatusOr<Records> RecordsUpTo(rocksdb::DB* db, SequenceNumber sequence,
                                    absl::Span<const WalFile> files) {
  Records records;
  for (const WalFile& file : files) {
    const absl::StatusOr<std::unique_ptr<WalReader>> reader = OpenWalFile(db, file);
    if (absl::IsNotFound(reader.status())) continue;
    if (!reader.ok()) return reader.status();
    while ((*reader)->Next() && (*reader)->sequence() <= sequence) {
      records.last = (*reader)->sequence();
      if (records.first == 0) records.first = records.last;
    }
    if (!(*reader)->status().ok() && !absl::IsDataLoss((*reader)->status())) {
      return (*reader)->status();
    }
  }
  return records;
}

// The number of entries in a column family's memory, or in that of all where it is null.
uint64_t EntriesInMemory(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family) {
  uint64_t all = 0;
  for (const std::string& property : {rocksdb::DB::Properties::kNumEntriesActiveMemTable,
                                      rocksdb::DB::Properties::kNumEntriesImmMemTables}) {
    uint64_t entries = 0;
    const bool known = column_family != nullptr
                           ? db->GetIntProperty(column_family, property, &entries)
                           : db->GetAggregatedIntProperty(property, &entries);
    if (!known) return UINT64_MAX;
    all += entries;
  }
  return all;
}

// A table file by its number and unique id; empty where it is not live.
absl::StatusOr<std::string> TableId(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                                    uint64_t number) {
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(column_family, &metadata);
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    for (const rocksdb::SstFileMetaData& file : level.files) {
      if (file.file_number != number) continue;
      const std::string behind = file.largestkey + '\0';
      const rocksdb::Range range(file.smallestkey, behind);
      rocksdb::TablePropertiesCollection properties;
      std::string id;
      rocksdb::Status s = db->GetPropertiesOfTablesInRange(column_family, &range, 1, &properties);
      for (const auto& [path, table] : properties) {
        if (!absl::EndsWith(path, file.relative_filename)) continue;
        if (s.ok()) s = rocksdb::GetUniqueIdFromTableProperties(*table, &id);
      }
      if (s.IsNotSupported()) return std::string();  // of a RocksDB that gave files none
      if (absl::Status read =
              FromRocksDb(s, absl::StrFormat("cannot identify file '%s' of database '%s'",
                                             file.relative_filename, db->GetName()));
          !read.ok()) {
        return read;
      }
      return id.empty() ? id : absl::StrFormat("%d:%s", number, rocksdb::UniqueIdToHumanString(id));
    }
  }
  return std::string();
}

// The newest table file of the column family, where the files hold everything up to `sequence`.
absl::StatusOr<std::string> ProvingTable(rocksdb::DB* db,
                                         rocksdb::ColumnFamilyHandle* column_family,
                                         SequenceNumber sequence) {
  if (EntriesInMemory(db, column_family) != 0) return std::string();
  std::vector<rocksdb::LiveFileMetaData> files;
  db->GetLiveFilesMetaData(&files);
  bool has_sequence = EntriesInMemory(db, nullptr) == 0;
  uint64_t newest = 0;
  for (const rocksdb::LiveFileMetaData& file : files) {
    has_sequence |= file.largest_seqno == sequence;
    if (file.column_family_name == column_family->GetName()) {
      newest = std::max(newest, file.file_number);
    }
  }
  if (!has_sequence || newest == 0) return std::string();
  return TableId(db, column_family, newest);
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
  const absl::StatusOr<std::vector<WalFile>> files = ListWalFiles(db);
  if (!files.ok()) return files.status();
  for (const WalFile& file : *files) {
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
  if (!files->empty() && files->back().number < position.log_number) return false;
  return std::optional<bool>();
}

}  // namespace

void Anchor::MoveTo(const LogPosition& position) {
  if (position == log) return;
  log = position;
  table.clear();
  unproven.clear();
}

std::string Anchor::ToString() const {
  return absl::StrFormat("session=%s family=%d log=%d:%d:%016x ingested=%d table=%s unproven=%s",
                         session_id, column_family_id, log.log_number, log.place.offset,
                         log.place.checksum, ingested_file, table, unproven);
}

absl::StatusOr<Anchor> Anchor::Parse(std::string_view text) {
  Anchor anchor;
  const std::vector<std::string> fields =
      absl::StrSplit(absl::string_view(text.data(), text.size()), absl::MaxSplits(' ', 5));
  const auto value = [&fields](size_t i, std::string_view name) {
    const std::string field = i < fields.size() ? fields[i] : std::string();
    return field.starts_with(name) ? field.substr(name.size()) : std::string();
  };
  const std::vector<std::string> log = absl::StrSplit(value(2, "log="), ':');
  anchor.session_id = value(0, "session=");
  anchor.table = value(4, "table=");
  anchor.unproven = value(5, "unproven=");
  const bool numbers = log.size() == 3 &&
                       absl::SimpleAtoi(value(1, "family="), &anchor.column_family_id) &&
                       absl::SimpleAtoi(log[0], &anchor.log.log_number) &&
                       absl::SimpleAtoi(log[1], &anchor.log.place.offset) &&
                       absl::SimpleHexAtoi(log[2], &anchor.log.place.checksum) &&
                       absl::SimpleAtoi(value(3, "ingested="), &anchor.ingested_file);
  if (!numbers || anchor.ToString() != text) {
    return absl::DataLossError(
        absl::StrFormat("%s does not say which state of a database an index is of", Quoted(text)));
  }
  return anchor;
}

absl::StatusOr<Anchor> TakeAnchor(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                                  SequenceNumber sequence, bool read_only) {
  Anchor anchor;
  absl::StatusOr<std::string> session = SessionId(db);
  if (!session.ok()) return session.status();
  anchor.session_id = *std::move(session);
  anchor.column_family_id = column_family->GetID();
  const absl::StatusOr<uint64_t> ingested = NewestIngestedFile(db, column_family, sequence);
  if (!ingested.ok()) return ingested.status();
  anchor.ingested_file = *ingested;

  if (db->GetDBOptions().manual_wal_flush) {
    if (absl::Status s = FromRocksDb(
            db->FlushWAL(/*sync=*/false),
            absl::StrFormat("cannot write the log of database '%s' out", db->GetName()));
        !s.ok() && !read_only) {
      return s;
    }
  }
  const absl::StatusOr<std::vector<WalFile>> files = ListWalFiles(db);
  if (!files.ok()) return files.status();
  size_t archived = 0;
  while (archived < files->size() && (*files)[archived].path == (*files)[archived].archived_path) {
    ++archived;
  }
  const absl::StatusOr<Records> records =
      RecordsUpTo(db, sequence, absl::MakeConstSpan(*files).subspan(archived));
  absl::StatusOr<LogPosition> position = absl::FailedPreconditionError("the log was empty");
  if (records.ok() && records->first > 0) {
    position = ReadTo(db, records->first - 1, sequence);
    // Rows written past the log leave a gap in it, as ingested files do, unless they came before
    // its first record. A database that is open for reading has none.
    const bool complete = position.ok();
    if (!complete) position = ReadTo(db, records->last - 1, sequence);
    if (position.ok()) anchor.log = *position;
    if (complete && (read_only || records->first == 1)) return anchor;
  }
  if (!read_only && EntriesInMemory(db, column_family) > 0) {
    const rocksdb::Status flushed = db->Flush(rocksdb::FlushOptions(), column_family);
    // What cannot be written to holds nothing but what its log has.
    if (!flushed.IsNotSupported()) {
      if (absl::Status s = FromRocksDb(
              flushed, absl::StrFormat("cannot flush column family '%s' of database '%s'",
                                       column_family->GetName(), db->GetName()));
          !s.ok()) {
        return s;
      }
    }
  }
  if (position.ok()) return anchor;
  if (!files->empty()) anchor.log.log_number = files->back().number;
  absl::StatusOr<std::string> table = ProvingTable(db, column_family, sequence);
  if (!table.ok()) return table.status();
  anchor.table = *std::move(table);
  if (anchor.table.empty() && sequence > 0) {
    anchor.unproven = absl::StrFormat(
        "its state %d stood neither in the log nor in table files alone when the index was built: "
        "%s",
        sequence, position.status().message());
  }
  return anchor;
}

absl::Status CheckContinues(const Anchor& anchor, SequenceNumber sequence, rocksdb::DB* db,
                            rocksdb::ColumnFamilyHandle* column_family, bool* proven) {
  *proven = true;
  const bool of_database = !anchor.session_id.empty();
  if (of_database && column_family->GetID() != anchor.column_family_id) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "column family '%s' of database '%s' was dropped and made again, or is another's: the "
        "index is of the one with id %d, and this has %d; build the index anew",
        column_family->GetName(), db->GetName(), anchor.column_family_id, column_family->GetID()));
  }
  const absl::StatusOr<std::string> session = SessionId(db);
  if (!session.ok()) return session.status();
  if (*session == anchor.session_id || sequence == 0) return absl::OkStatus();
  std::string missing;
  if (anchor.log.place.offset > 0) {
    const absl::StatusOr<std::optional<bool>> agrees = LogAgrees(anchor.log, db);
    if (!agrees.ok()) return agrees.status();
    if (agrees->has_value()) {
      if (**agrees) return absl::OkStatus();
      return Differs(db, sequence,
                     absl::StrFormat("its log %d is not, up to byte %d, as it was then",
                                     anchor.log.log_number, anchor.log.place.offset));
    }
    missing = absl::StrFormat(
        "its log %d, which would prove it, is gone (set DBOptions::WAL_ttl_seconds or "
        "WAL_size_limit_MB to have logs kept)",
        anchor.log.log_number);
  } else if (!anchor.table.empty()) {
    uint64_t number = 0;
    if (!absl::SimpleAtoi(anchor.table.substr(0, anchor.table.find(':')), &number)) number = 0;
    const absl::StatusOr<std::string> table = TableId(db, column_family, number);
    if (!table.ok()) return table.status();
    if (*table == anchor.table) return absl::OkStatus();
    if (!table->empty()) {
      return Differs(db, sequence,
                     absl::StrFormat("its table file %d is another than then", number));
    }
    missing =
        absl::StrFormat("its table file %d, which would prove it, has been compacted", number);
  } else {
    missing = anchor.unproven;
  }
  *proven = false;
  return absl::FailedPreconditionError(absl::StrFormat(
      "nothing proves that database '%s' continues the state %d that the index has: %s; build the "
      "index anew",
      db->GetName(), sequence, missing));
}

}  // namespace cairn
