#pragma once

#include <functional>

namespace cairn {

// While an object exists, exit() calls `end` before RocksDB's static objects are destroyed, because
// the threads of an index still use these. RocksDB ends its own threads at exit in the same way.
// `end` is called at most once, and never after the destructor has begun to return.
class EndAtExit {
 public:
  explicit EndAtExit(std::function<void()> end);
  ~EndAtExit();
  EndAtExit(const EndAtExit&) = delete;
  EndAtExit& operator=(const EndAtExit&) = delete;

  const std::function<void()>& end() const { return end_; }

 private:
  const std::function<void()> end_;
};

}  // namespace cairn
