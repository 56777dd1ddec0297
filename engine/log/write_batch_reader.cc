#include "engine/log/write_batch_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/source/manifest_families.h"
#include "engine/util/key_order.h"
#include "engine/util/status.h"
#include "index/keys/escaped_text.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

std::string_view ToView(const rocksdb::Slice& bytes) {
  return {bytes.data(), bytes.size()};
}

}  // namespace

OrderOfFamily OrdersOfFamilies(rocksdb::DB* db) {
  return [db, manifest = std::shared_ptr<ManifestFamilies>()](uint32_t id) mutable {
    if (manifest == nullptr) manifest = std::make_shared<ManifestFamilies>(db);
    if (!manifest->comparators().contains(id)) manifest->Read().status().IgnoreError();
    const auto name = manifest->comparators().find(id);
    if (name == manifest->comparators().end()) return KeyOrder::kBytewise;
    return KeyOrderOfName(name->second).value_or(KeyOrder::kBytewise);
  };
}

WriteBatchReader::WriteBatchReader(std::vector<FollowedFamily> column_families, FindPrepared find,
                                   OrderOfFamily order_of)
    : column_families_(std::move(column_families)),
      find_(std::move(find)),
      order_of_(std::move(order_of)) {
  last_index_ = IndexOf(0);
}

absl::StatusOr<uint64_t> WriteBatchReader::Read(const rocksdb::WriteBatch& batch,
                                                SequenceNumber first, SequenceNumber after,
                                                SequenceNumber until,
                                                absl::Span<RowChanges> changes) {
  if (changes.size() != column_families_.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a write batch: expected changes of %d column families, got %d",
                        column_families_.size(), changes.size()));
  }
  next_ = first;
  after_ = after;
  until_ = until;
  changes_ = changes;
  empty_ranges_ = 0;
  has_inverted_range_ = false;
  other_ranges_.clear();
  preparing_ = false;
  status_ = absl::OkStatus();
  try {
    const rocksdb::Status s = batch.Iterate(this);
    if (status_.ok()) status_ = FromRocksDb(s, "cannot read a write batch");
  } catch (...) {
    status_ = StatusOfException("reading a write batch");
  }
  if (status_.ok() && preparing_) {
    status_ = absl::DataLossError("a write batch ends within a prepared transaction");
  }
  if (!status_.ok()) return status_;
  return next_ - first + empty_ranges_;
}

absl::StatusOr<uint64_t> WriteBatchReader::Read(
    const std::shared_ptr<const rocksdb::WriteBatch>& batch, SequenceNumber first,
    SequenceNumber after, SequenceNumber until, absl::Span<RowChanges> changes) {
  owner_ = batch;
  absl::StatusOr<uint64_t> count = Read(*batch, first, after, until, changes);
  owner_ = nullptr;
  return count;
}

std::optional<PreparedTransaction> WriteBatchReader::TakePrepared(std::string_view name) {
  const auto it = prepared_.find(name);
  if (it == prepared_.end()) return std::nullopt;
  PreparedTransaction transaction = std::move(it->second);
  prepared_.erase(it);
  return transaction;
}

size_t WriteBatchReader::IndexOf(uint32_t id) {
  const auto at = std::find_if(column_families_.begin(), column_families_.end(),
                               [&](const FollowedFamily& family) { return family.id == id; });
  return static_cast<size_t>(at - column_families_.begin());
}

void WriteBatchReader::FindInvertedRanges() {
  for (const OtherRange& range : other_ranges_) {
    const KeyOrder order = order_of_ ? order_of_(range.family) : KeyOrder::kBytewise;
    has_inverted_range_ |= range.ascends != (order == KeyOrder::kBytewise);
  }
  other_ranges_.clear();
}

RowChanges* WriteBatchReader::NextRecord(uint32_t id) {
  if (id != last_id_) [[unlikely]] {
    last_id_ = id;
    last_index_ = IndexOf(id);
    newest_family_ = std::max(newest_family_, id);
  }
  bool wanted = last_index_ < column_families_.size();
  if (preparing_) [[unlikely]] {
    ++transaction_.count;
    transaction_.last_kept_family = id;
  } else {
    last_kept_family_ = id;
    const SequenceNumber sequence = next_++;
    wanted &= sequence > after_ && sequence <= until_;
  }
  if (!wanted) return nullptr;
  if (!other_ranges_.empty()) [[unlikely]]
    FindInvertedRanges();
  if (has_inverted_range_) [[unlikely]] {
    status_ = absl::FailedPreconditionError(
        "a write batch deletes a range whose end is before its begin: RocksDB logs such a batch, "
        "but applies only the part before the range");
    return nullptr;
  }
  return preparing_ ? &transaction_.changes[last_index_] : &changes_[last_index_];
}

rocksdb::Status WriteBatchReader::PutCF(uint32_t id, const rocksdb::Slice& key,
                                        const rocksdb::Slice& value) {
  if (RowChanges* changes = NextRecord(id)) changes->Put(ToView(key), ToView(value), owner_);
  return rocksdb::Status::OK();
}

rocksdb::Status WriteBatchReader::PutEntityCF(uint32_t id, const rocksdb::Slice& key,
                                              const rocksdb::Slice& entity) {
  if (RowChanges* changes = NextRecord(id)) {
    status_ = changes->PutEntity(ToView(key), ToView(entity), owner_);
  }
  return rocksdb::Status::OK();
}

rocksdb::Status WriteBatchReader::DeleteCF(uint32_t id, const rocksdb::Slice& key) {
  if (RowChanges* changes = NextRecord(id)) changes->Delete(ToView(key));
  return rocksdb::Status::OK();
}

rocksdb::Status WriteBatchReader::SingleDeleteCF(uint32_t id, const rocksdb::Slice& key) {
  const rocksdb::Status deleted = DeleteCF(id, key);
  ForgetLast();
  return deleted;
}

rocksdb::Status WriteBatchReader::DeleteRangeCF(uint32_t id, const rocksdb::Slice& begin,
                                                const rocksdb::Slice& end) {
  if (begin == end && !preparing_) [[unlikely]] {
    ++empty_ranges_;
    ForgetLast();
    return rocksdb::Status::OK();
  }
  const size_t index = IndexOf(id);
  const bool is_followed = index < column_families_.size();
  const KeyOrder order = is_followed ? column_families_[index].order : KeyOrder::kBytewise;
  if (is_followed) {
    has_inverted_range_ |= IsBefore(order, ToView(end), ToView(begin));
  } else if (begin != end) {  // it matters only if a followed row comes after it
    other_ranges_.push_back({id, begin.compare(end) < 0});
  }
  RowChanges* const changes = NextRecord(id);
  if (begin == end) ForgetLast();
  if (changes != nullptr) changes->DeleteRange(ToView(begin), ToView(end), order);
  return rocksdb::Status::OK();
}

rocksdb::Status WriteBatchReader::MergeCF(uint32_t id, const rocksdb::Slice& key,
                                          const rocksdb::Slice& /*operand*/) {
  if (RowChanges* changes = NextRecord(id)) changes->LookUp(ToView(key));
  return rocksdb::Status::OK();
}

rocksdb::Status WriteBatchReader::PutBlobIndexCF(uint32_t id, const rocksdb::Slice& key,
                                                 const rocksdb::Slice& index) {
  return MergeCF(id, key, index);
}

rocksdb::Status WriteBatchReader::MarkBeginPrepare(bool /*unprepared*/) {
  preparing_ = true;
  transaction_.count = 0;
  transaction_.last_kept_family.reset();
  transaction_.changes.clear();
  transaction_.changes.resize(changes_.size());
  return rocksdb::Status::OK();
}

rocksdb::Status WriteBatchReader::MarkEndPrepare(const rocksdb::Slice& name) {
  preparing_ = false;
  prepared_.insert_or_assign(name.ToString(), std::move(transaction_));
  return rocksdb::Status::OK();
}

rocksdb::Status WriteBatchReader::MarkCommit(const rocksdb::Slice& name) {
  status_ = Commit(ToView(name));
  return rocksdb::Status::OK();
}

rocksdb::Status WriteBatchReader::MarkCommitWithTimestamp(const rocksdb::Slice& name,
                                                          const rocksdb::Slice& /*timestamp*/) {
  return MarkCommit(name);
}

rocksdb::Status WriteBatchReader::MarkRollback(const rocksdb::Slice& name) {
  TakePrepared(ToView(name));
  return rocksdb::Status::OK();
}

rocksdb::Status WriteBatchReader::MarkNoop(bool /*empty_batch*/) {
  return rocksdb::Status::OK();
}

absl::Status WriteBatchReader::Commit(std::string_view name) {
  std::optional<PreparedTransaction> transaction = TakePrepared(name);
  if (!transaction.has_value()) {
    ASSIGN_OR_RETURN(
        transaction,
        find_ ? find_(name)
              : absl::FailedPreconditionError(absl::StrFormat(
                    "transaction %s was prepared before the first record read; rebuild the index",
                    Quoted(name))));
  }
  const SequenceNumber first = next_;
  next_ += transaction->count;
  if (transaction->count > 0) last_kept_family_ = transaction->last_kept_family;
  // A snapshot contains a transaction completely or not at all.
  if (transaction->count == 0 || next_ - 1 <= after_ || first > until_) return absl::OkStatus();
  if (first <= after_ || next_ - 1 > until_) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "transaction %s has sequence numbers %d to %d, so %d and %d cannot both be states of this "
        "database; rebuild the index",
        Quoted(name), first, next_ - 1, after_, until_));
  }
  for (size_t i = 0; i < transaction->changes.size(); ++i) {
    changes_[i].Append(transaction->changes[i]);
  }
  return absl::OkStatus();
}

}  // namespace cairn
