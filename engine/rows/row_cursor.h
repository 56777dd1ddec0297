#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cairn/snapshot_source.h"
#include "rocksdb/db.h"

namespace cairn {

// What a database's iterators and reads return: rows as they are stored, wide columns included, or
// what a layer above the database makes of their values.
enum class RowForm { kStored, kValuesOnly };

// A RocksDB row as extractors see it. The views stay valid as long as `key`'s and `columns`' bytes.
// `scratch` holds the columns of an entity; a plain value, which RocksDB gives as one column
// without a name, costs one comparison.
inline void SetRow(const rocksdb::Slice& key, const rocksdb::WideColumns& columns,
                   std::vector<ColumnView>* scratch, RowView* row) {
  row->primary_key = std::string_view(key.data(), key.size());
  if (columns.size() == 1 && columns.front().name().empty()) [[likely]] {
    const rocksdb::Slice& value = columns.front().value();
    row->value = std::string_view(value.data(), value.size());
    row->columns = {};
    return;
  }
  scratch->clear();
  row->value = {};
  for (const rocksdb::WideColumn& column : columns) {
    scratch->push_back({std::string_view(column.name().data(), column.name().size()),
                        std::string_view(column.value().data(), column.value().size())});
    if (column.name().empty()) row->value = scratch->back().value;
  }
  row->columns = *scratch;
}

// The row at an iterator's position, likewise.
inline void SetRowAt(const rocksdb::Iterator& iterator, RowForm form,
                     std::vector<ColumnView>* scratch, RowView* row) {
  if (form == RowForm::kStored) [[likely]] {
    SetRow(iterator.key(), iterator.columns(), scratch, row);
    return;
  }
  const rocksdb::Slice key = iterator.key();
  const rocksdb::Slice value = iterator.value();
  *row = {
      std::string_view(key.data(), key.size()), std::string_view(value.data(), value.size()), {}};
}

// Walks one range of a column family with a RocksDB iterator. The database must outlive it.
class DbRowCursor final : public RowCursor {
 public:
  // `options` carries the snapshot and how to read ahead; bounds are set here. `description` is
  // what messages call the source.
  DbRowCursor(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
              rocksdb::ReadOptions options, const PrimaryKeyRange& range, RowForm form,
              std::string description);
  DbRowCursor(const DbRowCursor&) = delete;
  DbRowCursor& operator=(const DbRowCursor&) = delete;

  bool Next() override;
  const RowView& row() const override { return row_; }
  absl::Status status() const override;

 private:
  const PrimaryKeyRange range_;
  const rocksdb::Slice upper_bound_;  // into range_; the iterator points to it
  const RowForm form_;
  const std::string description_;
  std::unique_ptr<rocksdb::Iterator> iterator_;
  bool started_ = false;
  bool ended_ = false;
  RowView row_;
  std::vector<ColumnView> columns_;
};

}  // namespace cairn
