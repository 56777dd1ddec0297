#include "engine/util/ordered_pipeline.h"

namespace cairn {

void OrderedPipeline::Work() {
  try {
    ClaimAndMake();
  } catch (...) {
    const MutexLock lock(&mutex_);
    ended_ = true;
    changed_.NotifyAll();
    throw;
  }
}

void OrderedPipeline::ClaimAndMake() {
  MutexLock lock(&mutex_);
  while (true) {
    // The item that all threads wait for belongs to a thread that does not wait.
    while (!ended_ && claimed_ >= taken_ + made_.size()) changed_.Wait(&lock);
    if (ended_ || !Claim(SlotOf(claimed_))) {
      ended_ = true;
      changed_.NotifyAll();
      return;
    }
    const size_t slot = SlotOf(claimed_++);
    lock.Unlock();
    Make(slot);
    lock.Lock();
    made_[slot] = true;
    if (!taking_) TakeMade(&lock);
  }
}

void OrderedPipeline::TakeMade(MutexLock* lock) {
  taking_ = true;
  while (made_[SlotOf(taken_)]) {
    const size_t slot = SlotOf(taken_);
    lock->Unlock();
    Take(slot);
    lock->Lock();
    made_[slot] = false;
    ++taken_;
    changed_.NotifyAll();
  }
  taking_ = false;
}

}  // namespace cairn
