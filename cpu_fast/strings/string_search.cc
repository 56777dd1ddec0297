#include "cpu_fast/strings/string_search.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/prefetch.h"
#include "index/machine/status_macros.h"
#include "index/run/run_columns.h"
#include "index/strings/string_compare.h"

namespace cairn {

absl::StatusOr<std::unique_ptr<OrderedIndex>> StringSearch::Build(SortedRun run,
                                                                  std::optional<SimdLevel> level) {
  if (run.kind() != PhysicalType::kBytes) {
    return absl::UnimplementedError(
        absl::StrFormat("cpu:strings: expected byte-string keys, got %s; use cpu:fast",
                        PhysicalTypeName(run.kind())));
  }
  ASSIGN_OR_RETURN(const SimdLevel chosen, ChooseSimdLevel(level));
  return std::unique_ptr<OrderedIndex>(new StringSearch(std::move(run), chosen));
}

std::string StringSearch::description() const {
  return absl::StrFormat("cpu:strings,simd=%s", SimdLevelName(level_));
}

uint64_t StringSearch::memory_bytes() const {
  return samples_.memory_bytes();
}

void StringSearch::Search(absl::Span<const std::string_view> queries, StringGroup* group,
                          bool* found) const {
  std::fill_n(found, queries.size(), false);
  samples_.Narrow(queries, group);
  const BytesColumn& keys = run().bytes();
  const StringColumn column{keys};
  uint8_t active[StringGroup::kMax];
  size_t active_count = 0;
  for (size_t j = 0; j < queries.size(); ++j) {
    active[active_count] = static_cast<uint8_t>(j);
    active_count += group->low[j] < group->high[j];
  }
  Position middle[StringGroup::kMax];
  while (active_count > 0) {
    for (size_t a = 0; a < active_count; ++a) {
      const size_t j = active[a];
      middle[j] = group->low[j] + (group->high[j] - group->low[j]) / 2;
      column.PrefetchKey(middle[j]);
    }
    for (size_t a = 0; a < active_count; ++a) {
      const size_t j = active[a];
      Prefetch(keys.heap() + keys.offset(middle[j]) +
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
        found[j] |= order == 0;
      }
      active[still_active] = static_cast<uint8_t>(j);
      still_active += group->low[j] < group->high[j];
    }
    active_count = still_active;
  }
}

template <typename Prefetch, typename Emit>
void StringSearch::ForEach(absl::Span<const std::string_view> queries, Prefetch prefetch,
                           Emit emit) const {
  StringGroup group;
  bool found[StringGroup::kMax];
  for (size_t first = 0; first < queries.size(); first += StringGroup::kMax) {
    const size_t count = std::min(StringGroup::kMax, queries.size() - first);
    Search(queries.subspan(first, count), &group, found);
    for (size_t j = 0; j < count; ++j) prefetch(group.low[j]);
    for (size_t j = 0; j < count; ++j) emit(first + j, group.low[j], found[j]);
  }
}

void StringSearch::LowerBound(KeyBatch keys, Position* positions) const {
  ForEach(
      keys.bytes(), [](Position) {},
      [&](size_t i, Position position, bool) { positions[i] = position; });
}

void StringSearch::FindFirst(KeyBatch keys, RowId* row_ids) const {
  const RowId* rows = run().row_ids().data();
  ForEach(
      keys.bytes(), [&](Position position) { Prefetch(rows + position); },
      [&](size_t i, Position position, bool found) {
        row_ids[i] = found ? rows[position] : kNoRow;
      });
}

void StringSearch::Contains(KeyBatch keys, bool* found) const {
  ForEach(
      keys.bytes(), [](Position) {},
      [&](size_t i, Position, bool is_there) { found[i] = is_there; });
}

}  // namespace cairn
