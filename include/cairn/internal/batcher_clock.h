#pragma once

#include "absl/time/time.h"

namespace cairn {

// The source of the time for a Batcher (BatcherOptions::clock), for tests that control it.
// Thread-safe.
class BatcherClock {
 public:
  virtual ~BatcherClock() = default;
  virtual absl::Time Now() const = 0;
};

}  // namespace cairn
