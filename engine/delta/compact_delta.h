#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/delta/delta.h"

namespace cairn {

// The compact form of a version's delta, which is the fastest to query: all added entries are in
// one part, and the removed positions are in an ascending array as well (Delta::removed_positions).
// Updates do not create this form, because it takes time for all changes. It is created once
// queries of the version have done so much work that the compact form would have saved about as
// much as it costs. A version that is soon replaced never gets one.
//
// Thread-safe.
class CompactDelta {
 public:
  // Work units per query, in proportion to the extra time that a query takes if there are more
  // parts.
  static constexpr uint64_t kPointWork = 1;
  static constexpr uint64_t kRangeWork = 16;

  // Makes a delta with the same entries, rows and end. Takes time and memory for all changes.
  // Errors: those of Delta::AddedEntries. Throws std::bad_alloc.
  static absl::StatusOr<std::shared_ptr<const Delta>> Make(const Delta& delta);

  // Returns the compact form of `delta`, which must be the delta that owns this object; null if
  // there is none yet. Adds `work` to the work done so far, and makes the compact form once that is
  // enough. One thread makes it; the others continue without it. If memory runs out, it is never
  // made.
  const std::shared_ptr<const Delta>* Get(const Delta& delta, uint64_t work);

  // Bytes in addition to those of `delta`.
  uint64_t memory_bytes(const Delta& delta) const;

 private:
  std::atomic<uint64_t> work_{0};
  std::atomic_flag begun_;         // set by the thread that makes it
  std::atomic<bool> made_{false};  // if true, compact_ is final
  std::shared_ptr<const Delta> compact_;
};

// Returns the faster form of `delta` for `work` units of CompactDelta.
inline const Delta& CompactOf(const Delta& delta, uint64_t work) {
  if (delta.compact == nullptr) return delta;
  const std::shared_ptr<const Delta>* const compact = delta.compact->Get(delta, work);
  return compact == nullptr ? delta : **compact;
}

}  // namespace cairn
