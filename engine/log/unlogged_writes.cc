#include "engine/log/unlogged_writes.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/log/table_files.h"
#include "engine/util/status.h"
#include "index/machine/status_macros.h"
#include "rocksdb/transaction_log.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

// How long to wait for one missing number: a write publishes its number microseconds before it
// ends.
constexpr std::chrono::milliseconds kShortPatience(2);
// How long to wait for all writes. A write may wait for the database, which says nothing about the
// missing number.
constexpr std::chrono::seconds kLongPatience(10);
// How long to wait for the end of an ingestion that may have taken a missing number.
constexpr std::chrono::seconds kIngestionPatience(1);

// The maximum number of ingested numbers that are remembered, the newest ones.
constexpr size_t kMaxIngested = 100'000;

size_t BytesOf(const UnloggedBatch& batch) {
  constexpr size_t kOverhead = 200;  // of the objects
  return batch.batch->GetDataSize() + kOverhead;
}

// Flushes all column families, also those without indexes: their rows have taken sequence numbers.
absl::Status FlushAll(rocksdb::DB* db) {
  std::vector<std::string> files;
  uint64_t manifest_bytes = 0;
  return FromRocksDb(db->GetLiveFiles(files, &manifest_bytes, /*flush_memtable=*/true),
                     absl::StrFormat("cannot flush database '%s', whose last rows are not in its "
                                     "log",
                                     db->GetName()));
}

}  // namespace

UnloggedWrites::Write::Write(UnloggedWrites* writes,
                             std::shared_ptr<const rocksdb::WriteBatch> batch)
    : writes_(writes), ticket_(writes->Begin()) {
  try {
    UnloggedBatch unlogged{0, batch->Count(), nullptr};
    unlogged.batch = std::move(batch);
    Batches one;
    one.emplace(0, std::move(unlogged));
    node_ = one.extract(one.begin());
  } catch (...) {
    writes_->End(ticket_, {});
    throw;
  }
}

UnloggedWrites::Write::~Write() {
  if (writes_ != nullptr && !node_.empty()) writes_->End(ticket_, {});
}

void UnloggedWrites::Write::Succeed(SequenceNumber first) noexcept {
  node_.key() = first;
  node_.mapped().first = first;
  writes_->End(ticket_, std::move(node_));
  node_ = {};
}

uint64_t UnloggedWrites::Begin() {
  const MutexLock lock(&mutex_);
  open_.push_back(true);
  ++in_progress_;
  return oldest_ + open_.size() - 1;
}

void UnloggedWrites::End(uint64_t ticket, Batches::node_type node) noexcept {
  bool is_needed = false;
  {
    const MutexLock lock(&mutex_);
    open_[ticket - oldest_] = false;
    while (!open_.empty() && !open_.front()) {
      open_.pop_front();
      ++oldest_;
    }
    --in_progress_;
    if (!node.empty()) {
      const UnloggedBatch& batch = node.mapped();
      const SequenceNumber last = batch.first + batch.count - 1;
      newest_ = std::max(newest_.load(), last);
      is_needed = batch.count > 0 && (!holds_.empty() || last > needed_after_);
    }
    if (is_needed) {
      const size_t bytes = BytesOf(node.mapped()), before = batches_.size();
      batches_.insert(batches_.end(), std::move(node));
      // RocksDB may give two batches one number if one of them deletes an empty range.
      if (batches_.size() > before) bytes_ += bytes;
      std::erase_if(holds_, [&](Hold* hold) {
        mutex_.AssertHeld();
        const bool exceeds = bytes_ > hold->max_bytes_;
        if (exceeds) hold->exceeded_ = true;
        return exceeds;
      });
    }
    if (waiting_ > 0) ended_.NotifyAll();
  }
}

void UnloggedWrites::NoteIngested(SequenceNumber sequence) {
  const MutexLock lock(&mutex_);
  // Includes numbers that all members have passed: an index that is being built or will join may be
  // before them.
  ingested_.insert(sequence);
  if (ingested_.size() > kMaxIngested) ingested_.erase(ingested_.begin());
}

void UnloggedWrites::BeginIngestion() {
  const MutexLock lock(&mutex_);
  ++ingestions_;
}

void UnloggedWrites::EndIngestion() {
  const MutexLock lock(&mutex_);
  --ingestions_;
  ended_.NotifyAll();
}

UnloggedWrites::Hold::Hold(UnloggedWrites* writes, size_t max_bytes)
    : writes_(writes), max_bytes_(max_bytes) {
  const MutexLock lock(&writes_->mutex_);
  writes_->holds_.push_back(this);
}

UnloggedWrites::Hold::~Hold() {
  {
    const MutexLock lock(&writes_->mutex_);
    std::erase(writes_->holds_, this);
  }
  writes_->DropUnneeded();
}

const UnloggedBatch* UnloggedWrites::Find(SequenceNumber number) const {
  auto after = batches_.upper_bound(number);
  if (after == batches_.begin()) return nullptr;
  const UnloggedBatch& batch = std::prev(after)->second;
  return number - batch.first < batch.count ? &batch : nullptr;
}

SequenceNumber UnloggedWrites::Next(SequenceNumber sequence) const {
  SequenceNumber next = std::numeric_limits<SequenceNumber>::max();
  const MutexLock lock(&mutex_);
  if (Find(sequence + 1) != nullptr) return sequence + 1;
  const auto batch = batches_.upper_bound(sequence);
  if (batch != batches_.end()) next = batch->first;
  const auto ingested = ingested_.upper_bound(sequence);
  return ingested == ingested_.end() ? next : std::min(next, *ingested);
}

SequenceNumber UnloggedWrites::PassIngestedLocked(SequenceNumber sequence,
                                                  SequenceNumber until) const {
  for (auto next = ingested_.upper_bound(sequence);
       sequence < until && next != ingested_.end() && *next == sequence + 1; ++next) {
    ++sequence;
  }
  return sequence;
}

SequenceNumber UnloggedWrites::PassIngested(SequenceNumber sequence, SequenceNumber until) const {
  const MutexLock lock(&mutex_);
  return PassIngestedLocked(sequence, until);
}

SequenceNumber UnloggedWrites::PassAll(SequenceNumber sequence, SequenceNumber until) const {
  const MutexLock lock(&mutex_);
  while (sequence < until) {
    const SequenceNumber before = sequence;
    sequence = PassIngestedLocked(sequence, until);
    if (sequence < until) {
      if (const UnloggedBatch* batch = Find(sequence + 1)) {
        sequence = std::min(until, batch->first + batch->count - 1);
      }
    }
    if (sequence == before) break;
  }
  return sequence;
}

void UnloggedWrites::Get(SequenceNumber sequence, SequenceNumber until, size_t max_bytes,
                         std::vector<UnloggedBatch>* batches) const {
  size_t bytes = 0;
  while (sequence < until && bytes < max_bytes) {
    const MutexLock lock(&mutex_);
    const UnloggedBatch* const first = Find(sequence + 1);
    if (first == nullptr) return;
    auto at = batches_.find(first->first);
    for (size_t n = 0; n < kMaxAtOnce && at != batches_.end() && sequence < until; ++n, ++at) {
      const UnloggedBatch& batch = at->second;
      if (batch.first > sequence + 1 || bytes >= max_bytes) return;
      batches->push_back(batch);
      bytes += batch.batch->GetDataSize();
      sequence = batch.first + batch.count - 1;
    }
  }
}

void UnloggedWrites::Await(SequenceNumber number) {
  const auto end = Clock::now() + kShortPatience;
  MutexLock lock(&mutex_);
  ++waiting_;
  while (!open_.empty() && Find(number) == nullptr && ended_.WaitUntil(&lock, end)) {
  }
  --waiting_;
}

void UnloggedWrites::AwaitAll() {
  const auto begin = Clock::now();
  MutexLock lock(&mutex_);
  const uint64_t begun = oldest_ + open_.size();
  ++waiting_;
  while (oldest_ < begun && ended_.WaitUntil(&lock, begin + kLongPatience)) {
  }
  while (ingestions_ > 0 && ended_.WaitUntil(&lock, begin + kIngestionPatience)) {
  }
  --waiting_;
}

bool UnloggedWrites::TakeUnneeded(std::array<Batches::node_type, kMaxAtOnce>* dropped) noexcept {
  const MutexLock lock(&mutex_);
  if (!holds_.empty()) return false;
  size_t taken = 0;
  while (!batches_.empty() && taken < kMaxAtOnce) {
    const UnloggedBatch& batch = batches_.begin()->second;
    if (batch.first + batch.count - 1 > needed_after_) break;
    bytes_ -= BytesOf(batch);
    (*dropped)[taken++] = batches_.extract(batches_.begin());
  }
  return taken > 0;
}

void UnloggedWrites::DropUnneeded() noexcept {
  while (true) {
    std::array<Batches::node_type, kMaxAtOnce> dropped;  // destroyed without the lock
    if (!TakeUnneeded(&dropped)) return;
  }
}

void UnloggedWrites::DropUpTo(SequenceNumber sequence) noexcept {
  {
    const MutexLock lock(&mutex_);
    needed_after_ = sequence;
    if (batches_.empty()) return;
  }
  DropUnneeded();
}

void UnloggedWrites::NoteFlushed(SequenceNumber sequence) {
  SequenceNumber flushed = flushed_;
  while (flushed < sequence && !flushed_.compare_exchange_weak(flushed, sequence)) {
  }
}

absl::Status UnloggedWrites::MakeDurable(rocksdb::DB* db, SequenceNumber sequence, Anchor* anchor) {
  const SequenceNumber newest = newest_;  // first: the index has all batches up to `sequence`
  if (newest == 0) return absl::OkStatus();
  const MutexLock lock(&durable_mutex_);
  if (newest > in_files_ && sequence > in_files_) {
    const SequenceNumber latest = db->GetLatestSequenceNumber();
    RETURN_IF_ERROR(FlushAll(db));
    std::unique_ptr<rocksdb::LogFile> current;
    RETURN_IF_ERROR(FromRocksDb(db->GetCurrentWalFile(&current), "cannot find the log's file"));
    log_behind_files_ = current->LogNumber();
    in_files_ = latest;
  }
  // A number after all batches is in the log, or that of an ingested file.
  if (sequence <= newest && sequence > flushed_) {
    // RocksDB reports a flush shortly after its end.
    for (const rocksdb::LiveFileMetaData& file : LiveFiles(db)) NoteFlushed(file.largest_seqno);
    if (sequence > flushed_) {
      return absl::UnavailableError(absl::StrFormat(
          "sequence number %d of database '%s' was written without a log, and no table file has "
          "it: this state is not stored",
          sequence, db->GetName()));
    }
  }
  if (anchor == nullptr) return absl::OkStatus();
  // An older copy of the database may have the same records up to the log position, but not the
  // batches without a log, and it assigns their numbers again. So files must prove the state.
  if (sequence <= newest || anchor->log.log_number <= log_behind_files_) {
    // If later writes have a log, this also begins another log file, which proves later states: a
    // copy of the database that has that file has all batches as well.
    if (sequence > in_files_) RETURN_IF_ERROR(FlushAll(db));
    anchor->log = {log_behind_files_, {}};
    anchor->log_behind_files = std::max(anchor->log_behind_files, log_behind_files_);
  }
  return absl::OkStatus();
}

}  // namespace cairn
