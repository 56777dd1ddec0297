#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cairn/internal/shared_column.h"
#include "cairn/query.h"
#include "engine/c/error.h"
#include "engine/c/handles.h"
#include "engine/c/json.h"
#include "engine/c/keys.h"
#include "engine/c/ranges.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

absl::Status ReadNames(const char* const* columns, size_t count, std::vector<std::string>* names) {
  if (count > 0) RETURN_IF_ERROR(CheckNotNull(columns, "columns"));
  for (size_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(CheckNotNull(columns[i], "columns"));
    names->emplace_back(columns[i]);
  }
  return absl::OkStatus();
}

// Reads cairn_query_options as QueryOptions.
class QueryIn {
 public:
  absl::Status Read(const cairn_index& index, const cairn_query_options* given) {
    ASSIGN_OR_RETURN(const cairn_query_options options, ReadOptions(given, "options"));
    explain_text_ = options.explain;
    if (explain_text_ != nullptr) *explain_text_ = nullptr;
    RETURN_IF_ERROR(ReadEnum(options.order, Order::kDescending, "order", &options_.order));
    options_.with_keys = options.with_keys != 0;
    if (options.limit != 0) options_.limit = options.limit;
    if (options.latency_target_ns != 0) {
      options_.latency_target =
          absl::Nanoseconds(std::min(options.latency_target_ns, static_cast<uint64_t>(INT64_MAX)));
    }
    options_.sorted_input = options.sorted_input != 0;
    if (options.cancel != nullptr) options_.cancelled = &options.cancel->set;
    if (options.timeout_ns != 0) {
      options_.deadline = absl::Now() + absl::Nanoseconds(std::min(
                                            options.timeout_ns, static_cast<uint64_t>(INT64_MAX)));
    }
    if (options.route != nullptr) options_.route = options.route;
    RETURN_IF_ERROR(ReadNames(options.columns, options.column_count, &options_.columns));
    if (index.ordered != nullptr && !options_.columns.empty()) {
      return absl::InvalidArgumentError(
          "expected no columns to return: an index over columns includes none");
    }
    if (index.ordered != nullptr && (options.route != nullptr || explain_text_ != nullptr)) {
      return absl::InvalidArgumentError(
          "expected neither a route nor to explain one: an index over columns has one structure");
    }
    return absl::OkStatus();
  }

  const QueryOptions& options() const { return options_; }

  // Executes the batch, and explains it if requested.
  absl::Status Execute(const cairn_index& index, Batch batch) const {
    if (index.ordered != nullptr) return index.ordered->Execute(batch);
    return Explained([&](Explain* explain) {
      batch.explain = explain;
      return index.secondary->Execute(batch);
    });
  }

 private:
  // Calls ask(explain), with null if no explanation is requested.
  template <typename Ask>
  absl::Status Explained(Ask ask) const {
    if (explain_text_ == nullptr) return ask(nullptr);
    Explain explain;
    RETURN_IF_ERROR(ask(&explain));
    *explain_text_ = NewText(ToJson(explain));
    return absl::OkStatus();
  }

  QueryOptions options_;
  char** explain_text_ = nullptr;
};

// Returns the caller's space for an answer per query.
template <typename T>
absl::StatusOr<absl::Span<T>> Output(T* output, std::string_view name, size_t size,
                                     size_t queries) {
  if (size != queries) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: expected space for %d answers, found %d", name, queries, size));
  }
  if (size > 0) RETURN_IF_ERROR(CheckNotNull(output, name));
  return absl::MakeSpan(output, size);
}

// Clears incomplete results of a failed call. Otherwise exported lists could extend past the end of
// their items.
void Clear(cairn_matches* matches) {
  matches->codec.reset();
  matches->matches.offsets.clear();
  matches->matches.row_ids.clear();
  matches->matches.shards.clear();
  matches->matches.keys.Clear(matches->matches.keys.kind());
  matches->matches.cursors.clear();
  matches->matches.columns.clear();
  matches->columns.clear();
}

void Clear(cairn_rows* rows) {
  rows->rows.offsets.clear();
  rows->rows.row_ids.clear();
  rows->rows.shards.clear();
  rows->rows.primary_keys.Clear();
  rows->rows.values.Clear();
  rows->rows.cursors.clear();
  rows->rows.stale = 0;
}

absl::Status AnswerInto(const cairn_index& index, const QueryIn& query, const Batch& batch,
                        cairn_matches* matches) {
  absl::Cleanup clear = [matches] { Clear(matches); };
  matches->codec.reset();
  matches->matches.cursors.clear();
  matches->matches.columns.clear();
  matches->columns = query.options().columns;
  matches->in_shards = index.in_shards();
  RETURN_IF_ERROR(query.Execute(index, batch));
  std::move(clear).Cancel();
  return absl::OkStatus();
}

using IndexCheck = absl::Status(const cairn_index*);

absl::Status CheckAnyIndex(const cairn_index* index) {
  return CheckNotNull(index, "index");
}

// Checks the index of a call, reads its options and keys, and calls ask(query, keys).
template <typename Ask>
cairn_error* WithKeys(IndexCheck check, const cairn_index* index, const ArrowSchema* schema,
                      const ArrowArray* array, const cairn_query_options* options, Ask ask) {
  return CFunction("finding keys", [&]() -> absl::Status {
    RETURN_IF_ERROR(check(index));
    QueryIn query;
    RETURN_IF_ERROR(query.Read(*index, options));
    KeysIn keys;
    RETURN_IF_ERROR(keys.Read(index->codec, schema, array));
    return ask(query, keys.batch());
  });
}

// The same with ranges. `takes_cursors`: whether an index of a database continues after cursors.
template <typename Ask>
cairn_error* WithRanges(std::string_view doing, IndexCheck check, const cairn_index* index,
                        const cairn_ranges* given, bool takes_cursors,
                        const cairn_query_options* options, Ask ask) {
  return CFunction(doing, [&]() -> absl::Status {
    RETURN_IF_ERROR(check(index));
    QueryIn query;
    RETURN_IF_ERROR(query.Read(*index, options));
    RangesIn ranges;
    RETURN_IF_ERROR(ranges.Read(index->codec, given, takes_cursors && index->secondary != nullptr));
    return ask(query, ranges.batch());
  });
}

// Row is RowId or GlobalRowId. `name` is the caller's name of the parameter.
template <typename Row>
absl::Status DoPrimaryKeys(const cairn_index* index, const Row* rows, std::string_view name,
                           size_t size, ArrowSchema* schema, ArrowArray* array) {
  RETURN_IF_ERROR(CheckOfDatabase(index));
  RETURN_IF_ERROR(CheckNotNull(schema, "schema", array, "array"));
  if (size > 0) RETURN_IF_ERROR(CheckNotNull(rows, name));
  auto primary_keys = std::make_shared<StringList>();
  const absl::Span<const Row> span(rows, size);
  if constexpr (std::is_same_v<Row, GlobalRowId>) {
    RETURN_IF_ERROR(index->secondary->PrimaryKeys(span, primary_keys.get()));
  } else {
    if (index->in_shards()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: expected 64-bit row ids, because the index is sharded: call "
                          "cairn_primary_keys_global",
                          name));
    }
    RETURN_IF_ERROR(index->secondary->PrimaryKeys(RowSpan(span, {}), primary_keys.get()));
  }
  return SharedColumn::Bytes(std::move(primary_keys)).Export(schema, array, "primary_key");
}

// Returns whether times can be predicted for the operation.
bool HasTimes(const cairn_index* index, int32_t operation) {
  return index != nullptr && index->secondary != nullptr && operation >= 0 &&
         operation < static_cast<int32_t>(kIndexOperations);
}

}  // namespace
}  // namespace cairn

cairn_error* cairn_find_first(const cairn_index* index, const ArrowSchema* schema,
                              const ArrowArray* keys, const cairn_query_options* options,
                              uint32_t* row_ids, size_t size) {
  return cairn::WithKeys(
      cairn::CheckAnyIndex, index, schema, keys, options,
      [&](const auto& query, const auto& batch) {
        if (index->in_shards()) {
          return absl::InvalidArgumentError(
              "row_ids: expected 64-bit row ids, because the index is sharded: call "
              "cairn_find_first_global");
        }
        ASSIGN_OR_RETURN(const auto rows, cairn::Output(row_ids, "row_ids", size, batch.size()));
        return query.Execute(*index, cairn::Batch::FindFirst(batch, rows, query.options()));
      });
}

cairn_error* cairn_find_first_global(const cairn_index* index, const ArrowSchema* schema,
                                     const ArrowArray* keys, const cairn_query_options* options,
                                     uint64_t* rows, size_t size) {
  return cairn::WithKeys(
      cairn::CheckOfDatabase, index, schema, keys, options,
      [&](const auto& query, const auto& batch) {
        ASSIGN_OR_RETURN(const auto found, cairn::Output(rows, "rows", size, batch.size()));
        return query.Execute(*index, cairn::Batch::FindFirst(batch, found, query.options()));
      });
}

cairn_error* cairn_contains(const cairn_index* index, const ArrowSchema* schema,
                            const ArrowArray* keys, const cairn_query_options* options, bool* found,
                            size_t size) {
  return cairn::WithKeys(
      cairn::CheckAnyIndex, index, schema, keys, options,
      [&](const auto& query, const auto& batch) {
        ASSIGN_OR_RETURN(const auto answers, cairn::Output(found, "found", size, batch.size()));
        return query.Execute(*index, cairn::Batch::Contains(batch, answers, query.options()));
      });
}

cairn_error* cairn_find(const cairn_index* index, const ArrowSchema* schema, const ArrowArray* keys,
                        const cairn_query_options* options, cairn_matches* matches) {
  return cairn::WithKeys(
      cairn::CheckAnyIndex, index, schema, keys, options,
      [&](const auto& query, const auto& batch) {
        RETURN_IF_ERROR(cairn::CheckNotNull(matches, "matches"));
        return cairn::AnswerInto(
            *index, query, cairn::Batch::Find(batch, &matches->matches, query.options()), matches);
      });
}

cairn_error* cairn_count(const cairn_index* index, const cairn_ranges* given,
                         const cairn_query_options* options, uint64_t* counts, size_t size) {
  return cairn::WithRanges(
      "counting ranges", cairn::CheckAnyIndex, index, given, /*takes_cursors=*/false, options,
      [&](const auto& query, const auto& ranges) {
        ASSIGN_OR_RETURN(const auto answers, cairn::Output(counts, "counts", size, ranges.size()));
        return query.Execute(*index, cairn::Batch::Count(ranges, answers, query.options()));
      });
}

cairn_error* cairn_scan(const cairn_index* index, const cairn_ranges* given,
                        const cairn_query_options* options, cairn_matches* matches) {
  return cairn::WithRanges(
      "scanning ranges", cairn::CheckAnyIndex, index, given, /*takes_cursors=*/true, options,
      [&](const auto& query, const auto& ranges) {
        RETURN_IF_ERROR(cairn::CheckNotNull(matches, "matches"));
        RETURN_IF_ERROR(cairn::AnswerInto(
            *index, query, cairn::Batch::Scan(ranges, &matches->matches, query.options()),
            matches));
        if (query.options().with_keys) matches->codec = index->codec;
        return absl::OkStatus();
      });
}

cairn_error* cairn_fetch(const cairn_index* index, const cairn_source* source,
                         const cairn_ranges* given, const cairn_query_options* options,
                         cairn_rows* rows) {
  return cairn::WithRanges("fetching rows", cairn::CheckOfDatabase, index, given,
                           /*takes_cursors=*/true, options,
                           [&](const auto& query, const auto& ranges) {
                             RETURN_IF_ERROR(cairn::CheckNotNull(source, "source", rows, "rows"));
                             rows->rows.cursors.clear();
                             absl::Cleanup clear = [rows] { cairn::Clear(rows); };
                             RETURN_IF_ERROR(index->secondary->Fetch(*source->source, ranges,
                                                                     query.options(), &rows->rows));
                             rows->in_shards = index->in_shards();
                             std::move(clear).Cancel();
                             return absl::OkStatus();
                           });
}

cairn_error* cairn_primary_keys(const cairn_index* index, const uint32_t* row_ids, size_t size,
                                ArrowSchema* schema, ArrowArray* array) {
  return cairn::CFunction("reading primary keys", [&] {
    return cairn::DoPrimaryKeys(index, row_ids, "row_ids", size, schema, array);
  });
}

cairn_error* cairn_primary_keys_global(const cairn_index* index, const uint64_t* rows, size_t size,
                                       ArrowSchema* schema, ArrowArray* array) {
  return cairn::CFunction("reading primary keys", [&] {
    return cairn::DoPrimaryKeys(index, rows, "rows", size, schema, array);
  });
}

cairn_error* cairn_columns(const cairn_index* index, const char* const* columns,
                           size_t column_count, const uint64_t* rows, size_t size,
                           ArrowSchema* schema, ArrowArray* array) {
  return cairn::CFunction("reading included columns", [&] {
    RETURN_IF_ERROR(cairn::CheckOfDatabase(index));
    RETURN_IF_ERROR(cairn::CheckNotNull(schema, "schema", array, "array"));
    if (size > 0) RETURN_IF_ERROR(cairn::CheckNotNull(rows, "rows"));
    std::vector<std::string> names;
    RETURN_IF_ERROR(cairn::ReadNames(columns, column_count, &names));
    auto values = std::make_shared<std::vector<cairn::ColumnValues>>();
    RETURN_IF_ERROR(
        index->secondary->Columns(absl::MakeConstSpan(rows, size), names, values.get()));
    return cairn::SharedColumn::Structs(names.empty() ? 0 : size,
                                        cairn::SharedColumn::Fields(names, std::move(values)))
        .AsBytes()
        .Export(schema, array);
  });
}

uint64_t cairn_predicted_time_ns(const cairn_index* index, int32_t operation, size_t queries) try {
  if (!cairn::HasTimes(index, operation)) return 0;
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(
      index->secondary->PredictedTime(static_cast<cairn::Operation>(operation), queries)));
} catch (...) {
  return 0;
}

size_t cairn_best_batch(const cairn_index* index, int32_t operation) try {
  if (!cairn::HasTimes(index, operation)) return 1;
  return index->secondary->BestBatch(static_cast<cairn::Operation>(operation));
} catch (...) {
  return 1;
}
