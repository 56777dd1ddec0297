#include "cpu_fast/string_search.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "cpu_fast/string_compare.h"
#include "index/batch_check.h"
#include "index/run_columns.h"

namespace cairn {
namespace {

// Queries searched together: their lines in flight, times two or three, still fit the L1 cache.
constexpr size_t kGroup = 128;

// Samples that one task takes.
constexpr size_t kBuildGrain = 4096;

}  // namespace

// Everything known about the queries that are searched together. Query j's answer is in
// [low[j], high[j]].
struct StringSearch::Group {
  Position low[kGroup];
  Position high[kGroup];
  // Bytes that the query shares with the key before `low`, and with that at `high`, at least.
  size_t low_shared[kGroup];
  size_t high_shared[kGroup];
  bool found[kGroup];
};

StringSearch::StringSearch(SortedRun run, SimdLevel level)
    : OrderedIndex(std::move(run)), level_(level) {
  const BytesColumn& keys = this->run().bytes();
  if (this->run().empty()) return;
  const std::string_view first = keys[0];
  common_ = first.substr(0, CommonPrefix(first, keys[keys.size() - 1], 0));
  samples_ = AlignedBuffer<uint64_t>((keys.size() + kSample - 1) / kSample);
  tbb::parallel_for(tbb::blocked_range<size_t>(0, samples_.size(), kBuildGrain),
                    [&](const tbb::blocked_range<size_t>& range) {
                      for (size_t i = range.begin(); i < range.end(); ++i) {
                        samples_[i] = SliceOf(keys[i * kSample].substr(common_.size()));
                      }
                    });
  tree_ = FastTreeNodes<uint64_t>(std::as_const(samples_).span(), {}, PageBlocking::kNone, level);
}

absl::StatusOr<std::unique_ptr<StringSearch>> StringSearch::Build(SortedRun run,
                                                                  std::optional<SimdLevel> level) {
  if (run.kind() != KeyKind::kBytes) {
    return absl::UnimplementedError(absl::StrFormat(
        "cpu:strings takes keys of bytes, not %s: see cpu:fast", KeyKindName(run.kind())));
  }
  absl::StatusOr<SimdLevel> chosen =
      level.has_value() ? absl::StatusOr<SimdLevel>(*level) : DefaultSimdLevel();
  if (!chosen.ok()) return chosen.status();
  if (absl::Status s = CheckSupported(*chosen); !s.ok()) return s;
  return std::unique_ptr<StringSearch>(new StringSearch(std::move(run), *chosen));
}

std::string StringSearch::description() const {
  return absl::StrFormat("cpu:strings,simd=%s", SimdLevelName(level_));
}

uint64_t StringSearch::memory_bytes() const {
  return samples_.size() * sizeof(uint64_t) + tree_.memory_bytes();
}

void StringSearch::NarrowBySamples(absl::Span<const std::string_view> queries, Group* group) const {
  uint64_t slices[kGroup];
  Position first[kGroup];  // of the samples, the first not below the query's slice
  const auto end = static_cast<Position>(run().size());
  const auto samples = static_cast<Position>(samples_.size());
  for (size_t j = 0; j < queries.size(); ++j) {
    slices[j] = SliceOf(queries[j].substr(std::min(common_.size(), queries[j].size())));
  }
  tree_.LowerBound({slices, queries.size()}, first);

  // Where several samples tie, a second search finds the end of the tie.
  uint64_t tied_slices[kGroup];
  Position tied_ends[kGroup];
  uint8_t tied[kGroup];
  size_t ties = 0;
  for (size_t j = 0; j < queries.size(); ++j) {
    const Position f = first[j];
    Position behind = f + (f < samples && samples_[f] == slices[j]);
    if (behind > f && behind < samples && samples_[behind] == slices[j]) {
      tied[ties] = static_cast<uint8_t>(j);
      tied_slices[ties++] = slices[j];
    }
    group->low[j] = f == 0 ? 0 : static_cast<Position>((f - 1) * kSample + 1);
    group->high[j] = behind == samples ? end : static_cast<Position>(behind * kSample);
  }
  if (ties != 0) {
    // The greatest slice has no successor; its tie ends with the samples.
    for (size_t t = 0; t < ties; ++t) {
      tied_slices[t] += tied_slices[t] != std::numeric_limits<uint64_t>::max();
    }
    tree_.LowerBound({tied_slices, ties}, tied_ends);
    for (size_t t = 0; t < ties; ++t) {
      const size_t j = tied[t];
      const bool to_end = slices[j] == std::numeric_limits<uint64_t>::max();
      group->high[j] =
          to_end || tied_ends[t] == samples ? end : static_cast<Position>(tied_ends[t] * kSample);
    }
  }

  for (size_t j = 0; j < queries.size(); ++j) {
    group->low_shared[j] = group->high_shared[j] = common_.size();
    group->found[j] = false;
    // What lacks the common prefix stands before or behind all keys.
    const size_t shared = common_.empty() ? 0 : CommonPrefix(queries[j], common_, 0);
    if (shared == common_.size()) continue;
    const Position answer = CompareBehind(queries[j], common_, shared) < 0 ? 0 : end;
    group->low[j] = group->high[j] = answer;
  }
}

void StringSearch::SearchRun(absl::Span<const std::string_view> queries, Group* group) const {
  const BytesColumn& keys = run().bytes();
  const StringColumn column{keys};
  uint8_t active[kGroup];
  size_t active_count = 0;
  for (size_t j = 0; j < queries.size(); ++j) {
    active[active_count] = static_cast<uint8_t>(j);
    active_count += group->low[j] < group->high[j];
  }
  Position middle[kGroup];
  while (active_count > 0) {
    for (size_t a = 0; a < active_count; ++a) {
      const size_t j = active[a];
      middle[j] = group->low[j] + (group->high[j] - group->low[j]) / 2;
      column.PrefetchKey(middle[j]);
    }
    for (size_t a = 0; a < active_count; ++a) {
      const size_t j = active[a];
      __builtin_prefetch(keys.heap() + keys.offset(middle[j]) +
                         std::min(group->low_shared[j], group->high_shared[j]));
    }
    size_t still_active = 0;
    for (size_t a = 0; a < active_count; ++a) {
      const size_t j = active[a];
      const std::string_view key = keys[middle[j]];
      const size_t shared =
          CommonPrefix(queries[j], key, std::min(group->low_shared[j], group->high_shared[j]));
      const int order = CompareBehind(key, queries[j], shared);
      if (order < 0) {
        group->low[j] = middle[j] + 1;
        group->low_shared[j] = shared;
      } else {
        group->high[j] = middle[j];
        group->high_shared[j] = shared;
        group->found[j] |= order == 0;
      }
      active[still_active] = static_cast<uint8_t>(j);
      still_active += group->low[j] < group->high[j];
    }
    active_count = still_active;
  }
}

void StringSearch::Search(absl::Span<const std::string_view> queries, Group* group) const {
  if (run().empty()) {
    std::fill_n(group->low, queries.size(), 0);
    std::fill_n(group->found, queries.size(), false);
    return;
  }
  NarrowBySamples(queries, group);
  SearchRun(queries, group);
}

template <typename Prefetch, typename Emit>
void StringSearch::ForEach(absl::Span<const std::string_view> queries, Prefetch prefetch,
                           Emit emit) const {
  Group group;
  for (size_t first = 0; first < queries.size(); first += kGroup) {
    const size_t count = std::min(kGroup, queries.size() - first);
    Search(queries.subspan(first, count), &group);
    for (size_t j = 0; j < count; ++j) prefetch(group.low[j]);
    for (size_t j = 0; j < count; ++j) emit(first + j, group.low[j], group.found[j]);
  }
}

absl::Status StringSearch::LowerBound(KeyBatch keys, absl::Span<Position> positions) const {
  if (absl::Status s = CheckKind(run().kind(), keys); !s.ok()) return s;
  if (absl::Status s = CheckOutput(keys.size(), positions.size(), "positions"); !s.ok()) return s;
  ForEach(
      keys.bytes(), [](Position) {},
      [&](size_t i, Position position, bool) { positions[i] = position; });
  return absl::OkStatus();
}

absl::Status StringSearch::FindFirst(KeyBatch keys, absl::Span<RowId> row_ids) const {
  if (absl::Status s = CheckKind(run().kind(), keys); !s.ok()) return s;
  if (absl::Status s = CheckOutput(keys.size(), row_ids.size(), "row_ids"); !s.ok()) return s;
  const RowId* rows = run().row_ids().data();
  ForEach(
      keys.bytes(), [&](Position position) { __builtin_prefetch(rows + position); },
      [&](size_t i, Position position, bool found) {
        row_ids[i] = found ? rows[position] : kNoRow;
      });
  return absl::OkStatus();
}

absl::Status StringSearch::Contains(KeyBatch keys, absl::Span<bool> found) const {
  if (absl::Status s = CheckKind(run().kind(), keys); !s.ok()) return s;
  if (absl::Status s = CheckOutput(keys.size(), found.size(), "found"); !s.ok()) return s;
  ForEach(
      keys.bytes(), [](Position) {},
      [&](size_t i, Position, bool is_there) { found[i] = is_there; });
  return absl::OkStatus();
}

}  // namespace cairn
