#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cairn/key_order.h"
#include "rocksdb/db.h"

namespace cairn {

// Iterates over the rows of a column family in the order of bytes, whatever order RocksDB has. The
// database must outlive it. Not thread-safe.
class RangeIterator {
 public:
  // The keys in [lower, upper). `options` has everything but the bounds.
  RangeIterator(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family, KeyOrder order,
                rocksdb::ReadOptions options, std::string lower, std::string upper)
      : RangeIterator(db, column_family, order, std::move(options), std::move(lower),
                      std::move(upper), /*open=*/false) {}
  // If `open`, the range has no upper end.
  RangeIterator(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family, KeyOrder order,
                rocksdb::ReadOptions options, std::string lower, std::string upper, bool open);
  RangeIterator(const RangeIterator&) = delete;
  RangeIterator& operator=(const RangeIterator&) = delete;

  // Advances to the next row; the first call advances to the first row. Returns false at the end
  // and on error.
  bool Next() {
    if (started_) [[likely]] {
      if (ended_) return false;
      if (order_ == KeyOrder::kBytewise) [[likely]] {
        iterator_->Next();
      } else {
        iterator_->Prev();
      }
    } else {
      Start();
    }
    ended_ = ended_ || !iterator_->Valid() || IsAtUpper();
    return !ended_;
  }
  const rocksdb::Iterator& iterator() const { return *iterator_; }

 private:
  void Start();
  // A bound of an iterator that moves backwards is itself in the iterator's range.
  bool IsAtUpper() const {
    return order_ == KeyOrder::kReverseBytewise && !open_ && iterator_->key() == upper_;
  }

  const KeyOrder order_;
  const std::string lower_;
  const std::string upper_;
  const bool open_;
  const rocksdb::Slice bound_;  // points into upper_; the iterator has a pointer to it
  std::unique_ptr<rocksdb::Iterator> iterator_;
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace cairn
