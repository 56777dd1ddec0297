#include "cpu_fast/batch/batch_answer.h"

namespace cairn {
namespace {

template <typename T>
absl::Span<T> SliceOf(absl::Span<T> all, size_t first, size_t count) {
  return all.empty() ? all : all.subspan(first, count);
}

template <typename T>
void ScatterColumn(absl::Span<const uint32_t> slots, absl::Span<const T> from, absl::Span<T> to) {
  if (from.empty()) return;
  for (size_t i = 0; i < slots.size(); ++i) to[slots[i]] = from[i];
}

}  // namespace

Answers Answers::Slice(size_t first, size_t count) const {
  return {query, SliceOf(values, first, count), SliceOf(ends, first, count),
          SliceOf(found, first, count)};
}

void Answers::Scatter(absl::Span<const uint32_t> slots, const Answers& to) const {
  ScatterColumn<uint32_t>(slots, values, to.values);
  ScatterColumn<Position>(slots, ends, to.ends);
  ScatterColumn<bool>(slots, found, to.found);
}

absl::Status AnswerBatch(const OrderedIndex& index, KeyBatch keys, const Answers& answers) {
  switch (answers.query) {
    case PointQuery::kLowerBound:
      return index.LowerBound(keys, answers.values);
    case PointQuery::kUpperBound:
      return index.UpperBound(keys, answers.values);
    case PointQuery::kFindFirst:
      return index.FindFirst(keys, answers.values);
    case PointQuery::kContains:
      return index.Contains(keys, answers.found);
    case PointQuery::kEqualRange:
      break;
  }
  return index.Positions(RangeBatch::Equal(keys), answers.values, answers.ends);
}

}  // namespace cairn
