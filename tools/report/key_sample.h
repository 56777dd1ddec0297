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

// Is given key i of some, physical, which is gone when it returns.
using KeyVisitor = std::function<void(const EncodedKeys& keys, size_t i)>;

// Appends key i of `from` to a column of its kind.
void AppendKey(const EncodedKeys& from, size_t i, EncodedKeys* to);

// Visits the key of every entry, in order. False if the deadline passed before the end.
absl::StatusOr<bool> VisitAllKeys(const SecondaryIndex& index, Deadline deadline,
                                  const KeyVisitor& visit);

// The keys of the entries of these ranks, [0, entries), in any order. Found by counting the entries
// below a key, some hundred times a rank, so that it takes no longer in a large index. Byte-string
// keys that share more than 64 bytes after the common prefix of all keys are represented by the
// first of them. Where the deadline passes, or keys are so long that they take 256 MB, the keys of
// the first ranks alone.
absl::StatusOr<EncodedKeys> KeysOfRanks(const SecondaryIndex& index,
                                        const std::vector<uint64_t>& ranks, Deadline deadline);

// The first or last key in a range; none if it is empty.
absl::StatusOr<EncodedKeys> EndOfRange(const SecondaryIndex& index, const RangeBatch& range,
                                       Order order);

}  // namespace cairn::tools
