// The numbers that ingested files have taken, which the log does not have.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "cairn/types.h"
#include "engine/live/log_follower.h"
#include "index/machine/mutex.h"

namespace cairn {
namespace {

// How long to wait for the end of an ingestion that may have taken a missing number.
constexpr std::chrono::milliseconds kIngestionPatience(1000);

// The maximum number of ingested numbers that are remembered, the newest ones.
constexpr size_t kMaxIngested = 100'000;

}  // namespace

void LogFollower::NoteIngested(SequenceNumber sequence) {
  const MutexLock lock(&ingested_mutex_);
  // Includes numbers that all members have passed: an index that is being built or will join may be
  // before them.
  ingested_.insert(sequence);
  if (ingested_.size() > kMaxIngested) ingested_.erase(ingested_.begin());
  ++ingested_count_;
}

void LogFollower::BeginIngestion() {
  const MutexLock lock(&ingested_mutex_);
  ++ingestions_;
}

void LogFollower::EndIngestion() {
  const MutexLock lock(&ingested_mutex_);
  --ingestions_;
  ingestion_ended_.NotifyAll();
}

uint64_t LogFollower::CountIngested(bool wait) {
  if (told_ != nullptr) return told_->CountIngested(wait);
  MutexLock lock(&ingested_mutex_);
  const auto end = std::chrono::steady_clock::now() + kIngestionPatience;
  while (wait && ingestions_ > 0 && ingestion_ended_.WaitUntil(&lock, end)) {
  }
  return ingested_count_;
}

SequenceNumber LogFollower::NextIngested(SequenceNumber sequence) const {
  if (told_ != nullptr) return told_->NextIngested(sequence);
  const MutexLock lock(&ingested_mutex_);
  const auto next = ingested_.upper_bound(sequence);
  return next == ingested_.end() ? std::numeric_limits<SequenceNumber>::max() : *next;
}

void LogFollower::PassIngested(SequenceNumber until) {
  SequenceNumber last = tail_->sequence();
  while (last < until && NextIngested(last) == last + 1) ++last;
  if (last > tail_->sequence()) tail_->PassTo(last);
}

}  // namespace cairn
