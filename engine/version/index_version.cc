#include "engine/version/index_version.h"

#include "absl/strings/str_format.h"
#include "cpu_fast/batch/parallel_batch.h"
#include "engine/version/versioned_search.h"
#include "index/machine/topology.h"
#include "index/query/batch_check.h"

namespace cairn {

absl::Status IndexVersion::Answer(const Batch& batch, int threads) const {
  if (static_cast<size_t>(batch.operation) >= kOperations) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is for an ordered index: a secondary index has no positions",
                        OperationName(batch.operation)));
  }
  if (batch.options.result_order == ResultOrder::kKey && !batch.takes_ranges()) {
    if (absl::Status s = CheckOutput(batch.size(), batch.query_of.size(), "query_of"); !s.ok()) {
      return s;
    }
  }
  // Cursors name rows of any version, so they are read where these are known.
  const bool in_pages =
      batch.operation == Operation::kScan &&
      (batch.options.limit != QueryOptions().limit || !batch.ranges.after.empty());
  if (delta->empty() && !in_pages) return base->router->Answer(batch);
  return AnswerVersion(
      *delta, [this](const Batch& of_base) { return base->router->Answer(of_base); }, batch,
      Parallelism{Topology::Get().Threads(threads)});
}

}  // namespace cairn
