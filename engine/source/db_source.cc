#include "engine/source/db_source.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <typeinfo>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/rows/row_lookup.h"
#include "engine/source/key_ranges.h"
#include "engine/util/key_order.h"
#include "engine/util/status.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "rocksdb/table.h"

namespace cairn {
namespace {

rocksdb::Slice ToSlice(std::string_view bytes) {
  return {bytes.data(), bytes.size()};
}

// Rows of one MultiGet: enough to share reads of blocks, few enough for the cache.
constexpr size_t kReadValues = 1024;

// The visible keys of a view, with RocksDB's estimates of the bytes between them. The estimates for
// files are accurate to a block. Those for memory can be wrong by a factor of three, and they count
// bytes that files compress. So memory counts only if it has more bytes than the files.
class DbKeySpace final : public KeySpace {
 public:
  DbKeySpace(const DbView& view, const rocksdb::ReadOptions& options, uint64_t file_bytes)
      : view_(view),
        is_reverse_(view.order == KeyOrder::kReverseBytewise),
        iterator_(view.db->NewIterator(options, view.column_family)) {
    uint64_t memory_bytes = 0;
    view.db->GetIntProperty(view.column_family, rocksdb::DB::Properties::kCurSizeAllMemTables,
                            &memory_bytes);
    weigh_memory_ = file_bytes < memory_bytes;
  }

  absl::StatusOr<std::vector<uint64_t>> Weigh(absl::Span<const KeySpan> spans) override {
    rocksdb::SizeApproximationOptions options;
    options.include_files = true;
    options.include_memtables = weigh_memory_;
    std::vector<rocksdb::Range> ranges;
    ranges.reserve(spans.size());
    for (const KeySpan& span : spans) {
      ranges.emplace_back(ToSlice(span.lower), ToSlice(span.upper));
      if (is_reverse_) std::swap(ranges.back().start, ranges.back().limit);
    }
    std::vector<uint64_t> sizes(spans.size());
    RETURN_IF_ERROR(
        FromRocksDb(view_.db->GetApproximateSizes(options, view_.column_family, ranges.data(),
                                                  static_cast<int>(ranges.size()), sizes.data()),
                    absl::StrFormat("cannot estimate sizes in %s", view_.description)));
    return sizes;
  }

  absl::Status FindNeighbours(std::string_view key, std::optional<std::string>* below,
                              std::optional<std::string>* at_or_above) override {
    below->reset();
    at_or_above->reset();
    if (is_reverse_) {
      iterator_->SeekForPrev(ToSlice(key));
    } else {
      iterator_->Seek(ToSlice(key));
    }
    if (iterator_->Valid()) {
      *at_or_above = iterator_->key().ToString();
      is_reverse_ ? iterator_->Next() : iterator_->Prev();
    } else if (iterator_->status().ok()) {
      is_reverse_ ? iterator_->SeekToFirst() : iterator_->SeekToLast();
    }
    if (iterator_->Valid()) *below = iterator_->key().ToString();
    return FromRocksDb(iterator_->status(), absl::StrFormat("cannot split %s", view_.description));
  }

 private:
  const DbView& view_;
  const bool is_reverse_;
  const std::unique_ptr<rocksdb::Iterator> iterator_;
  bool weigh_memory_ = false;
};

}  // namespace

bool MayChangeValues(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family) {
  rocksdb::DB* root = db->GetRootDB();
  if (root == db) return false;
  // Layers such as DBWithTTL change values and cannot return columns. Layers that only forward
  // calls return the iterators of the database below.
  const rocksdb::ReadOptions options;
  const std::unique_ptr<rocksdb::Iterator> above(db->NewIterator(options, column_family));
  const std::unique_ptr<rocksdb::Iterator> below(root->NewIterator(options, column_family));
  const rocksdb::Iterator& a = *above;
  const rocksdb::Iterator& b = *below;
  return typeid(a) != typeid(b);
}

absl::StatusOr<std::unique_ptr<SnapshotSource>> SnapshotSource::FromDb(
    rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family) try {
  if (db == nullptr) return absl::InvalidArgumentError("FromDb: expected a database, got null");
  return SourceAt(db, column_family, std::make_shared<rocksdb::ManagedSnapshot>(db));
} catch (...) {
  return StatusOfException("taking a snapshot");
}

absl::StatusOr<std::unique_ptr<SnapshotSource>> SourceAt(
    rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
    const std::shared_ptr<rocksdb::ManagedSnapshot>& snapshot, Trial trial) {
  DbView view;
  view.db = db;
  view.column_family = column_family != nullptr ? column_family : db->DefaultColumnFamily();
  view.description = absl::StrFormat("database '%s', column family '%s'", db->GetName(),
                                     view.column_family->GetName());
  ASSIGN_OR_RETURN(view.order,
                   KeyOrderOf(view.column_family->GetComparator(), view.column_family->GetName(),
                              absl::StrFormat("database '%s'", db->GetName())));
  if (MayChangeValues(db, view.column_family)) view.form = RowForm::kValuesOnly;
  RETURN_IF_ERROR(FromRocksDb(db->GetDbIdentity(view.database_id),
                              absl::StrFormat("cannot identify %s", view.description)));
  view.snapshot = snapshot->snapshot();
  if (view.snapshot == nullptr) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s does not support snapshots (inplace_update_support), so no frozen state of it can be "
        "read",
        view.description));
  }
  view.sequence = view.snapshot->GetSequenceNumber();
  auto source = std::make_unique<DbSource>(std::move(view), snapshot);
  if (trial == Trial::kNone) return source;
  // Some databases, such as secondary instances, return snapshots that they cannot read.
  ASSIGN_OR_RETURN(std::unique_ptr<RowCursor> cursor, source->Scan(PrimaryKeyRange()));
  RETURN_IF_ERROR(cursor->status());
  return source;
}

absl::Status ReadValues(rocksdb::DB* db, rocksdb::Transaction* transaction,
                        rocksdb::ColumnFamilyHandle* column_family,
                        const rocksdb::Snapshot* snapshot, const StringList& primary_keys,
                        const StopCondition& stop, StringList* values,
                        std::vector<size_t>* value_of) {
  const auto read_error = [&](const rocksdb::Status& status) {
    return FromRocksDb(status,
                       absl::StrFormat("cannot read rows of database '%s', column family '%s'",
                                       db->GetName(), column_family->GetName()));
  };
  const size_t size = primary_keys.size();
  value_of->assign(size, SIZE_MAX);
  rocksdb::ReadOptions options;
  options.snapshot = snapshot;
  if (size == 1) {
    RETURN_IF_ERROR(stop.Check());
    rocksdb::PinnableSlice value;
    const rocksdb::Slice key = ToSlice(primary_keys[0]);
    const rocksdb::Status status = transaction == nullptr
                                       ? db->Get(options, column_family, key, &value)
                                       : transaction->Get(options, column_family, key, &value);
    if (status.IsNotFound()) return absl::OkStatus();
    if (!status.ok()) return read_error(status);
    (*value_of)[0] = values->size();
    values->Append(value.ToStringView());
    return absl::OkStatus();
  }
  // RocksDB reads a block once for all its keys if they are in order.
  std::vector<size_t> order(size);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return primary_keys[a] < primary_keys[b]; });
  const size_t batch = std::min(size, kReadValues);
  std::vector<rocksdb::Slice> keys(batch);
  std::vector<rocksdb::PinnableSlice> found(batch);
  std::vector<rocksdb::Status> statuses(batch);
  for (size_t first = 0; first < size;) {
    RETURN_IF_ERROR(stop.Check());
    const size_t begin = first;
    size_t distinct = 0;
    for (; first < size; ++first) {
      const rocksdb::Slice key = ToSlice(primary_keys[order[first]]);
      if (distinct > 0 && keys[distinct - 1] == key) continue;
      if (distinct == batch) break;
      keys[distinct++] = key;
    }
    const bool sorted = KnownKeyOrderOf(column_family) == KeyOrder::kBytewise;
    if (transaction == nullptr) {
      db->MultiGet(options, column_family, distinct, keys.data(), found.data(), statuses.data(),
                   sorted);
    } else {
      transaction->MultiGet(options, column_family, distinct, keys.data(), found.data(),
                            statuses.data(), sorted);
    }
    size_t at = 0;
    for (size_t i = begin; i < first; ++i) {
      const bool repeats = i > begin && primary_keys[order[i]] == primary_keys[order[i - 1]];
      if (repeats) {
        (*value_of)[order[i]] = (*value_of)[order[i - 1]];
        continue;
      }
      const rocksdb::Status& status = statuses[at];
      rocksdb::PinnableSlice& value = found[at++];
      if (status.ok()) {
        (*value_of)[order[i]] = values->size();
        values->Append(value.ToStringView());
      } else if (!status.IsNotFound()) {
        return read_error(status);
      }
      value.Reset();
    }
  }
  return absl::OkStatus();
}

DbSource::DbSource(DbView view, std::shared_ptr<const void> owned)
    : owned_(std::move(owned)),
      view_(std::move(view)),
      column_family_(view_.column_family->GetName()) {
  if (view_.form == RowForm::kValuesOnly) {
    lookup_ = LookupWay::kSeeksOfValues;
  } else if (view_.levels_are_ordered) {
    lookup_ = EntityLookup(view_.db, view_.column_family);
  }
}

rocksdb::ReadOptions DbSource::ScanOptions() const {
  // With readahead of 2 MB and without filling the cache, a scan is 25% to 33% faster. Pinning data
  // makes it slower. See the benchmark RocksDb/scan (tools/bench/engine/rocksdb_scan.cc).
  rocksdb::ReadOptions options;
  options.snapshot = view_.snapshot;
  options.fill_cache = false;
  options.readahead_size = view_.readahead_bytes;
  options.total_order_seek = true;
  options.verify_checksums = true;
  return options;
}

absl::Status DbSource::CheckScans() const {
  if (view_.order == KeyOrder::kBytewise) return absl::OkStatus();
  const rocksdb::Options options = view_.db->GetOptions(view_.column_family);
  for (const char* format : {"PlainTable", "CuckooTable"}) {
    if (std::string_view(options.table_factory->Name()) != format) continue;
    return absl::UnimplementedError(
        absl::StrFormat("%s: keys in reverse order are read backwards, which table files of the "
                        "format %s do not support",
                        view_.description, format));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RowCursor>> DbSource::Scan(const PrimaryKeyRange& range) const try {
  RETURN_IF_ERROR(CheckScans());
  return std::make_unique<DbRowCursor>(view_.db, view_.column_family, view_.order, ScanOptions(),
                                       range, view_.form, view_.description);
} catch (...) {
  return StatusOfException("opening a cursor");
}

absl::StatusOr<std::vector<PrimaryKeyRange>> DbSource::Split(int parts) const try {
  RETURN_IF_ERROR(CheckScans());
  rocksdb::ReadOptions options = ScanOptions();
  options.readahead_size = 0;
  rocksdb::ColumnFamilyMetaData metadata;
  view_.db->GetColumnFamilyMetaData(view_.column_family, &metadata);
  DbKeySpace keys(view_, options, metadata.size);
  std::vector<std::string> boundaries;
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    for (const rocksdb::SstFileMetaData& file : level.files) {
      boundaries.push_back(file.smallestkey);
    }
  }
  return CutKeyRanges(std::move(boundaries), parts, &keys);
} catch (...) {
  return StatusOfException("splitting a source");
}

absl::Status DbSource::Get(absl::Span<const std::string_view> primary_keys,
                           const std::function<absl::Status(size_t, const RowView&)>& visitor) const
    try {
  rocksdb::ReadOptions options;
  options.snapshot = view_.snapshot;
  options.total_order_seek = true;
  return LookUpRows(view_.db, view_.column_family, options, lookup_, primary_keys, visitor,
                    view_.description);
} catch (...) {
  return StatusOfException("reading rows");
}

uint64_t DbSource::approximate_rows() const {
  uint64_t rows = 0;
  view_.db->GetIntProperty(view_.column_family, rocksdb::DB::Properties::kEstimateNumKeys, &rows);
  return rows;
}

uint64_t DbSource::approximate_bytes() const {
  rocksdb::ColumnFamilyMetaData metadata;
  view_.db->GetColumnFamilyMetaData(view_.column_family, &metadata);
  return metadata.size + metadata.blob_file_size;
}

}  // namespace cairn
