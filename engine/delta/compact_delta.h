#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/delta/delta.h"

namespace cairn {

// A version's delta in the form that is asked fastest: what came in one part, and what was removed
// as ascending positions (Delta::removed_positions) besides. Updates do not make that form, which
// takes time for all that has changed: it is made once the version has been asked so much that what
// it would have saved is about what it takes. A version that is soon replaced never is.
//
// Thread-safe.
class CompactDelta {
 public:
  // What a query counts for, by what it takes longer where there are more parts.
  static constexpr uint64_t kPointWork = 1;
  static constexpr uint64_t kRangeWork = 16;

  // A delta with the same entries, rows and end. Takes time and memory for all that has changed.
  // Errors as Delta::AddedEntries'. Throws std::bad_alloc.
  static absl::StatusOr<std::shared_ptr<const Delta>> Make(const Delta& delta);

  // The compact form of `delta`, whose this is; null where it is not made. Takes note of work
  // that is about to be done, and makes it if the time has come: one thread does, and the others
  // go on without it. Where memory does not suffice it is never made.
  const std::shared_ptr<const Delta>* Get(const Delta& delta, uint64_t work);

  // Bytes beyond those of `delta`.
  uint64_t memory_bytes(const Delta& delta) const;

 private:
  std::atomic<uint64_t> work_{0};
  std::atomic_flag begun_;         // whoever sets it makes it
  std::atomic<bool> made_{false};  // compact_ does not change any more
  std::shared_ptr<const Delta> compact_;
};

// `delta` in the form that is best to ask, for work of CompactDelta's units.
inline const Delta& CompactOf(const Delta& delta, uint64_t work) {
  if (delta.compact == nullptr) return delta;
  const std::shared_ptr<const Delta>* const compact = delta.compact->Get(delta, work);
  return compact == nullptr ? delta : **compact;
}

}  // namespace cairn
