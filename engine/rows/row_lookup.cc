#include "engine/rows/row_lookup.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/rows/row_cursor.h"
#include "engine/util/key_order.h"
#include "engine/util/status.h"
#include "index/machine/status_macros.h"
#include "rocksdb/version.h"

namespace cairn {
namespace {

using Visitor = std::function<absl::Status(size_t, const RowView&)>;

rocksdb::Slice ToSlice(std::string_view bytes) {
  return {bytes.data(), bytes.size()};
}

absl::Status ReadError(const rocksdb::Status& status, std::string_view description) {
  return FromRocksDb(status, absl::StrFormat("cannot read rows of %s", description));
}

absl::Status CheckAscending(absl::Span<const std::string_view> keys) {
  for (size_t i = 1; i < keys.size(); ++i) {
    if (keys[i] < keys[i - 1]) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "primary keys to read must ascend, but key %d is below key %d", i, i - 1));
    }
  }
  return absl::OkStatus();
}

// Seeks an iterator to one row after another.
absl::Status LookUpBySeeks(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                           const rocksdb::ReadOptions& options, RowForm form,
                           absl::Span<const std::string_view> keys, const Visitor& visitor,
                           std::string_view description) {
  const std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator(options, column_family));
  std::vector<ColumnView> scratch;
  RowView row;
  for (size_t i = 0; i < keys.size(); ++i) {
    const rocksdb::Slice key = ToSlice(keys[i]);
    if (i == 0 || keys[i] != keys[i - 1]) iterator->Seek(key);
    if (!iterator->Valid()) {
      if (!iterator->status().ok()) return ReadError(iterator->status(), description);
      continue;
    }
    if (iterator->key() != key) continue;
    SetRowAt(*iterator, form, &scratch, &row);
    RETURN_IF_ERROR(visitor(i, row));
  }
  return absl::OkStatus();
}

#if ROCKSDB_MAJOR >= 8
// Number of keys per MultiGetEntity: enough to share block reads, few enough for the cache.
constexpr size_t kBatch = 256;

absl::Status LookUpEntities(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                            const rocksdb::ReadOptions& options,
                            absl::Span<const std::string_view> keys, const Visitor& visitor,
                            std::string_view description) {
  const bool sorted = KnownKeyOrderOf(column_family) == KeyOrder::kBytewise;
  std::vector<rocksdb::Slice> slices(std::min(keys.size(), kBatch));
  std::vector<rocksdb::PinnableWideColumns> rows(slices.size());
  std::vector<rocksdb::Status> statuses(slices.size());
  std::vector<ColumnView> scratch;
  RowView row;
  for (size_t start = 0; start < keys.size(); start += kBatch) {
    const size_t count = std::min(kBatch, keys.size() - start);
    for (size_t i = 0; i < count; ++i) {
      slices[i] = ToSlice(keys[start + i]);
      rows[i].Reset();
    }
    db->MultiGetEntity(options, column_family, count, slices.data(), rows.data(), statuses.data(),
                       /*sorted_input=*/sorted);
    for (size_t i = 0; i < count; ++i) {
      if (statuses[i].IsNotFound()) continue;
      if (!statuses[i].ok()) return ReadError(statuses[i], description);
      SetRow(slices[i], rows[i].columns(), &scratch, &row);
      RETURN_IF_ERROR(visitor(start + i, row));
    }
  }
  return absl::OkStatus();
}
#else
// RocksDB 7 has no batched read of entities. Its MultiGet returns only the default column of an
// entity, and does not report the others. So each row is read by GetEntity, which is as fast. For
// rows in blob files, however, GetEntity returns the blob index instead of the value.
absl::Status LookUpEntities(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                            const rocksdb::ReadOptions& options,
                            absl::Span<const std::string_view> keys, const Visitor& visitor,
                            std::string_view description) {
  uint64_t blob_files = 0;
  db->GetIntProperty(column_family, rocksdb::DB::Properties::kNumBlobFiles, &blob_files);
  if (blob_files > 0) {
    return LookUpBySeeks(db, column_family, options, RowForm::kStored, keys, visitor, description);
  }
  rocksdb::PinnableWideColumns columns;
  std::vector<ColumnView> scratch;
  RowView row;
  for (size_t i = 0; i < keys.size(); ++i) {
    columns.Reset();
    const rocksdb::Slice key = ToSlice(keys[i]);
    const rocksdb::Status status = db->GetEntity(options, column_family, key, &columns);
    if (status.IsNotFound()) continue;
    if (!status.ok()) return ReadError(status, description);
    SetRow(key, columns.columns(), &scratch, &row);
    RETURN_IF_ERROR(visitor(i, row));
  }
  return absl::OkStatus();
}
#endif

}  // namespace

LookupWay EntityLookup([[maybe_unused]] rocksdb::DB* db,
                       [[maybe_unused]] rocksdb::ColumnFamilyHandle* column_family) {
#if ROCKSDB_MAJOR < 8
  // GetEntity of RocksDB 7 dereferences a null pointer if it finds a merge operand.
  const rocksdb::Options options = db->GetOptions(column_family);
  if (options.merge_operator != nullptr || options.enable_blob_files) return LookupWay::kSeeks;
#endif
  return LookupWay::kEntities;
}

absl::Status LookUpRows(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                        const rocksdb::ReadOptions& options, LookupWay way,
                        absl::Span<const std::string_view> primary_keys, const Visitor& visitor,
                        std::string_view description) {
  RETURN_IF_ERROR(CheckAscending(primary_keys));
  if (way == LookupWay::kEntities) {
    return LookUpEntities(db, column_family, options, primary_keys, visitor, description);
  }
  const RowForm form = way == LookupWay::kSeeksOfValues ? RowForm::kValuesOnly : RowForm::kStored;
  return LookUpBySeeks(db, column_family, options, form, primary_keys, visitor, description);
}

}  // namespace cairn
