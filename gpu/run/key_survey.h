#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"

namespace cairn::gpu {

// What one pass over a run's entries tells of them.
template <typename Key>
struct KeySurvey {
  // Indexes of the counts below: for blocks of 2^16, 2^32, 2^48 and 2^64 keys.
  static constexpr int kWidths = 4;
  static constexpr size_t kLongRun = 32;

  Key least, greatest;
  uint64_t distinct;
  bool keys_ascend;   // whether no key is below the one before it
  bool rows_ascend;   // whether the row ids of equal keys do
  bool has_no_row;    // whether one of the row ids is kNoRow
  bool has_long_run;  // whether some key has more than kLongRun entries
  // How many blocks, of keys that agree above their low bits, hold keys; and how many of them have
  // a block without keys just before them.
  uint64_t blocks[kWidths], gaps[kWidths];

  // How many of a key's bits packed leaves should keep so that `size` keys take fewest of them.
  int BestLeafBits(size_t size) const;
};

// Surveys at least one key in memory of the host, ascending, on up to `threads` threads; rows are
// taken to ascend, as those of a SortedRun do.
template <typename Key>
KeySurvey<Key> SurveyOnHost(absl::Span<const Key> keys, int threads);
// Surveys `size` keys, at least one, that read(first, keys) gives, so many from the first on; it is
// called from several threads.
template <typename Key>
KeySurvey<Key> SurveyOnHost(size_t size, absl::FunctionRef<void(size_t, absl::Span<Key>)> read,
                            int threads);

// Surveys at least one entry in device memory. Where keys do not ascend, the counts mean nothing.
// Waits.
template <typename Key>
absl::StatusOr<KeySurvey<Key>> SurveyKeys(const Key* keys, const RowId* row_ids, size_t size,
                                          cudaStream_t stream);

// DataLoss, saying why, where entries are not those of a run, in order and each with a row: what is
// built over others would read anywhere.
template <typename Key>
absl::Status CheckEntries(const KeySurvey<Key>& survey);

}  // namespace cairn::gpu
