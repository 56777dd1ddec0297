#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace cairn {

class MutexLock;

// std::mutex, as Clang's thread-safety analysis knows it: members that are ABSL_GUARDED_BY one, and
// functions with ABSL_EXCLUSIVE_LOCKS_REQUIRED, are checked when Clang compiles
// (tools/check-locks). absl::Mutex is annotated, too, but ThreadSanitizer does not see into a
// library that was built without it.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // To be followed by a MutexLock that adopts.
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }

  // Tells the analysis what it cannot see: that this thread has locked it. Does nothing.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex from its construction to the end of its life, but between Unlock and Lock.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : lock_(mutex->mutex_) {}
  MutexLock(Mutex* mutex, std::adopt_lock_t adopt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex)
      : lock_(mutex->mutex_, adopt) {}
  ~MutexLock() ABSL_UNLOCK_FUNCTION() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() ABSL_UNLOCK_FUNCTION() { lock_.unlock(); }
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { lock_.lock(); }

 private:
  friend class CondVar;
  std::unique_lock<std::mutex> lock_;
};

// std::condition_variable. To be waited for in a loop that looks at the condition, where the
// analysis sees that the mutex is held, as it does not in a lambda.
class CondVar {
 public:
  void Wait(MutexLock* lock) { changed_.wait(lock->lock_); }
  // False where the time has come.
  template <typename Clock, typename Duration>
  bool WaitUntil(MutexLock* lock, const std::chrono::time_point<Clock, Duration>& time) {
    return changed_.wait_until(lock->lock_, time) == std::cv_status::no_timeout;
  }

  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace cairn
