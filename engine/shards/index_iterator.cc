#include "cairn/index_iterator.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/secondary_index.h"
#include "engine/shards/lookup.h"
#include "engine/shards/open_index.h"
#include "engine/shards/shard_cursor.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/query/physical_key.h"
#include "index/query/range_column.h"

namespace cairn {
namespace {

// The number of entries in the first block after a Seek or a change of direction, and in the
// largest one.
constexpr uint64_t kFirstBlock = 16, kMaxBlock = 4096;

}  // namespace

class IndexIterator::Walk {
 public:
  // `index_checksum` is CursorTag::OfIndex. `sources` is SourcesChecksum of an index sharded by
  // source; otherwise 0.
  Walk(std::shared_ptr<const SecondaryIndex> index, uint64_t index_checksum, uint64_t sources,
       RangeColumn range, const IteratorOptions& options)
      : index_(std::move(index)),
        index_checksum_(index_checksum),
        sources_(sources),
        range_(std::move(range)) {
    options_ = StopCondition::Of(options).As<QueryOptions>();
    options_.with_keys = true;
    options_.columns = options.columns;
  }

  bool valid() const { return valid_; }
  std::string_view primary_key() const { return primary_keys_[at_]; }
  DataValue column(size_t i) const { return block_.columns[i].value(at_); }

  absl::Status SeekToEnd(Order order) {
    block_size_ = kFirstBlock;
    return Read(range_.Ranges(), order);
  }

  // Goes to the first entry in this order whose key is not before the target.
  absl::Status Seek(const LogicalKey& target, Order order) {
    valid_ = false;
    const KeyCodec& codec = index_->codec();
    target_.Clear(codec.kind());
    const KeyEnd end{target.parts(), order == Order::kDescending};
    const absl::Status encoded = order == Order::kAscending ? target_.AppendBetween(codec, end, {})
                                                            : target_.AppendBetween(codec, {}, end);
    if (!encoded.ok()) {
      return absl::Status(encoded.code(), absl::StrFormat("index '%s', Seek: %s",
                                                          index_->spec().name, encoded.message()));
    }
    RangeBatch range = range_.Ranges();
    const RangeBatch from = target_.Ranges();
    const Bound bounds[] = {range.lower_bound_of(0), range.upper_bound_of(0)};
    Bound lower = bounds[0], upper = bounds[1];
    WithPhysicalKey(codec.kind(), [&](auto type) {
      using Key = typename decltype(type)::type;
      const auto key = [](const KeyBatch& keys) { return keys.as<Key>()[0]; };
      if (order == Order::kAscending) {
        if (from.lower_bound_of(0) == Bound::kOpen) return;
        if (lower == Bound::kOpen || key(range.lower) < key(from.lower)) {
          range.lower = from.lower;
          lower = from.lower_bound_of(0);
        }
      } else {
        const Bound bound = from.upper_bound_of(0);
        if (bound == Bound::kOpen) return;
        const bool is_before = upper == Bound::kOpen || key(from.upper) < key(range.upper) ||
                               (key(from.upper) == key(range.upper) && bound == Bound::kExclusive);
        if (is_before) {
          range.upper = from.upper;
          upper = bound;
        }
      }
    });
    range.lower_bounds = absl::MakeConstSpan(&lower, 1);
    range.upper_bounds = absl::MakeConstSpan(&upper, 1);
    block_size_ = kFirstBlock;
    return Read(range, order);
  }

  // Goes to the next entry in this order, if the block contains it.
  bool StepInBlock(Order order) {
    const bool forward = order == order_;
    if (forward ? at_ + 1 == block_.row_ids.size() : at_ == 0) return false;
    at_ += forward ? 1 : -1;
    key_.clear();
    return true;
  }
  // Goes to the next entry in this order, which is not in the block.
  absl::Status Step(Order order) {
    valid_ = false;
    if (order == order_) {
      if (block_.cursors[0].empty()) return absl::OkStatus();
      block_size_ = std::min(2 * block_size_, kMaxBlock);
    } else {
      block_size_ = kFirstBlock;
    }
    RangeBatch range = range_.Ranges();
    after_ = CursorAfterEntry(range, order);  // the block may be of another range, after Seek
    range.after = absl::MakeConstSpan(&after_, 1);
    return Read(range, order);
  }

  absl::StatusOr<absl::Span<const DataValue>> SecondaryKey() {
    if (key_.empty()) {
      RETURN_IF_ERROR(index_->codec().Decode(block_.keys, at_, &key_, &scratch_));
    }
    return absl::MakeConstSpan(key_);
  }

  void Invalidate() { valid_ = false; }

 private:
  absl::Status Read(const RangeBatch& range, Order order) {
    valid_ = false;
    key_.clear();
    order_ = options_.order = order;
    options_.limit = block_size_;
    RETURN_IF_ERROR(index_->Scan(range, &block_, options_));
    primary_keys_.Clear();
    RETURN_IF_ERROR(index_->PrimaryKeys(block_, &primary_keys_));
    at_ = 0;
    valid_ = !block_.row_ids.empty();
    return absl::OkStatus();
  }

  // The cursor after the entry at `at_`, for a scan of the range in this order.
  std::string CursorAfterEntry(const RangeBatch& range, Order order) const {
    const CursorTag tag = CursorTag::OfScan(index_checksum_, range, 0, order, sources_);
    const ScanCursor entry = ScanCursor::After(block_.keys, at_, primary_keys_[at_]);
    if (sources_ == 0) return entry.EncodeFor(tag);
    return SourceCursor{block_.shards[at_], entry}.EncodeFor(tag);
  }

  const std::shared_ptr<const SecondaryIndex> index_;
  const uint64_t index_checksum_;
  const uint64_t sources_;
  RangeColumn range_;   // a single range
  RangeColumn target_;  // of the last Seek
  QueryOptions options_;
  // The entries around the current one, in the order in which they were read, and its index.
  FindResult block_;
  StringList primary_keys_;
  Order order_ = Order::kAscending;
  size_t at_ = 0;
  uint64_t block_size_ = kFirstBlock;
  bool valid_ = false;
  std::string after_;           // the cursor after which the block was read
  std::vector<DataValue> key_;  // of the current entry; empty: not decoded yet
  std::string scratch_;         // the memory of key_
};

IndexIterator::IndexIterator(absl::Status status) : status_(std::move(status)) {}
IndexIterator::IndexIterator(IndexIterator&& other) noexcept = default;
IndexIterator& IndexIterator::operator=(IndexIterator&& other) noexcept = default;
IndexIterator::~IndexIterator() = default;

bool IndexIterator::Valid() const {
  return walk_ != nullptr && walk_->valid();
}

absl::Status IndexIterator::status() const {
  return status_;
}

void IndexIterator::SeekToFirst() {
  Move([](Walk* walk) { return walk->SeekToEnd(Order::kAscending); });
}

void IndexIterator::SeekToLast() {
  Move([](Walk* walk) { return walk->SeekToEnd(Order::kDescending); });
}

void IndexIterator::Seek(const LogicalKey& target) {
  Move([&](Walk* walk) { return walk->Seek(target, Order::kAscending); });
}

void IndexIterator::SeekForPrev(const LogicalKey& target) {
  Move([&](Walk* walk) { return walk->Seek(target, Order::kDescending); });
}

void IndexIterator::Next() {
  if (!Valid() || walk_->StepInBlock(Order::kAscending)) return;
  Move([](Walk* walk) { return walk->Step(Order::kAscending); });
}

void IndexIterator::Prev() {
  if (!Valid() || walk_->StepInBlock(Order::kDescending)) return;
  Move([](Walk* walk) { return walk->Step(Order::kDescending); });
}

absl::Span<const DataValue> IndexIterator::secondary_key() {
  if (!Valid()) return {};
  const auto key = Guarded("decoding a key", [&] { return walk_->SecondaryKey(); });
  if (key.ok()) return *key;
  status_ = key.status();
  walk_->Invalidate();
  return {};
}

std::string_view IndexIterator::primary_key() const {
  return Valid() ? walk_->primary_key() : std::string_view();
}

DataValue IndexIterator::column(size_t i) const {
  return walk_->column(i);
}

void IndexIterator::Move(absl::FunctionRef<absl::Status(Walk*)> move) {
  if (walk_ == nullptr) return;
  status_ = Guarded("reading entries of an index", [&] { return move(walk_.get()); });
  if (!status_.ok()) walk_->Invalidate();
}

IndexIterator IterateVersion(std::shared_ptr<const SecondaryIndex> version,
                             const IteratorOptions& options) {
  IndexIterator iterator;
  iterator.status_ = Guarded("making an iterator", [&]() -> absl::Status {
    RangeColumn range;
    absl::Status status = RangesOf(options.range, version->codec(), &range);
    if (status.ok() && range.size() != 1) {
      status = absl::InvalidArgumentError(
          absl::StrFormat("expected one key, prefix or range, got %d keys", range.size()));
    }
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrFormat("index '%s', IteratorOptions::range: %s",
                                                         version->spec().name, status.message()));
    }
    if (!options.columns.empty()) {
      std::vector<ColumnValues> none;
      RETURN_IF_ERROR(version->Columns({}, options.columns, &none));
    }
    const std::optional<IndexVersions> versions = VersionsOf(*version);
    const uint64_t checksum = versions.has_value() ? versions->versions[0]->base->cursor_checksum
                                                   : CursorTag::OfIndex(version->spec());
    const bool by_source = versions.has_value() && versions->by_source;
    iterator.walk_ = std::make_unique<IndexIterator::Walk>(
        std::move(version), checksum, by_source ? SourcesChecksum(versions->versions) : 0,
        std::move(range), options);
    return absl::OkStatus();
  });
  return iterator;
}

IndexIterator SecondaryIndex::NewIterator(const IteratorOptions& options) const {
  if (const absl::Status s = CheckHasOwnState(options); !s.ok()) return IndexIterator(s);
  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> pinned =
      Pin(StopCondition::Of(options).As<QueryOptions>());
  return pinned.ok() ? IterateVersion(*std::move(pinned), options) : IndexIterator(pinned.status());
}

}  // namespace cairn
