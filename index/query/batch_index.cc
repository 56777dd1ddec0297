#include "cairn/batch_index.h"

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/query.h"

namespace cairn {

absl::Status BatchIndex::Find(KeyBatch keys, FindResult* matches,
                              const QueryOptions& options) const {
  return Execute(Batch::Find(keys, matches, options));
}

absl::Status BatchIndex::FindFirst(KeyBatch keys, absl::Span<GlobalRowId> rows,
                                   const QueryOptions& options) const {
  return Execute(Batch::FindFirst(keys, rows, options));
}

absl::Status BatchIndex::Contains(KeyBatch keys, absl::Span<bool> found,
                                  const QueryOptions& options) const {
  return Execute(Batch::Contains(keys, found, options));
}

absl::Status BatchIndex::Count(const RangeBatch& ranges, absl::Span<uint64_t> counts,
                               const QueryOptions& options) const {
  return Execute(Batch::Count(ranges, counts, options));
}

absl::Status BatchIndex::Scan(const RangeBatch& ranges, FindResult* matches,
                              const QueryOptions& options) const {
  return Execute(Batch::Scan(ranges, matches, options));
}

}  // namespace cairn
