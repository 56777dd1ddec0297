#include "engine/log/flushed_rows.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/log/wal_reader.h"
#include "engine/util/range_iterator.h"
#include "engine/util/status.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"
#include "rocksdb/metadata.h"

namespace cairn {
namespace {

// The maximum number of rows that are looked up because the deletion of a range is in doubt: some
// 100 MB of keys.
constexpr size_t kMaxRowsOfRanges = 4'000'000;

}  // namespace

FlushedRows::FlushedRows(rocksdb::DB* db,
                         absl::Span<rocksdb::ColumnFamilyHandle* const> column_families,
                         const TableFilesOfFamilies* files)
    : db_(db) {
  for (rocksdb::ColumnFamilyHandle* handle : column_families) {
    Family& family = families_.emplace_back();
    family.handle = handle;
    family.order = KnownKeyOrderOf(handle);
    for (const rocksdb::LevelMetaData& level : FilesOf(db, handle, files).levels) {
      Files& numbered = level.level == 0 ? family.level_0 : family.levels.emplace_back();
      for (const rocksdb::SstFileMetaData& file : level.files) {
        family.files.push_back(file);
        if (file.smallest_seqno > 0) numbered.push_back(file);
      }
    }
    std::sort(family.level_0.begin(), family.level_0.end(),
              [](const auto& a, const auto& b) { return a.largest_seqno < b.largest_seqno; });
    for (Files& level : family.levels) {
      std::sort(level.begin(), level.end(), [&](const auto& a, const auto& b) {
        return IsBefore(family.order, a.smallestkey, b.smallestkey);
      });
    }
  }
}

bool FlushedRows::CanHold(const Record& record, size_t family, const RowChange& change) const {
  const bool is_range = change.kind == RowChangeKind::kDeleteRange;
  const KeyOrder order = families_[family].order;
  const auto before = [&](std::string_view a, std::string_view b) { return IsBefore(order, a, b); };
  std::string_view first = change.key, last = is_range ? change.value : change.key;
  if (is_range && order == KeyOrder::kReverseBytewise) {  // RocksDB's range (RowChanges)
    first = change.value.substr(0, change.value.size() - 1);
    last = change.key.substr(0, change.key.size() - 1);
  }
  const auto has_numbers = [&](const rocksdb::SstFileMetaData& file) {
    return file.file_number > record.log_number && file.smallest_seqno <= record.last &&
           file.largest_seqno >= record.first;
  };
  const Files& level_0 = families_[family].level_0;
  auto recent =
      std::lower_bound(level_0.begin(), level_0.end(), record.first,
                       [](const auto& file, SequenceNumber n) { return file.largest_seqno < n; });
  for (; recent != level_0.end() && recent->smallest_seqno <= record.last; ++recent) {
    if (has_numbers(*recent) && !before(first, recent->smallestkey) &&
        !before(recent->largestkey, last)) {
      return true;
    }
  }
  for (const Files& level : families_[family].levels) {
    // A compaction cuts the deletion of a range where a file ends and the next one begins. So the
    // last key of a file may belong to the next one only.
    auto file = std::upper_bound(
        level.begin(), level.end(), first,
        [&](std::string_view key, const auto& f) { return before(key, f.largestkey); });
    for (std::string_view from = first; file != level.end(); from = (file++)->largestkey) {
      if (before(from, file->smallestkey) || !has_numbers(*file)) break;
      if (!before(file->largestkey, last)) return true;
    }
  }
  if (!is_range) return false;
  const Files& files = families_[family].files;
  return std::none_of(files.begin(), files.end(), [&](const rocksdb::SstFileMetaData& file) {
    return before(file.smallestkey, last) && !before(file.largestkey, first) &&
           file.smallest_seqno < record.first;
  });
}

void FlushedRows::Check(const Record& record, size_t family, size_t begin, RowChanges* changes) {
  std::vector<ChangedRange>& ranges = families_[family].ranges;
  const size_t end = changes->size();
  for (size_t i = begin; i < end; ++i) {
    const RowChange change = (*changes)[i];
    if (change.kind == RowChangeKind::kLookUp || CanHold(record, family, change)) continue;
    if (change.kind == RowChangeKind::kDeleteRange) {
      ranges.push_back({std::string(change.key), std::string(change.value), 0});
      // Shows the caller that the state is complete only once the rows of the range are looked up.
      changes->LookUp(ranges.back().lower);
    } else {
      changes->ReplaceByLookUp(i);
    }
  }
}

absl::Status FlushedRows::LookUpRanges(size_t family, const rocksdb::Snapshot* snapshot,
                                       RowChanges* changes) {
  std::vector<ChangedRange> ranges = std::exchange(families_[family].ranges, {});
  UniteRanges(&ranges);
  rocksdb::ColumnFamilyHandle* const handle = families_[family].handle;
  size_t rows = 0;
  for (const ChangedRange& range : ranges) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    options.total_order_seek = true;
    options.fill_cache = false;
    RangeIterator row(db_, handle, families_[family].order, options, range.lower, range.upper);
    while (row.Next()) {
      if (++rows > kMaxRowsOfRanges) {
        return absl::FailedPreconditionError(absl::StrFormat(
            "the log of database '%s' deletes ranges of rows of column family %s, but no table "
            "file shows that, and more than %d rows may differ; rebuild the index",
            db_->GetName(), Quoted(handle->GetName()), kMaxRowsOfRanges));
      }
      changes->LookUp({row.iterator().key().data(), row.iterator().key().size()});
    }
    RETURN_IF_ERROR(
        FromRocksDb(row.iterator().status(),
                    absl::StrFormat("cannot read rows of database '%s'", db_->GetName())));
  }
  return absl::OkStatus();
}

// A transaction that was prepared in a file before has its rows in table files. Otherwise RocksDB
// would need that file.
LostRows::LostRows(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                   SequenceNumber flushed, const TableFilesOfFamilies* files)
    : db_(db),
      flushed_up_to_(flushed),
      flushed_(db, absl::MakeConstSpan(&column_family, 1), files),
      batches_(
          {FollowedFamily::Of(column_family)},
          [](std::string_view) { return PreparedTransaction(); }, OrdersOfFamilies(db)) {}

absl::Status LostRows::Read(uint64_t log_number, SequenceNumber first,
                            const rocksdb::WriteBatch& batch) {
  changes_.Clear();
  const absl::StatusOr<uint64_t> count =
      batches_.Read(batch, first, flushed_up_to_, UINT64_MAX, absl::MakeSpan(&changes_, 1));
  if (!count.ok() && !absl::IsFailedPrecondition(count.status())) return count.status();
  const FlushedRows::Record record = {log_number, first,
                                      first + (count.ok() ? *count : changes_.size()) - 1};
  for (size_t i = 0; i < changes_.size(); ++i) {
    const RowChange change = changes_[i];
    const bool is_range = change.kind == RowChangeKind::kDeleteRange;
    const bool is_held = flushed_.CanHold(record, 0, change);
    if (is_range) {
      Forget(change.key, change.value);
      if (!is_held) ranges_.push_back({std::string(change.key), std::string(change.value), 0});
    } else if (!is_held) {
      rows_.emplace(change.key);
    } else if (!rows_.empty()) {
      rows_.erase(std::string(change.key));
    }
  }
  return absl::OkStatus();
}

void LostRows::Forget(std::string_view lower, std::string_view upper) {
  rows_.erase(rows_.lower_bound(std::string(lower)), rows_.lower_bound(std::string(upper)));
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
