#include "index/run/entry_order.h"

#include <functional>
#include <type_traits>
#include <vector>

#include "index/machine/parallel.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

// Entries per task.
constexpr size_t kGrain = size_t{1} << 18;

EntryOrder OrderOfRange(const SortedRun& run, size_t first, size_t last) {
  return WithColumn(run, [&](const auto& column) {
    if constexpr (std::is_same_v<std::decay_t<decltype(column)>, StringColumn>) {
      return OrderOf(column.keys, run.row_ids(), first, last);
    } else {
      return OrderOf(column.keys.data(), run.row_ids(), first, last);
    }
  });
}

}  // namespace

EntryOrder OrderOf(const SortedRun& run, int threads) {
  std::vector<EntryOrder> parts((run.size() + kGrain - 1) / kGrain);
  ParallelFor(threads, parts.size(), [&](size_t part) {
    parts[part] = OrderOfRange(run, part * kGrain, std::min((part + 1) * kGrain, run.size()));
  });
  EntryOrder order;
  for (const EntryOrder& part : parts) order.Join(part);
  return order;
}

std::optional<size_t> FirstOutOfOrder(const SortedRun& run) {
  for (size_t first = 0; first < run.size(); first += kGrain) {
    const size_t last = std::min(first + kGrain, run.size());
    if (OrderOfRange(run, first, last).ascends) continue;
    for (size_t i = first; i < last; ++i) {
      if (!OrderOfRange(run, i, i + 1).ascends) return i;
    }
  }
  return std::nullopt;
}

template <typename Offset>
std::optional<size_t> FirstDescent(absl::Span<const Offset> offsets, int threads) {
  const size_t parts = (offsets.size() + kGrain - 1) / kGrain;
  std::vector<char> descends(parts);
  ParallelFor(threads, parts, [&](size_t part) {
    const size_t last = std::min((part + 1) * kGrain, offsets.size());
    bool found = false;
    for (size_t i = std::max<size_t>(part * kGrain, 1); i < last; ++i) {
      found |= offsets[i] < offsets[i - 1];
    }
    descends[part] = found;
  });
  if (std::find(descends.begin(), descends.end(), 1) == descends.end()) return std::nullopt;
  return std::adjacent_find(offsets.begin(), offsets.end(), std::greater<>()) - offsets.begin() + 1;
}

template std::optional<size_t> FirstDescent(absl::Span<const uint32_t>, int);
template std::optional<size_t> FirstDescent(absl::Span<const uint64_t>, int);

}  // namespace cairn
