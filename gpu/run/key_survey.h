#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"

namespace cairn::gpu {

// The results of one scan of a run's entries.
template <typename Key>
struct KeySurvey {
  // Indexes of the counts below: for blocks of 2^16, 2^32, 2^48 and 2^64 keys.
  static constexpr int kWidths = 4;
  static constexpr size_t kLongRun = 32;

  Key least, greatest;
  uint64_t distinct;
  bool keys_ascend;   // no key is less than the key before it
  bool rows_ascend;   // the row ids of equal keys ascend
  bool has_no_row;    // some row id is kNoRow
  bool has_long_run;  // some key has more than kLongRun entries
  // A block is the set of keys that agree in all but their low bits. Counts the blocks that contain
  // keys, and those of them that have an empty block just before them.
  uint64_t blocks[kWidths], gaps[kWidths];

  // The number of key bits that packed leaves should keep, so that `size` keys take the fewest
  // leaves.
  int BestLeafBits(size_t size) const;
};

// Surveys at least one key in host memory, ascending, on up to `threads` threads. Rows are assumed
// to ascend, as in a SortedRun.
template <typename Key>
KeySurvey<Key> SurveyOnHost(absl::Span<const Key> keys, int threads);
// Surveys `size` >= 1 keys that read(first, keys) provides: it fills the span with keys from
// `first` on. It is called from several threads.
template <typename Key>
KeySurvey<Key> SurveyOnHost(size_t size, absl::FunctionRef<void(size_t, absl::Span<Key>)> read,
                            int threads);

// Surveys at least one entry in device memory. If keys do not ascend, the counts are undefined.
// Waits.
template <typename Key>
absl::StatusOr<KeySurvey<Key>> SurveyKeys(const Key* keys, const RowId* row_ids, size_t size,
                                          cudaStream_t stream);

// DataLoss, with the reason, if entries are not those of a run, sorted and each with a row id.
// Structures over other entries would read arbitrary memory.
template <typename Key>
absl::Status CheckEntries(const KeySurvey<Key>& survey);

}  // namespace cairn::gpu
