#include "engine/ordered_pipeline.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "index/parallel.h"

namespace cairn {
namespace {

class OrderedPipeline {
 public:
  OrderedPipeline(size_t slots, absl::FunctionRef<bool(size_t)> claim,
                  absl::FunctionRef<void(size_t)> make, absl::FunctionRef<void(size_t)> take)
      : claim_(claim), make_(make), take_(take), made_(slots) {}

  void Work() {
    try {
      WorkOrThrow();
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex_);
      ended_ = true;
      changed_.notify_all();
      throw;
    }
  }

 private:
  size_t SlotOf(uint64_t item) const { return item % made_.size(); }

  void WorkOrThrow() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      // The item that all wait for is with a thread that does not wait.
      changed_.wait(lock, [this] { return ended_ || claimed_ < taken_ + made_.size(); });
      if (ended_ || !claim_(SlotOf(claimed_))) {
        ended_ = true;
        changed_.notify_all();
        return;
      }
      const size_t slot = SlotOf(claimed_++);
      lock.unlock();
      make_(slot);
      lock.lock();
      made_[slot] = true;
      if (!taking_) Take(&lock);
    }
  }

  void Take(std::unique_lock<std::mutex>* lock) {
    taking_ = true;
    while (made_[SlotOf(taken_)]) {
      lock->unlock();
      take_(SlotOf(taken_));
      lock->lock();
      made_[SlotOf(taken_++)] = false;
      changed_.notify_all();
    }
    taking_ = false;
  }

  const absl::FunctionRef<bool(size_t)> claim_;
  const absl::FunctionRef<void(size_t)> make_, take_;
  std::mutex mutex_;  // guards what follows; taken_ is read without it by the thread that takes
  std::condition_variable changed_;
  std::vector<bool> made_;  // whether the item in a slot waits to be taken
  uint64_t claimed_ = 0;
  uint64_t taken_ = 0;
  bool taking_ = false;  // whether a thread is at it
  bool ended_ = false;   // nothing more is to be claimed
};

}  // namespace

void RunOrderedPipeline(int threads, size_t slots, absl::FunctionRef<bool(size_t)> claim,
                        absl::FunctionRef<void(size_t)> make,
                        absl::FunctionRef<void(size_t)> take) {
  OrderedPipeline pipeline(slots, claim, make, take);
  const auto workers = static_cast<size_t>(std::max(threads, 1));
  ParallelFor(threads, workers, [&](size_t) { pipeline.Work(); });
}

}  // namespace cairn
