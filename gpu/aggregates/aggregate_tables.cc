#include "gpu/aggregates/aggregate_tables.h"

#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/aggregates/aggregate_directory.h"
#include "gpu/aggregates/aggregate_leaves.h"
#include "gpu/aggregates/aggregate_search.h"
#include "gpu/aggregates/aggregate_values.h"
#include "gpu/aggregates/group_summary.h"
#include "gpu/packed/leaf_packing.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// The content of a table: a column's sums, minimums or maximums; or only counts.
enum class TableOf : uint8_t { kCounts, kSums, kMin, kGreatest };

TableOf TableFor(AggregateFunction function) {
  switch (function) {
    case AggregateFunction::kSum:
    case AggregateFunction::kAvg:
      return TableOf::kSums;
    case AggregateFunction::kMin:
      return TableOf::kMin;
    case AggregateFunction::kMax:
      return TableOf::kGreatest;
    case AggregateFunction::kCount:
    case AggregateFunction::kCountDistinct:
      break;
  }
  return TableOf::kCounts;
}

bool IsFloat(DataType type) {
  return type == DataType::kF32 || type == DataType::kF64;
}

// The leaves of one kind of aggregate, the directory over them, which other tables may share, and
// additional arrays.
template <typename Key>
struct AggregateTable {
  TableOf of = TableOf::kCounts;
  size_t column = 0;
  uint64_t base = 0;  // AggregateOutput
  AggregateView view;
  std::shared_ptr<AggregateDirectory<Key>> directory;
  DeviceBuffer<Leaf> leaves;
  DeviceBuffer<KeyRecord> records;
  // One element for the type of the values is used; the others are empty.
  std::tuple<GroupSummary<uint32_t>, GroupSummary<uint64_t>, GroupSummary<double>> groups;

  // Calls visit(buffer) for all of the table's memory except the directory's.
  template <typename Visit>
  void ForEachBuffer(Visit visit) {
    visit(leaves);
    visit(records);
    std::apply(
        [&](auto&... summary) {
          (..., (visit(summary.leaves), visit(summary.lines), visit(summary.table)));
        },
        groups);
  }
};

template <typename Key>
class AggregatesOf : public DeviceAggregates {
 public:
  AggregatesOf(size_t size, int device)
      : DeviceAggregates(std::is_same_v<Key, uint32_t> ? PhysicalType::kU32 : PhysicalType::kU64,
                         size, device) {}

  absl::Status Build(DeviceRun<Key> run, absl::Span<const DeviceColumn> columns,
                     absl::Span<const DeviceAggregate> aggregates, cudaStream_t stream);

  uint64_t memory_bytes() const override {
    uint64_t bytes = first_entry_.bytes();
    for (const auto& directory : directories_) bytes += directory->memory_bytes();
    return bytes + table_bytes_;
  }

 private:
  // The entries while tables are being built.
  struct Entries {
    DistinctKeys<Key> distinct;  // without first_entry
    KeySurvey<Key> survey;
    DeviceBuffer<Key> keys;  // of all entries if some keys repeat, otherwise empty
    size_t size = 0;
    cudaStream_t stream = nullptr;

    bool repeats() const { return keys.size() != 0; }
  };

  absl::Status AnswerRanges(const DeviceRanges& ranges, const DeviceAggregate& aggregate,
                            const DeviceAggregateResults& results,
                            DeviceStream stream) const override;

  const AggregateTable<Key>* FindTable(const DeviceAggregate& aggregate) const;
  // Builds the table's leaves, of the view's kind.
  absl::Status BuildLeaves(const Entries& entries, LeafContents<Key> contents,
                           AggregateTable<Key>* table);
  absl::Status FindDirectory(const Entries& entries, AggregateTable<Key>* table);
  absl::Status BuildTable(const Entries& entries, const DeviceColumn& column,
                          AggregateTable<Key>* table);
  template <typename Value, typename Sum>
  absl::Status BuildSums(const Entries& entries, const DeviceColumn& column,
                         const ColumnSurvey& survey, AggregateTable<Key>* table);
  template <typename Value>
  absl::Status BuildGroups(const Entries& entries, const DeviceColumn& column,
                           const ColumnSurvey& survey, ValueCode code, AggregateTable<Key>* table);

  std::vector<DeviceColumn> columns_;  // without their memory
  std::vector<std::shared_ptr<AggregateDirectory<Key>>> directories_;
  std::vector<AggregateTable<Key>> tables_;
  uint64_t table_bytes_ = 0;
  DeviceBuffer<Position> first_entry_;  // DistinctKeys::first_entry, if keys repeat
};

template <typename Key>
const AggregateTable<Key>* AggregatesOf<Key>::FindTable(const DeviceAggregate& aggregate) const {
  const TableOf of = TableFor(aggregate.function);
  for (const AggregateTable<Key>& table : tables_) {
    if (of == TableOf::kCounts || (table.of == of && table.column == aggregate.column)) {
      return &table;
    }
  }
  return nullptr;
}

template <typename Key>
absl::Status AggregatesOf<Key>::FindDirectory(const Entries& entries, AggregateTable<Key>* table) {
  const AggregateKind kind = table->view.kind;
  const size_t size = entries.distinct.size();
  const int bits = AggregateLeafBits(kind, size, entries.survey);
  const int capacity = AggregateLeafEntries(kind, bits / 8);
  for (const auto& directory : directories_) {
    if (directory->bits == bits && directory->capacity == capacity) table->directory = directory;
  }
  if (table->directory == nullptr) {
    ASSIGN_OR_RETURN(AggregateDirectory<Key> made,
                     MakeAggregateDirectory(entries.distinct.keys.data(), size, entries.survey,
                                            bits, capacity, entries.stream));
    table->directory = std::make_shared<AggregateDirectory<Key>>(std::move(made));
    directories_.push_back(table->directory);
  }
  table->view.bits = bits;
  table->view.distinct = static_cast<Position>(size);
  return absl::OkStatus();
}

template <typename Key>
absl::Status AggregatesOf<Key>::BuildLeaves(const Entries& entries, LeafContents<Key> contents,
                                            AggregateTable<Key>* table) {
  contents.keys = entries.distinct.keys.data();
  ASSIGN_OR_RETURN(table->leaves, FillAggregateLeaves(table->view.kind, table->directory->cut,
                                                      contents, entries.stream));
  table->view.leaves = table->leaves.data();
  return absl::OkStatus();
}

template <typename Key>
template <typename Value, typename Sum>
absl::Status AggregatesOf<Key>::BuildSums(const Entries& entries, const DeviceColumn& column,
                                          const ColumnSurvey& survey, AggregateTable<Key>* table) {
  ASSIGN_OR_RETURN(
      const DeviceBuffer<Value> codes,
      GatherCodes<Value>(column, survey, ValueCode::kAboveLeast, entries.distinct.row_ids.data(),
                         entries.size, entries.stream));
  ASSIGN_OR_RETURN(const DeviceBuffer<Sum> sums,
                   (SumsBefore<Value, Sum>(codes.data(), entries.size, entries.stream)));
  LeafContents<Key> contents;
  if (entries.repeats()) {
    ASSIGN_OR_RETURN(table->records, MakeRecords(first_entry_.data(), entries.distinct.size(),
                                                 sums.data(), entries.stream));
    table->view.records = table->records.data();
    table->view.kind = AggregateKind::kCounts;
  } else {
    table->view.kind = sizeof(Value) == 4 ? AggregateKind::kSums32 : AggregateKind::kSums64;
    contents.values = codes.data();
    contents.sums = sums.data();
  }
  RETURN_IF_ERROR(FindDirectory(entries, table));
  return BuildLeaves(entries, contents, table);
}

template <typename Key>
template <typename Value>
absl::Status AggregatesOf<Key>::BuildGroups(const Entries& entries, const DeviceColumn& column,
                                            const ColumnSurvey& survey, ValueCode code,
                                            AggregateTable<Key>* table) {
  table->view.kind = std::is_same_v<Value, double> ? AggregateKind::kFloatSums
                     : sizeof(Value) == 4          ? AggregateKind::kExtremes32
                                                   : AggregateKind::kExtremes64;
  ASSIGN_OR_RETURN(DeviceBuffer<Value> codes,
                   GatherCodes<Value>(column, survey, code, entries.distinct.row_ids.data(),
                                      entries.size, entries.stream));
  if constexpr (sizeof(Value) == 8) {
    if (entries.repeats()) {
      ASSIGN_OR_RETURN(codes, ReduceByKey(entries.keys.data(), codes.data(), entries.size,
                                          entries.distinct.size(), entries.stream));
    }
  }
  RETURN_IF_ERROR(FindDirectory(entries, table));
  const LeafCut& cut = table->directory->cut;
  GroupOutside<Value> outside;
  auto& summary = std::get<GroupSummary<Value>>(table->groups);
  ASSIGN_OR_RETURN(summary, SummariseGroups(codes.data(), cut.first.data(), cut.primary, &outside,
                                            entries.stream));
  table->view.groups = summary.groups;
  table->view.group_leaves = summary.leaves.data();
  table->view.group_lines = summary.lines.data();
  table->view.group_table = summary.table.data();
  LeafContents<Key> contents;
  contents.values = codes.data();
  contents.before = outside.before.data();
  contents.behind = outside.behind.data();
  return BuildLeaves(entries, contents, table);
}

template <typename Key>
absl::Status AggregatesOf<Key>::BuildTable(const Entries& entries, const DeviceColumn& column,
                                           AggregateTable<Key>* table) {
  table->view.first_entry = first_entry_.data();  // null if keys are distinct
  if (table->of == TableOf::kCounts) {
    RETURN_IF_ERROR(FindDirectory(entries, table));
    return BuildLeaves(entries, {}, table);
  }
  if (table->of == TableOf::kSums && IsFloat(column.type())) {
    return BuildGroups<double>(entries, column, {}, ValueCode::kDouble, table);
  }
  ASSIGN_OR_RETURN(const ColumnSurvey survey, SurveyColumn(column, entries.stream));
  table->base = table->of == TableOf::kGreatest ? survey.greatest : survey.least;
  if (table->of == TableOf::kSums) {
    return survey.is_narrow() ? BuildSums<uint32_t, uint64_t>(entries, column, survey, table)
                              : BuildSums<uint64_t, WideKey>(entries, column, survey, table);
  }
  const ValueCode code =
      table->of == TableOf::kMin ? ValueCode::kAboveLeast : ValueCode::kBelowGreatest;
  // If keys repeat, their values are combined in 64 bits.
  return survey.is_narrow() && !entries.repeats()
             ? BuildGroups<uint32_t>(entries, column, survey, code, table)
             : BuildGroups<uint64_t>(entries, column, survey, code, table);
}

template <typename Key>
absl::Status AggregatesOf<Key>::Build(DeviceRun<Key> run, absl::Span<const DeviceColumn> columns,
                                      absl::Span<const DeviceAggregate> aggregates,
                                      cudaStream_t stream) {
  for (const DeviceColumn& column : columns) columns_.push_back(column);
  for (const DeviceAggregate& aggregate : aggregates) {
    const TableOf of = TableFor(aggregate.function);
    if (of == TableOf::kCounts || FindTable(aggregate) != nullptr) continue;
    AggregateTable<Key>& table = tables_.emplace_back();
    table.of = of;
    table.column = aggregate.column;
  }
  if (tables_.empty()) tables_.emplace_back();
  Entries entries;
  entries.size = run.size();
  entries.stream = stream;
  if (entries.size == 0) return absl::OkStatus();
  if (run.survey.has_value()) {
    entries.survey = *run.survey;
  } else {
    ASSIGN_OR_RETURN(entries.survey,
                     SurveyKeys(run.keys.data(), run.row_ids.data(), run.size(), stream));
  }
  if (entries.survey.distinct != entries.size) {
    RETURN_IF_ERROR(Resize(&entries.keys, entries.size, stream));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(entries.keys.data(), run.keys.data(),
                                               run.keys.bytes(), cudaMemcpyDeviceToDevice, stream));
  }
  ASSIGN_OR_RETURN(entries.distinct,
                   FindDistinctKeys(std::move(run), entries.survey.distinct, stream));
  first_entry_ = std::move(entries.distinct.first_entry);
  for (AggregateTable<Key>& table : tables_) {
    const DeviceColumn column =
        table.of == TableOf::kCounts ? DeviceColumn() : columns[table.column];
    RETURN_IF_ERROR(BuildTable(entries, column, &table));
  }
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  first_entry_.SetStream(AfterAllUses());
  for (const auto& directory : directories_) {
    directory->cut = LeafCut();
    if (directory->bitmap.has_value()) directory->bitmap->Detach();
  }
  for (AggregateTable<Key>& table : tables_) {
    table.ForEachBuffer([&](auto& buffer) {
      buffer.SetStream(AfterAllUses());
      table_bytes_ += buffer.bytes();
    });
  }
  return absl::OkStatus();
}

template <typename Key>
absl::Status AggregatesOf<Key>::AnswerRanges(const DeviceRanges& ranges,
                                             const DeviceAggregate& aggregate,
                                             const DeviceAggregateResults& results,
                                             DeviceStream stream) const {
  const AggregateTable<Key>* const table = FindTable(aggregate);
  if (table == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("DeviceAggregates: not built for the %s of column %d",
                        AggregateFunctionName(aggregate.function), aggregate.column));
  }
  const auto end_of = [](const DeviceKeys& keys, Bound bound) -> const Key* {
    return bound == Bound::kOpen ? nullptr : static_cast<const Key*>(keys.data());
  };
  const RangeEnds<Key> ends = {
      end_of(ranges.lower, ranges.lower_bound), end_of(ranges.upper, ranges.upper_bound),
      ranges.lower_bound == Bound::kExclusive ? Key{1} : Key{0},
      ranges.upper_bound == Bound::kInclusive ? Key{1} : Key{0}, ranges.size()};
  const DataType type =
      columns_.size() > aggregate.column ? columns_[aggregate.column].type() : DataType::kU64;
  const AggregateOutput output = {aggregate.function, type, table->base, results};
  if (size() == 0) return AggregateNothing(ends.size, output, stream);
  return table->directory->bitmap.has_value()
             ? AggregateUnderBitmap(table->view, table->directory->bitmap->view(), ends, output,
                                    stream)
             : AggregateUnderTree(table->view, *table->directory->tree, ends, output, stream);
}

}  // namespace

template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceAggregates>> BuildAggregates(
    DeviceRun<Key> run, absl::Span<const DeviceColumn> columns,
    absl::Span<const DeviceAggregate> aggregates, cudaStream_t stream) {
  for (const DeviceAggregate& aggregate : aggregates) {
    if (aggregate.function > AggregateFunction::kMax) {
      return absl::InvalidArgumentError(
          absl::StrFormat("invalid aggregate function: %d", static_cast<int>(aggregate.function)));
    }
    if (TableFor(aggregate.function) != TableOf::kCounts && aggregate.column >= columns.size()) {
      return absl::InvalidArgumentError(absl::StrFormat("%s of column %d: there are %d columns",
                                                        AggregateFunctionName(aggregate.function),
                                                        aggregate.column, columns.size()));
    }
  }
  if (run.size() != 0 && !columns.empty()) {
    ASSIGN_OR_RETURN(const RowId greatest, GreatestRow(run.row_ids.data(), run.size(), stream));
    for (size_t i = 0; i < columns.size(); ++i) {
      if (greatest < columns[i].size()) continue;
      return absl::InvalidArgumentError(
          absl::StrFormat("column %d has %d values, but there is an entry of row %d", i,
                          columns[i].size(), greatest));
    }
  }
  int device = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  auto built = std::make_unique<AggregatesOf<Key>>(run.size(), device);
  RETURN_IF_ERROR(built->Build(std::move(run), columns, aggregates, stream));
  return std::unique_ptr<DeviceAggregates>(std::move(built));
}

template absl::StatusOr<std::unique_ptr<DeviceAggregates>> BuildAggregates(
    DeviceRun<uint32_t>, absl::Span<const DeviceColumn>, absl::Span<const DeviceAggregate>,
    cudaStream_t);
template absl::StatusOr<std::unique_ptr<DeviceAggregates>> BuildAggregates(
    DeviceRun<uint64_t>, absl::Span<const DeviceColumn>, absl::Span<const DeviceAggregate>,
    cudaStream_t);

}  // namespace cairn::gpu
