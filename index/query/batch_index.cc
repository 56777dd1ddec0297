#include "cairn/batch_index.h"

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/query.h"

namespace cairn {

absl::Status BatchIndex::Find(KeyBatch keys, Matches* matches) const {
  return Answer(Batch::Find(keys, matches));
}
absl::Status BatchIndex::Find(KeyBatch keys, Matches* matches, const QueryOptions& options) const {
  return Answer(Batch::Find(keys, matches, options));
}

absl::Status BatchIndex::FindFirst(KeyBatch keys, absl::Span<RowId> row_ids) const {
  return Answer(Batch::FindFirst(keys, row_ids));
}
absl::Status BatchIndex::FindFirst(KeyBatch keys, absl::Span<RowId> row_ids,
                                   const QueryOptions& options) const {
  return Answer(Batch::FindFirst(keys, row_ids, options));
}

absl::Status BatchIndex::Contains(KeyBatch keys, absl::Span<bool> found) const {
  return Answer(Batch::Contains(keys, found));
}
absl::Status BatchIndex::Contains(KeyBatch keys, absl::Span<bool> found,
                                  const QueryOptions& options) const {
  return Answer(Batch::Contains(keys, found, options));
}

absl::Status BatchIndex::Count(const RangeBatch& ranges, absl::Span<uint64_t> counts) const {
  return Answer(Batch::Count(ranges, counts));
}
absl::Status BatchIndex::Count(const RangeBatch& ranges, absl::Span<uint64_t> counts,
                               const QueryOptions& options) const {
  return Answer(Batch::Count(ranges, counts, options));
}

absl::Status BatchIndex::Scan(const RangeBatch& ranges, Matches* matches) const {
  return Answer(Batch::Scan(ranges, matches));
}
absl::Status BatchIndex::Scan(const RangeBatch& ranges, Matches* matches,
                              const QueryOptions& options) const {
  return Answer(Batch::Scan(ranges, matches, options));
}

}  // namespace cairn
