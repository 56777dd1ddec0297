#include "engine/rows/row_cursor.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "engine/util/status.h"

namespace cairn {

DbRowCursor::DbRowCursor(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                         rocksdb::ReadOptions options, const PrimaryKeyRange& range, RowForm form,
                         std::string description)
    : range_(range), upper_bound_(range_.upper), form_(form), description_(std::move(description)) {
  if (!range_.open) options.iterate_upper_bound = &upper_bound_;
  iterator_.reset(db->NewIterator(options, column_family));
}

bool DbRowCursor::Next() {
  if (started_) [[likely]] {
    if (ended_) return false;
    iterator_->Next();
  } else {
    started_ = true;
    if (!range_.open && range_.lower >= range_.upper) {
      ended_ = true;  // an empty range, in which RocksDB must not seek
      return false;
    }
    if (range_.lower.empty()) {
      iterator_->SeekToFirst();
    } else {
      iterator_->Seek(range_.lower);
    }
  }
  if (!iterator_->Valid()) {
    ended_ = true;
    return false;
  }
  SetRowAt(*iterator_, form_, &columns_, &row_);
  return true;
}

absl::Status DbRowCursor::status() const {
  return FromRocksDb(iterator_->status(), absl::StrFormat("cannot scan %s", description_));
}

}  // namespace cairn
