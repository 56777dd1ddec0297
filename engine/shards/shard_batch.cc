#include "engine/shards/shard_batch.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "index/machine/batch_threads.h"
#include "index/machine/guard.h"

namespace cairn {
namespace {

// From this many queries of one shard on, the shard's search itself uses several threads.
constexpr size_t kSpreadQueries = size_t{1} << 15;
// Below this number of queries in total, waking threads takes longer than they save.
constexpr size_t kWorthThreads = size_t{1} << 12;
// Queries per slice of a large batch; the data of a slice stays in a core's caches.
constexpr size_t kSliceQueries = size_t{1} << 14;

template <typename Key>
void GatherOf(absl::Span<const Key> keys, absl::Span<const uint32_t> queries,
              std::vector<Key>* gathered) {
  gathered->resize(queries.size());
  for (size_t i = 0; i < queries.size(); ++i) (*gathered)[i] = keys[queries[i]];
}

// Adds a slice's explanation to that of the batch.
void AddExplain(const Explain& slice, Explain* all) {
  all->queries += slice.queries;
  all->expected_rows += slice.expected_rows;
  all->predicted += slice.predicted;
  all->measured += slice.measured;
  all->failures.insert(all->failures.end(), slice.failures.begin(), slice.failures.end());
}

}  // namespace

void GatheredKeys::Gather(const KeyBatch& keys, absl::Span<const uint32_t> queries) {
  kind_ = keys.kind();
  switch (kind_) {
    case PhysicalType::kU32:
      return GatherOf(keys.u32(), queries, &u32_);
    case PhysicalType::kU64:
      return GatherOf(keys.u64(), queries, &u64_);
    case PhysicalType::kBytes:
      return GatherOf(keys.bytes(), queries, &bytes_);
  }
}

void GatheredKeys::Set(size_t i, const KeyBatch& key) {
  switch (kind_) {
    case PhysicalType::kU32:
      u32_[i] = key.u32()[0];
      return;
    case PhysicalType::kU64:
      u64_[i] = key.u64()[0];
      return;
    case PhysicalType::kBytes:
      bytes_[i] = key.bytes()[0];
      return;
  }
}

KeyBatch GatheredKeys::Batch() const {
  switch (kind_) {
    case PhysicalType::kU32:
      return u32_;
    case PhysicalType::kU64:
      return u64_;
    case PhysicalType::kBytes:
      break;
  }
  return bytes_;
}

void GatheredRanges::Gather(const RangeBatch& ranges, absl::Span<const uint32_t> queries) {
  lower_.Gather(ranges.lower, queries);
  upper_.Gather(ranges.upper, queries);
  lower_bounds_.clear();
  upper_bounds_.clear();
  after_.clear();
  for (const uint32_t query : queries) {
    lower_bounds_.push_back(ranges.lower_bound_of(query));
    upper_bounds_.push_back(ranges.upper_bound_of(query));
    if (!ranges.after.empty()) after_.push_back(ranges.after[query]);
  }
}

RangeBatch GatheredRanges::Batch() const {
  RangeBatch ranges = RangeBatch::HalfOpen(lower_.Batch(), upper_.Batch());
  ranges.lower_bounds = lower_bounds_;
  ranges.upper_bounds = upper_bounds_;
  ranges.after = after_;
  return ranges;
}

absl::Status ForEachAskedShard(const ShardedState& state, const ShardAssignment& assignment,
                               absl::FunctionRef<absl::Status(size_t shard)> body) {
  std::vector<size_t> asked;
  bool spread = false;
  for (size_t s = 0; s + 1 < assignment.begin.size(); ++s) {
    const size_t queries = assignment.queries(s).size();
    if (queries != 0) asked.push_back(s);
    spread |= queries >= kSpreadQueries;
  }
  const size_t parts = std::min(asked.size(), static_cast<size_t>(state.threads));
  // Searches on different devices do not compete for threads.
  spread &= state.lanes == 1;
  if (parts <= 1 || spread || assignment.query_of.size() < kWorthThreads) {
    for (const size_t shard : asked) {
      if (absl::Status s = body(shard); !s.ok()) return s;
    }
    return absl::OkStatus();
  }
  std::vector<absl::Status> statuses(asked.size());
  RunOnBatchThreads(parts, [&](size_t part) {
    for (size_t i = part; i < asked.size(); i += parts) statuses[i] = body(asked[i]);
  });
  for (absl::Status& status : statuses) {
    if (!status.ok()) return std::move(status);
  }
  return absl::OkStatus();
}

absl::Status AnswerInSlices(
    const ShardedState& state, const Batch& batch,
    absl::FunctionRef<absl::Status(const ShardedState&, const Batch&)> answer) {
  const size_t slices = batch.size() / kSliceQueries;
  if (slices < 2 || state.routing.shards() == 1) return answer(state, batch);
  const size_t parts = std::min(slices, static_cast<size_t>(state.threads));
  ShardedState of_slice = state;
  of_slice.threads = 1;
  std::vector<absl::Status> statuses(slices);
  std::vector<Explain> explains(batch.explain == nullptr ? 0 : slices);
  RunOnBatchThreads(parts, [&](size_t part) {
    for (size_t i = part; i < slices; i += parts) {
      const size_t first = i * kSliceQueries;
      Batch slice = batch.Slice(first, i + 1 < slices ? kSliceQueries : batch.size() - first);
      if (batch.explain != nullptr) slice.explain = &explains[i];
      statuses[i] =
          Guarded("answering a slice of a batch", [&] { return answer(of_slice, slice); });
    }
  });
  for (absl::Status& status : statuses) {
    if (!status.ok()) return std::move(status);
  }
  if (batch.explain == nullptr) return absl::OkStatus();
  Explain& all = *batch.explain = explains[0];
  for (size_t i = 1; i < slices; ++i) AddExplain(explains[i], &all);
  all.predicted /= static_cast<double>(parts);
  all.measured /= static_cast<double>(parts);
  all.reason =
      absl::StrFormat("in %d slices, %d at a time; the first: %s", slices, parts, all.reason);
  return absl::OkStatus();
}

void CombineExplains(const Batch& batch, absl::Span<const Explain> explains,
                     const ShardAssignment& assignment, size_t lanes) {
  Explain& all = *batch.explain;
  size_t most = 0, asked = 0;
  double expected_rows = 0;
  std::vector<absl::Duration> predicted(lanes), measured(lanes);
  std::vector<std::string> failures;
  for (size_t s = 0; s < explains.size(); ++s) {
    const size_t queries = assignment.queries(s).size();
    if (queries == 0) continue;
    ++asked;
    if (queries > assignment.queries(most).size() || asked == 1) most = s;
    expected_rows += explains[s].expected_rows;
    predicted[s % lanes] += explains[s].predicted;
    measured[s % lanes] += explains[s].measured;
    failures.insert(failures.end(), explains[s].failures.begin(), explains[s].failures.end());
  }
  all = asked == 0 ? Explain() : explains[most];
  all.operation = batch.operation;
  all.queries = batch.size();
  all.expected_rows = expected_rows;
  all.predicted = *std::max_element(predicted.begin(), predicted.end());
  all.measured = *std::max_element(measured.begin(), measured.end());
  all.failures = std::move(failures);
  all.reason = absl::StrFormat(
      "%d of %d shards queried, one after the other%s predicted and measured; shard %d, queried "
      "most: "
      "%s",
      asked, explains.size(), lanes == 1 ? "" : absl::StrFormat(" in %d lanes", lanes), most,
      all.reason);
}

}  // namespace cairn
