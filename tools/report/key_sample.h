#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"

namespace cairn::tools {

using Deadline = std::chrono::steady_clock::time_point;

// Called with physical key i of `keys`, which is valid only during the call.
using KeyVisitor = std::function<void(const EncodedKeys& keys, size_t i)>;

// Appends key i of `from` to a column of its kind.
void AppendKey(const EncodedKeys& from, size_t i, EncodedKeys* to);

// Visits the key of every entry, in order. Returns false if the deadline passed before the end.
absl::StatusOr<bool> VisitAllKeys(const SecondaryIndex& index, Deadline deadline,
                                  const KeyVisitor& visit);

// The keys of the entries with these ranks, [0, entries), in any order. They are found by counting
// the entries below a key, some hundred times per rank, so the time does not depend on the size of
// the index. Byte-string keys that share more than 64 bytes after the common prefix of all keys are
// represented by the first of them. If the deadline passes, or if keys are so long that they take
// 256 MB, only the keys of the first ranks are returned.
absl::StatusOr<EncodedKeys> KeysOfRanks(const SecondaryIndex& index,
                                        const std::vector<uint64_t>& ranks, Deadline deadline);

// The first or last key in a range; nothing if it is empty.
absl::StatusOr<EncodedKeys> EndOfRange(const SecondaryIndex& index, const RangeBatch& range,
                                       Order order);

}  // namespace cairn::tools
