#include "engine/rows/row_cursor.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "engine/util/status.h"

namespace cairn {

DbRowCursor::DbRowCursor(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                         KeyOrder order, rocksdb::ReadOptions options, const PrimaryKeyRange& range,
                         RowForm form, std::string description)
    : iterator_(db, column_family, order, std::move(options), range.lower, range.upper, range.open),
      form_(form),
      description_(std::move(description)) {}

bool DbRowCursor::Next() {
  if (!iterator_.Next()) return false;
  SetRowAt(iterator_.iterator(), form_, &columns_, &row_);
  return true;
}

absl::Status DbRowCursor::status() const {
  return FromRocksDb(iterator_.iterator().status(),
                     absl::StrFormat("cannot scan %s", description_));
}

}  // namespace cairn
