#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/types.h"

namespace cairn {

// Takes the entries of one run from a sort or a merge. Used by one thread at a time.
class EntrySink {
 public:
  virtual ~EntrySink() = default;

  // Called once, first, with the number of entries and, for keys of bytes, the sum of their
  // lengths.
  virtual absl::Status Begin(uint64_t entries, uint64_t key_bytes) = 0;

  // Then called for any number of batches of one kind, strictly ascending by (key, row id) within
  // and across batches.
  virtual absl::Status Append(absl::Span<const uint32_t> keys, absl::Span<const RowId> row_ids) = 0;
  virtual absl::Status Append(absl::Span<const uint64_t> keys, absl::Span<const RowId> row_ids) = 0;
  virtual absl::Status Append(absl::Span<const std::string_view> keys,
                              absl::Span<const RowId> row_ids) = 0;
};

}  // namespace cairn
