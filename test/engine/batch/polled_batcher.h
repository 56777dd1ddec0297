#pragma once

#include <memory>

#include "cairn/batch_index.h"
#include "cairn/batcher.h"
#include "cairn/query.h"
#include "test/require_ok.h"

namespace cairn {

inline std::unique_ptr<Batcher> Make(const BatchIndex& index, const BatcherOptions& options = {}) {
  return RequireOk(Batcher::Make(&index, options));
}

// Without threads, and with callers that only submit: batches run only in Poll and Flush.
inline BatcherOptions Polled(const BatcherClock* clock = nullptr) {
  BatcherOptions options;
  options.threads = 0;
  options.shards = 1;
  options.callers = BatcherOptions::Callers::kNever;
  options.clock = clock;
  return options;
}

// A receiver.
inline void Ignore(void*, const Batcher::Answers&) {}

// Valid during the lifetime of the keys.
inline RangeBatch Range(const Batcher::Key& lower, const Batcher::Key& upper) {
  return RangeBatch::HalfOpen(lower.batch(), upper.batch());
}

}  // namespace cairn
