#include "cpu_fast/batch/strategy_scratch.h"

namespace cairn {

namespace {

template <typename T>
void Scatter(absl::Span<T> from, absl::Span<const uint32_t> slots, absl::Span<T> to) {
  if (from.empty()) return;
  for (size_t i = 0; i < slots.size(); ++i) to[slots[i]] = from[i];
}

}  // namespace

void StrategyScratch::TakeAnswers(size_t size, Batch* batch) {
  batch->values = {};
  batch->ends = {};
  batch->found = {};
  if (batch->operation == Operation::kContains) {
    batch->found = Take<bool>(Role::kFound, size);
  } else {
    batch->values = Take<uint32_t>(Role::kValues, size);
  }
  if (batch->operation == Operation::kEqualRange) batch->ends = Take<Position>(Role::kEnds, size);
}

void ScatterAnswers(const Batch& from, absl::Span<const uint32_t> slots, const Batch& to) {
  Scatter(from.values, slots, to.values);
  Scatter(from.ends, slots, to.ends);
  Scatter(from.found, slots, to.found);
}

uint64_t StrategyScratch::memory_bytes() const {
  uint64_t bytes = 0;
  for (const auto& array : arrays_) bytes += array.size() * sizeof(uint64_t);
  return bytes;
}

StrategyScratchPool::Lease::~Lease() {
  if (scratch_ == nullptr) return;
  const MutexLock lock(&pool_->mutex_);
  pool_->idle_.push_back(std::move(scratch_));
  --pool_->leased_;
}

StrategyScratchPool::Lease StrategyScratchPool::Take() {
  const MutexLock lock(&mutex_);
  if (idle_.empty()) {
    idle_.reserve(leased_ + 1);  // so that ending a lease never allocates
    idle_.push_back(std::make_unique<StrategyScratch>());
  }
  std::unique_ptr<StrategyScratch> scratch = std::move(idle_.back());
  idle_.pop_back();
  ++leased_;
  return Lease(this, std::move(scratch));
}

uint64_t StrategyScratchPool::memory_bytes() const {
  const MutexLock lock(&mutex_);
  uint64_t bytes = 0;
  for (const auto& scratch : idle_) bytes += scratch->memory_bytes();
  return bytes;
}

void StrategyScratchPool::FreeIdle() {
  const MutexLock lock(&mutex_);
  idle_.clear();
}

}  // namespace cairn
