#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace cairn {

class MutexLock;

// std::mutex with annotations for Clang's thread-safety analysis. It checks members that are
// ABSL_GUARDED_BY a mutex, and functions with ABSL_EXCLUSIVE_LOCKS_REQUIRED (tools/check-locks).
// absl::Mutex is also annotated, but ThreadSanitizer cannot see into a library that was built
// without it.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // Construct a MutexLock that adopts the lock, after Lock or if TryLock returns true.
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }

  // Asserts to the analysis that this thread has locked the mutex. Does nothing at run time.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex for its lifetime, except between Unlock and Lock.
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

// std::condition_variable. Wait in a loop that checks the condition: the analysis sees there that
// the mutex is held, which it does not in a lambda.
class CondVar {
 public:
  void Wait(MutexLock* lock) { changed_.wait(lock->lock_); }
  // Returns false if the deadline has passed.
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
