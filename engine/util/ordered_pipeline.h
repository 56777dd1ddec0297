#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "index/machine/mutex.h"

namespace cairn {

// Makes items on several threads and takes them in their order. Item i lives in slot i % slots from
// its claim until it is taken, so that there are at most so many at a time: a thread that is ahead
// waits.
//
// Threads come in by calling Work, at any time and in any number.
class OrderedPipeline {
 public:
  // At least one slot.
  explicit OrderedPipeline(size_t slots) : made_(slots) {}
  virtual ~OrderedPipeline() = default;

  // Works until there is nothing left to claim. When the last call returns, every item that was
  // claimed has been taken; but an exception of one of the three steps ends it all, leaves items
  // untaken, and comes out of the call that met it.
  void Work();

 protected:
  // Says what the next item is; false: there is none. Called in order, one at a time.
  virtual bool Claim(size_t slot) = 0;
  // Does the work; any number at a time.
  virtual void Make(size_t slot) = 0;
  // Called in order, one at a time, by whichever thread has made the next item.
  virtual void Take(size_t slot) = 0;

 private:
  size_t SlotOf(uint64_t item) const { return item % made_.size(); }
  void ClaimAndMake();
  // Takes what is made, `lock` being let go of meanwhile, which the analysis does not follow.
  void TakeMade(MutexLock* lock) ABSL_NO_THREAD_SAFETY_ANALYSIS;

  Mutex mutex_;
  CondVar changed_;
  // Whether the item in a slot waits to be taken. Guarded by mutex_, but for its size.
  std::vector<bool> made_;
  uint64_t claimed_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  bool taking_ ABSL_GUARDED_BY(mutex_) = false;  // whether a thread is at it, without the lock
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;   // nothing more is to be claimed
};

}  // namespace cairn
