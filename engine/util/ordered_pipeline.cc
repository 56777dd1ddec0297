#include "engine/util/ordered_pipeline.h"

namespace cairn {

void OrderedPipeline::Work() {
  try {
    ClaimAndMake();
  } catch (...) {
    std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    changed_.notify_all();
    throw;
  }
}

void OrderedPipeline::ClaimAndMake() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    // The item that all wait for is with a thread that does not wait.
    changed_.wait(lock, [this] { return ended_ || claimed_ < taken_ + made_.size(); });
    if (ended_ || !Claim(SlotOf(claimed_))) {
      ended_ = true;
      changed_.notify_all();
      return;
    }
    const size_t slot = SlotOf(claimed_++);
    lock.unlock();
    Make(slot);
    lock.lock();
    made_[slot] = true;
    if (!taking_) TakeMade(&lock);
  }
}

void OrderedPipeline::TakeMade(std::unique_lock<std::mutex>* lock) {
  taking_ = true;
  while (made_[SlotOf(taken_)]) {
    const size_t slot = SlotOf(taken_);
    lock->unlock();
    Take(slot);
    lock->lock();
    made_[slot] = false;
    ++taken_;
    changed_.notify_all();
  }
  taking_ = false;
}

}  // namespace cairn
