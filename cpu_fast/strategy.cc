#include "cpu_fast/strategy.h"

#include <new>
#include <string_view>

#include "absl/strings/str_format.h"
#include "cpu_fast/batch_answer.h"
#include "cpu_fast/buffered_search.h"
#include "cpu_fast/sorted_search.h"
#include "index/batch_check.h"

namespace cairn {
namespace {

constexpr size_t kMaxParts = 1024;

absl::Status CheckOptions(const StrategyOptions& options) {
  if (options.order == ResultOrder::kKey && options.strategy != Strategy::kSortBased) {
    return absl::InvalidArgumentError("only the sort-based strategy gives results in key order");
  }
  if (options.parts == 0 || options.parts > kMaxParts ||
      (options.parts & (options.parts - 1)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("parts are a power of two, at most %d, not %d", kMaxParts, options.parts));
  }
  if (options.buffer == 0 || options.buffer > kMaxEntries) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a buffer of %d queries; it takes 1 to %d", options.buffer, kMaxEntries));
  }
  return absl::OkStatus();
}

absl::Status Run(const OrderedIndex& index, Answer answer, KeyBatch keys,
                 const StrategyOptions& options, StrategyScratch* scratch,
                 absl::Span<uint32_t> out) {
  switch (options.strategy) {
    case Strategy::kBuffered:
      return BufferedSearch(index, answer, keys, options, scratch, out);
    case Strategy::kSortBased:
      return SortBasedSearch(index, answer, keys, options, scratch, out);
    case Strategy::kUnbuffered:
      break;
  }
  return AnswerBatch(index, answer, keys, out);
}

absl::Status Answered(const OrderedIndex& index, Answer answer, KeyBatch keys,
                      absl::Span<uint32_t> out, std::string_view out_name,
                      const StrategyOptions& options, StrategyScratch* scratch) {
  scratch->set_permutation({});
  if (absl::Status s = CheckKind(index.run().kind(), keys); !s.ok()) return s;
  if (absl::Status s = CheckOutput(keys.size(), out.size(), out_name); !s.ok()) return s;
  if (absl::Status s = CheckOptions(options); !s.ok()) return s;
  if (keys.size() > kMaxEntries) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a batch of %d keys; a strategy takes %d", keys.size(), kMaxEntries));
  }
  try {
    return Run(index, answer, keys, options, scratch, out);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("no memory for a batch of %d keys", keys.size()));
  }
}

}  // namespace

absl::Status LowerBound(const OrderedIndex& index, KeyBatch keys, absl::Span<Position> positions,
                        const StrategyOptions& options, StrategyScratch* scratch) {
  return Answered(index, Answer::kPosition, keys, positions, "positions", options, scratch);
}

absl::Status FindFirst(const OrderedIndex& index, KeyBatch keys, absl::Span<RowId> row_ids,
                       const StrategyOptions& options, StrategyScratch* scratch) {
  return Answered(index, Answer::kFirstRow, keys, row_ids, "row_ids", options, scratch);
}

}  // namespace cairn
