#include "engine/util/range_iterator.h"

#include <utility>

namespace cairn {

RangeIterator::RangeIterator(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                             KeyOrder order, rocksdb::ReadOptions options, std::string lower,
                             std::string upper, bool open)
    : order_(order),
      lower_(std::move(lower)),
      upper_(std::move(upper)),
      open_(open),
      bound_(upper_) {
  if (!open_ && order_ == KeyOrder::kBytewise) options.iterate_upper_bound = &bound_;
  if (!open_ && order_ == KeyOrder::kReverseBytewise) options.iterate_lower_bound = &bound_;
  // RocksDB reads ahead only forwards.
  if (order_ == KeyOrder::kReverseBytewise) options.readahead_size = 0;
  iterator_.reset(db->NewIterator(options, column_family));
}

void RangeIterator::Start() {
  started_ = true;
  if (!open_ && lower_ >= upper_) {
    ended_ = true;  // an empty range, in which RocksDB must not seek
  } else if (order_ == KeyOrder::kBytewise) {
    if (lower_.empty()) {
      iterator_->SeekToFirst();
    } else {
      iterator_->Seek(lower_);
    }
  } else if (lower_.empty()) {
    iterator_->SeekToLast();
  } else {
    iterator_->SeekForPrev(lower_);
  }
}

}  // namespace cairn
