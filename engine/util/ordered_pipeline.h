#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "index/machine/mutex.h"

namespace cairn {

// Makes items on several threads and takes them in order. Item i occupies slot i % slots from its
// claim until it is taken. So a thread that is `slots` items ahead waits.
//
// Threads join by calling Work, at any time and in any number.
class OrderedPipeline {
 public:
  // Requires at least one slot.
  explicit OrderedPipeline(size_t slots) : made_(slots) {}
  virtual ~OrderedPipeline() = default;

  // Works until nothing is left to claim. When the last call returns, every claimed item has been
  // taken. If one of the three steps throws, the pipeline ends, some items remain untaken, and the
  // call in which the step ran throws the exception.
  void Work();

 protected:
  // Determines the next item; returns false if there is none. Called in order, one call at a time.
  virtual bool Claim(size_t slot) = 0;
  // Makes the item. Several calls may run concurrently.
  virtual void Make(size_t slot) = 0;
  // Takes an item. Called in order, one call at a time, by the thread that has made the next item.
  virtual void Take(size_t slot) = 0;

 private:
  size_t SlotOf(uint64_t item) const { return item % made_.size(); }
  void ClaimAndMake();
  // Takes the items that are made, with `lock` released, which the analysis cannot follow.
  void TakeMade(MutexLock* lock) ABSL_NO_THREAD_SAFETY_ANALYSIS;

  Mutex mutex_;
  CondVar changed_;
  // Whether the item in a slot is made and not taken. The elements are guarded by mutex_.
  std::vector<bool> made_;
  uint64_t claimed_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  bool taking_ ABSL_GUARDED_BY(mutex_) = false;  // a thread is taking items, without the lock
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;   // no more items may be claimed
};

}  // namespace cairn
