#include "engine/log/flushed_rows.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "engine/log/table_files.h"
#include "engine/log/wal_reader.h"
#include "engine/util/status.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"
#include "rocksdb/metadata.h"

namespace cairn {
namespace {

bool MayHaveNumbers(const rocksdb::SstFileMetaData& file, const FlushedRows::Record& record) {
  return file.file_number > record.log_number && file.smallest_seqno <= record.last &&
         (file.largest_seqno >= record.first || file.smallest_seqno == 0);
}

}  // namespace

FlushedRows::FlushedRows(rocksdb::DB* db,
                         absl::Span<rocksdb::ColumnFamilyHandle* const> column_families)
    : db_(db) {
  for (rocksdb::ColumnFamilyHandle* handle : column_families) {
    Family& family = families_.emplace_back();
    family.handle = handle;
    rocksdb::ColumnFamilyMetaData metadata;
    db->GetColumnFamilyMetaData(handle, &metadata);
    for (const rocksdb::LevelMetaData& level : metadata.levels) {
      if (level.level > 0) {
        family.levels.push_back(level.files);
        continue;
      }
      for (const rocksdb::SstFileMetaData& file : level.files) {
        Files& files = file.smallest_seqno > 0 ? family.level_0 : family.levels.emplace_back();
        files.push_back(file);
      }
    }
    std::sort(family.level_0.begin(), family.level_0.end(),
              [](const auto& a, const auto& b) { return a.largest_seqno < b.largest_seqno; });
    for (Files& files : family.levels) {
      std::sort(files.begin(), files.end(),
                [](const auto& a, const auto& b) { return a.smallestkey < b.smallestkey; });
    }
  }
}

bool FlushedRows::CanHold(const Family& family, const Record& record, const RowChange& change) {
  const std::string_view first = change.key;
  const std::string_view last =
      change.kind == RowChangeKind::kDeleteRange ? change.value : change.key;
  auto recent =
      std::lower_bound(family.level_0.begin(), family.level_0.end(), record.first,
                       [](const auto& file, SequenceNumber n) { return file.largest_seqno < n; });
  for (; recent != family.level_0.end() && recent->smallest_seqno <= record.last; ++recent) {
    if (recent->file_number > record.log_number && recent->smallestkey <= first &&
        last <= recent->largestkey) {
      return true;
    }
  }
  for (const Files& files : family.levels) {
    auto file =
        std::lower_bound(files.begin(), files.end(), first,
                         [](const auto& f, std::string_view key) { return f.largestkey < key; });
    // A compaction cuts the deletion of a range where a file ends and the next one begins.
    for (std::string_view from = first; file != files.end(); from = (file++)->largestkey) {
      if (file->smallestkey > from || !MayHaveNumbers(*file, record)) break;
      if (file->largestkey >= last) return true;
    }
  }
  return false;
}

absl::Status FlushedRows::Check(const Record& record, size_t family,
                                const rocksdb::Snapshot* snapshot, size_t begin,
                                RowChanges* changes) const {
  const size_t end = changes->size();
  for (size_t i = begin; i < end; ++i) {
    const RowChange change = (*changes)[i];
    if (change.kind == RowChangeKind::kLookUp) continue;
    if (CanHold(families_[family], record, change)) continue;
    if (change.kind == RowChangeKind::kDeleteRange) {
      RETURN_IF_ERROR(LookUpRange(families_[family], record, snapshot, std::string(change.key),
                                  std::string(change.value), changes));
    } else {
      changes->ReplaceByLookUp(i);
    }
  }
  return absl::OkStatus();
}

absl::Status FlushedRows::AddLost(const Record& record, size_t family, const RowChanges& changes,
                                  RowChanges* look_ups) const {
  for (size_t i = 0; i < changes.size(); ++i) {
    const RowChange change = changes[i];
    if (CanHold(families_[family], record, change)) continue;
    if (change.kind == RowChangeKind::kDeleteRange) {
      RETURN_IF_ERROR(
          LookUpRange(families_[family], record, nullptr, change.key, change.value, look_ups));
    } else {
      look_ups->LookUp(change.key);
    }
  }
  return absl::OkStatus();
}

absl::Status FlushedRows::LookUpRange(const Family& family, const Record& record,
                                      const rocksdb::Snapshot* snapshot, std::string_view lower,
                                      std::string_view upper, RowChanges* changes) const {
  const rocksdb::Slice end(upper.data(), upper.size());
  rocksdb::ReadOptions options;
  options.snapshot = snapshot;
  options.iterate_upper_bound = &end;
  options.total_order_seek = true;
  options.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> row(db_->NewIterator(options, family.handle));
  size_t rows = 0;
  for (row->Seek({lower.data(), lower.size()}); row->Valid(); row->Next()) {
    if (++rows > kMaxRowsReadAgain) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "log file %06d.log of database '%s' deletes a range of rows of column family %s, but no "
          "table file shows that, and more than %d rows may differ; rebuild the index",
          record.log_number, db_->GetName(), Quoted(family.handle->GetName()), kMaxRowsReadAgain));
    }
    changes->LookUp({row->key().data(), row->key().size()});
  }
  // Also if there are no rows, the state is complete only at the snapshot.
  changes->LookUp(lower);
  return FromRocksDb(row->status(),
                     absl::StrFormat("cannot read rows of database '%s'", db_->GetName()));
}

// A transaction that was prepared in a file before has its rows in table files. Otherwise RocksDB
// would need that file.
LostRows::LostRows(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family)
    : db_(db),
      flushed_(db, absl::MakeConstSpan(&column_family, 1)),
      batches_({column_family->GetID()}, [](std::string_view) { return PreparedTransaction(); }) {}

absl::Status LostRows::Read(uint64_t log_number, SequenceNumber first,
                            const rocksdb::WriteBatch& batch) {
  changes_.Clear();
  ASSIGN_OR_RETURN(const uint64_t count,
                   batches_.Read(batch, first, 0, UINT64_MAX, absl::MakeSpan(&changes_, 1)));
  return flushed_.AddLost({log_number, first, first + count - 1}, 0, changes_, &look_ups_);
}

absl::Status LostRows::ReadFile(const LogPosition& log) {
  ASSIGN_OR_RETURN(const std::vector<WalFile> files, ListWalFiles(db_));
  const auto file = std::find_if(files.begin(), files.end(),
                                 [&](const WalFile& f) { return f.number == log.log_number; });
  if (file == files.end()) return absl::OkStatus();
  const absl::StatusOr<std::unique_ptr<WalReader>> opened = OpenWalFile(db_, *file);
  if (absl::IsNotFound(opened.status())) return absl::OkStatus();
  RETURN_IF_ERROR(opened.status());
  WalReader& reader = **opened;
  while (reader.end().offset < log.place.offset && reader.Next()) {
    const SequenceNumber first = reader.sequence();
    RETURN_IF_ERROR(Read(log.log_number, first, rocksdb::WriteBatch(reader.TakeRecord())));
  }
  return absl::IsDataLoss(reader.status()) ? absl::OkStatus() : reader.status();
}

}  // namespace cairn
