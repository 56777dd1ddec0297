#include "index/aggregates/entry_values.h"

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cairn/column.h"
#include "cairn/sorted_run.h"
#include "index/aggregates/batches.h"
#include "index/columns/column_type.h"
#include "index/keys/key_encoding.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

template <typename T>
uint64_t InOrder(T number) {
  if constexpr (std::is_floating_point_v<T>) {
    return OrderedBits(number);
  } else {
    return NumberToBits(number) ^ (std::is_signed_v<T> ? uint64_t{1} << 63 : 0);
  }
}

// The results of one task.
struct Found {
  absl::Status status;
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  uint64_t nulls = 0;
};

// Fills entries [first, first + count): entry first + i is null if null(i), otherwise it has
// number(i).
template <typename NumberAt, typename NullAt>
void FillEntries(size_t first, size_t count, NumberAt number, NullAt null, EntryValues* values,
                 Found* found) {
  for (size_t i = first; i < first + count; ++i) {
    if (null(i - first)) {
      values->numbers[i] = 0;
      ++found->nulls;
      continue;
    }
    const uint64_t x = values->numbers[i] = number(i - first);
    values->present[i / 64] |= uint64_t{1} << i % 64;
    found->least = std::min(found->least, x);
    found->most = std::max(found->most, x);
  }
}

// Calls fill(first, count, &found) for all entries, in parallel.
template <typename Fill>
absl::StatusOr<EntryValues> FillAll(size_t entries, int threads, Fill fill) {
  EntryValues values;
  values.numbers = AlignedBuffer<uint64_t>(entries);
  values.present.resize((entries + 63) / 64);
  std::vector<Found> found((entries + kEntriesPerTask - 1) / kEntriesPerTask);
  ParallelFor(threads, found.size(), [&](size_t task) {
    const size_t first = task * kEntriesPerTask;
    fill(first, std::min(kEntriesPerTask, entries - first), &values, &found[task]);
  });
  for (Found& task : found) {
    RETURN_IF_ERROR(task.status);
    values.least = std::min(values.least, task.least);
    values.most = std::max(values.most, task.most);
    values.nulls += task.nulls;
  }
  return values;
}

// The rank of each text among the distinct ones; unspecified for a null.
absl::StatusOr<std::vector<uint32_t>> RanksOf(const ColumnValues& text, int threads) {
  std::vector<std::string_view> views(text.strings().begin(), text.strings().end());
  ASSIGN_OR_RETURN(const SortedRun run, SortedRun::FromUnsorted(views, {}, threads));
  std::vector<uint32_t> ranks(text.size());
  uint32_t rank = 0;
  for (size_t i = 0; i < run.size(); ++i) {
    if (i != 0 && run.bytes()[i] != run.bytes()[i - 1]) ++rank;
    ranks[run.row_ids()[i]] = rank;
  }
  return ranks;
}

absl::StatusOr<EntryValues> GatherRanks(const ColumnTable& table, size_t column,
                                        absl::Span<const RowId> row_ids, int threads) {
  ColumnValues text(table.columns()[column].type);
  RETURN_IF_ERROR(table.Read(column, 0, table.rows(), &text));
  ASSIGN_OR_RETURN(const std::vector<uint32_t> ranks, RanksOf(text, threads));
  return FillAll(
      row_ids.size(), threads, [&](size_t first, size_t count, EntryValues* values, Found* found) {
        const auto row = [&](size_t i) { return row_ids[first + i]; };
        const auto bad = std::find_if(row_ids.begin() + first, row_ids.begin() + first + count,
                                      [&](RowId r) { return r >= table.rows(); });
        if (bad != row_ids.begin() + first + count) {
          ColumnValues none(text.type());
          found->status = table.Gather(column, {*bad}, &none);  // returns the error
          return;
        }
        FillEntries(
            first, count, [&](size_t i) { return uint64_t{ranks[row(i)]}; },
            [&](size_t i) { return text.is_null(row(i)); }, values, found);
      });
}

// Fills entries from `first` on with the numbers of `some`.
void FillNumbers(const ColumnValues& some, size_t first, size_t from, size_t count,
                 EntryValues* values, Found* found) {
  VisitColumnType(some.type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, std::string_view>) {
      const absl::Span<const T> numbers = some.numbers<T>();
      FillEntries(
          first, count, [&](size_t i) { return InOrder(numbers[from + i]); },
          [&](size_t i) { return some.is_null(from + i); }, values, found);
    }
  });
}

// Values of a column without nulls.
EntryValues AllPresent(size_t entries) {
  EntryValues values;
  values.numbers = AlignedBuffer<uint64_t>(entries);
  std::fill(values.numbers.begin(), values.numbers.end(), uint64_t{0});
  values.present.assign((entries + 63) / 64, UINT64_MAX);
  if (entries != 0) values.least = 0;
  return values;
}

}  // namespace

absl::StatusOr<EntryValues> OrderEntries(const ColumnValues& values, int threads) {
  std::vector<uint32_t> ranks;
  if (IsTextOrBytes(values.type())) {
    ASSIGN_OR_RETURN(ranks, RanksOf(values, threads));
  }
  return FillAll(values.size(), threads,
                 [&](size_t first, size_t count, EntryValues* ordered, Found* found) {
                   if (!IsTextOrBytes(values.type())) {
                     FillNumbers(values, first, first, count, ordered, found);
                     return;
                   }
                   FillEntries(
                       first, count, [&](size_t i) { return uint64_t{ranks[first + i]}; },
                       [&](size_t i) { return values.is_null(first + i); }, ordered, found);
                 });
}

absl::StatusOr<EntryValues> GatherPresent(const ColumnTable& table, size_t column,
                                          absl::Span<const RowId> row_ids, int threads) {
  if (column < table.columns().size() && table.null_count(column) == 0) {
    return AllPresent(row_ids.size());
  }
  ColumnValues text(column < table.columns().size() ? table.columns()[column].type : DataType::kU8);
  RETURN_IF_ERROR(table.Read(column, 0, table.rows(), &text));
  return FillAll(row_ids.size(), threads,
                 [&](size_t first, size_t count, EntryValues* values, Found* found) {
                   FillEntries(
                       first, count, [](size_t) { return uint64_t{0}; },
                       [&](size_t i) {
                         const RowId row = row_ids[first + i];
                         return row >= text.size() || text.is_null(row);
                       },
                       values, found);
                 });
}

EntryValues PresentOf(const ColumnValues& values, int threads) {
  if (values.null_count() == 0) return AllPresent(values.size());
  return *FillAll(values.size(), threads,
                  [&](size_t first, size_t count, EntryValues* present, Found* found) {
                    FillEntries(
                        first, count, [](size_t) { return uint64_t{0}; },
                        [&](size_t i) { return values.is_null(first + i); }, present, found);
                  });
}

absl::StatusOr<EntryValues> GatherEntries(const ColumnTable& table, size_t column,
                                          absl::Span<const RowId> row_ids, int threads) {
  if (column >= table.columns().size()) {
    ColumnValues none;
    return table.Gather(column, {}, &none);  // returns the error
  }
  const DataType type = table.columns()[column].type;
  if (IsTextOrBytes(type)) return GatherRanks(table, column, row_ids, threads);
  return FillAll(row_ids.size(), threads,
                 [&](size_t first, size_t count, EntryValues* values, Found* found) {
                   ColumnValues some(type);
                   found->status = table.Gather(column, row_ids.subspan(first, count), &some);
                   if (!found->status.ok()) return;
                   FillNumbers(some, first, 0, count, values, found);
                 });
}

}  // namespace cairn
