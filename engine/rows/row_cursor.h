#pragma once

#include <string>
#include <vector>

#include "cairn/snapshot_source.h"
#include "engine/util/range_iterator.h"
#include "rocksdb/db.h"

namespace cairn {

// The form of the rows that a database's iterators and reads return: rows as they are stored,
// including wide columns, or values that a layer above the database computes.
enum class RowForm { kStored, kValuesOnly };

// Sets *row to a RocksDB row as extractors see it. The views are valid as long as the bytes of
// `key` and `columns`. `scratch` stores the columns of an entity. A plain value, which RocksDB
// returns as one column without a name, costs one comparison.
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

// Sets *row to the row at an iterator's position. `scratch` is as in SetRow.
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

// Scans one range of a column family with a RocksDB iterator. The database must outlive it.
class DbRowCursor final : public RowCursor {
 public:
  // `options` has the snapshot and the readahead; the constructor sets the bounds. `description` is
  // the source's name in messages.
  DbRowCursor(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family, KeyOrder order,
              rocksdb::ReadOptions options, const PrimaryKeyRange& range, RowForm form,
              std::string description);
  DbRowCursor(const DbRowCursor&) = delete;
  DbRowCursor& operator=(const DbRowCursor&) = delete;

  bool Next() override;
  const RowView& row() const override { return row_; }
  absl::Status status() const override;

 private:
  RangeIterator iterator_;
  const RowForm form_;
  const std::string description_;
  RowView row_;
  std::vector<ColumnView> columns_;
};

}  // namespace cairn
