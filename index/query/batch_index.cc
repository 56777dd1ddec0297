#include "cairn/batch_index.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/query/batch_check.h"

namespace cairn {

absl::Status BatchIndex::Find(KeyBatch keys, FindResult* matches,
                              const QueryOptions& options) const {
  return Execute(Batch::Find(keys, matches, options));
}

absl::Status BatchIndex::FindFirst(KeyBatch keys, absl::Span<RowId> row_ids,
                                   const QueryOptions& options) const {
  return Execute(Batch::FindFirst(keys, row_ids, options));
}

absl::Status BatchIndex::FindFirstGlobal(KeyBatch keys, absl::Span<GlobalRowId> rows,
                                         const QueryOptions& options, Explain* explain) const try {
  RETURN_IF_ERROR(CheckOutput(keys.size(), rows.size(), "rows"));
  std::vector<RowId> row_ids(rows.size());
  std::vector<uint32_t> shards(rows.size());
  Batch batch = Batch::FindFirst(keys, absl::MakeSpan(row_ids), options);
  batch.shards = absl::MakeSpan(shards);
  batch.explain = explain;
  RETURN_IF_ERROR(Execute(batch));
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = row_ids[i] == kNoRow ? kNoGlobalRow : MakeGlobalRowId(shards[i], row_ids[i]);
  }
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("answering a batch");
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
