#include "index/columns/column_table.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/columns/column_dictionary.h"
#include "index/columns/column_reader.h"
#include "index/columns/column_type.h"
#include "index/keys/key_number.h"
#include "index/machine/guard.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr std::string_view kReading = "reading columns";

// Blocks per task of a check.
constexpr uint64_t kBlocksPerTask = 64;

uint64_t Blocks(uint64_t rows) {
  return (rows + kRowsPerColumnBlock - 1) / kRowsPerColumnBlock;
}

template <typename... Args>
absl::Status TableDamaged(std::string_view name, const absl::FormatSpec<Args...>& format,
                          const Args&... args) {
  return absl::DataLossError(
      absl::StrFormat("column file '%s' is damaged: %s", name, absl::StrFormat(format, args...)));
}

bool Fits(BlockEncoding encoding, DataType type) {
  switch (encoding) {
    case BlockEncoding::kNumbers:
      return !IsTextOrBytes(type);
    case BlockEncoding::kDecimals:
      return IsFloat(type);
    case BlockEncoding::kStrings:
    case BlockEncoding::kDictionary:
      return IsTextOrBytes(type);
  }
  return false;
}

}  // namespace

absl::Status CheckColumns(absl::Span<const ColumnSchema> columns) {
  if (columns.empty() || columns.size() > kMaxColumns) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected 1 to %d columns, found %d", kMaxColumns, columns.size()));
  }
  std::set<std::string_view> names;
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string& name = columns[i].name;
    if (name.empty() || name.size() > kMaxColumnNameBytes) {
      return absl::InvalidArgumentError(
          absl::StrFormat("column %d: expected a name of 1 to %d bytes, found %d", i,
                          kMaxColumnNameBytes, name.size()));
    }
    if (columns[i].type > DataType::kBytes) {
      return absl::InvalidArgumentError(absl::StrFormat("column '%s' is of no known type", name));
    }
    if (!names.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrFormat("there are two columns '%s'", name));
    }
  }
  return absl::OkStatus();
}

struct ColumnTable::State {
  Sections sections;
  std::string name;
  std::shared_ptr<const void> owner;
  std::vector<ColumnSchema> schemas;
  std::vector<ColumnReader> readers;  // one a column; views of what is above

  uint64_t rows() const { return sections.properties.rows; }
  absl::Status SetColumns();
  absl::Status SetReaders();
  absl::Status CheckDirectory(ColumnReader* reader) const;
  absl::Status CheckDictionary(const ColumnReader& reader) const;
  absl::Status CheckBlocks(int threads) const;
};

// Reads the columns' names and types.
absl::Status ColumnTable::State::SetColumns() {
  const ColumnFileProperties& properties = sections.properties;
  if (properties.rows > kMaxEntries || properties.block_rows != kRowsPerColumnBlock) {
    return TableDamaged(name, "section 'properties': %d rows in blocks of %d", properties.rows,
                        properties.block_rows);
  }
  if (properties.columns != sections.columns.size()) {
    return TableDamaged(name, "section 'properties': %d columns, expected %d", properties.columns,
                        sections.columns.size());
  }
  size_t at = 0;
  for (size_t i = 0; i < sections.columns.size() && i <= kMaxColumns; ++i) {
    const ColumnRecord& column = sections.columns[i];
    if (column.type > static_cast<uint32_t>(DataType::kBytes) ||
        column.name_bytes > sections.names.size() - at || column.nulls > properties.rows) {
      return TableDamaged(name, "section 'columns', column %d: type %d, %d bytes of name, %d nulls",
                          i, column.type, column.name_bytes, column.nulls);
    }
    schemas.push_back({std::string(sections.names.substr(at, column.name_bytes)),
                       static_cast<DataType>(column.type)});
    at += column.name_bytes;
  }
  if (absl::Status s = CheckColumns(schemas); !s.ok()) {
    return TableDamaged(name, "section 'columns': %s", s.message());
  }
  if (at != sections.names.size()) {
    return TableDamaged(name, "section 'names' has %d bytes, expected %d", sections.names.size(),
                        at);
  }
  return absl::OkStatus();
}

// Cuts the directory and the dictionaries into columns, and checks them.
absl::Status ColumnTable::State::SetReaders() {
  const uint64_t blocks = Blocks(rows());
  if (sections.directory.size() != blocks * schemas.size()) {
    return TableDamaged(name, "section 'directory' has %d blocks, expected %d",
                        sections.directory.size(), blocks * schemas.size());
  }
  uint64_t ends = 0, heap = 0;
  for (size_t i = 0; i < schemas.size(); ++i) {
    const ColumnRecord& column = sections.columns[i];
    if (column.dictionary_values > sections.dictionary_ends.size() - ends ||
        column.dictionary_bytes > sections.dictionary_heap.size() - heap ||
        column.dictionary_values > ColumnDictionary::kMaxValues ||
        column.dictionary_bytes > ColumnDictionary::kMaxBytes) {
      return TableDamaged(name,
                          "section 'columns', column '%s': a dictionary of %d values, %d bytes",
                          schemas[i].name, column.dictionary_values, column.dictionary_bytes);
    }
    ColumnReader reader;
    reader.file = name;
    reader.name = schemas[i].name;
    reader.type = schemas[i].type;
    reader.rows = rows();
    reader.nulls = column.nulls;
    reader.blocks = sections.blocks;
    reader.directory = sections.directory.subspan(i * blocks, blocks);
    reader.dictionary_ends = sections.dictionary_ends.subspan(ends, column.dictionary_values);
    reader.dictionary_heap = sections.dictionary_heap.substr(heap, column.dictionary_bytes);
    ends += column.dictionary_values;
    heap += column.dictionary_bytes;
    RETURN_IF_ERROR(CheckDictionary(reader));
    RETURN_IF_ERROR(CheckDirectory(&reader));
    readers.push_back(reader);
  }
  if (ends != sections.dictionary_ends.size() || heap != sections.dictionary_heap.size()) {
    return TableDamaged(name, "the dictionaries have %d values, %d bytes, expected %d and %d",
                        sections.dictionary_ends.size(), sections.dictionary_heap.size(), ends,
                        heap);
  }
  return absl::OkStatus();
}

absl::Status ColumnTable::State::CheckDictionary(const ColumnReader& reader) const {
  uint32_t end = 0;
  for (size_t i = 0; i < reader.dictionary_ends.size(); ++i) {
    if (reader.dictionary_ends[i] < end ||
        reader.dictionary_ends[i] > reader.dictionary_heap.size()) {
      return TableDamaged(
          name,
          "section 'dictionary ends', column '%s': value %d ends at %d of %d, after "
          "%d",
          reader.name, i, reader.dictionary_ends[i], reader.dictionary_heap.size(), end);
    }
    end = reader.dictionary_ends[i];
  }
  if (end == reader.dictionary_heap.size()) return absl::OkStatus();
  return TableDamaged(name, "section 'dictionary heap', column '%s': %d bytes, expected %d",
                      reader.name, reader.dictionary_heap.size(), end);
}

// Checks that each block's packed numbers, and the bytes that loads read after them, are in the
// section.
absl::Status ColumnTable::State::CheckDirectory(ColumnReader* reader) const {
  for (uint64_t i = 0; i < reader->directory.size(); ++i) {
    const ColumnBlock& block = reader->directory[i];
    const bool known =
        (block.width <= kMaxPackedWidth || block.width == 64) &&
        Fits(block.encoding(), reader->type) &&
        (block.encoding() == BlockEncoding::kDecimals ? block.exponent() <= kMaxDecimalExponent
                                                      : block.exponent() == 0);
    // Offsets are below 2^51, so nothing overflows.
    const bool inside =
        known && HeapOffset(block, reader->RowsOf(i)) + kBlockSlack <= sections.blocks.size();
    if (!inside) {
      return TableDamaged(
          name,
          "section 'directory', column '%s', block %d: form %d, width %d, offset %d "
          "of %d",
          reader->name, i, block.form, block.width, block.offset(), sections.blocks.size());
    }
    reader->has_nulls |= block.has_nulls();
  }
  if (reader->has_nulls != (reader->nulls != 0)) {
    return TableDamaged(name, "section 'columns', column '%s': %d nulls, but %s block has some",
                        reader->name, reader->nulls, reader->has_nulls ? "a" : "no");
  }
  return absl::OkStatus();
}

absl::Status ColumnTable::State::CheckBlocks(int threads) const {
  const uint64_t blocks = Blocks(rows());
  for (const ColumnReader& reader : readers) {
    const size_t tasks = (blocks + kBlocksPerTask - 1) / kBlocksPerTask;
    std::vector<absl::Status> statuses(tasks);
    std::vector<uint64_t> nulls(tasks);
    ParallelFor(threads, tasks, [&](size_t task) {
      const uint64_t end = std::min(blocks, (task + 1) * kBlocksPerTask);
      for (uint64_t i = task * kBlocksPerTask; i < end && statuses[task].ok(); ++i) {
        statuses[task] = reader.Check(i, &nulls[task]);
      }
    });
    uint64_t null_rows = 0;
    for (size_t task = 0; task < tasks; ++task) {
      RETURN_IF_ERROR(statuses[task]);
      null_rows += nulls[task];
    }
    if (null_rows != reader.nulls) {
      return TableDamaged(name, "section 'columns', column '%s': %d nulls, found %d", reader.name,
                          reader.nulls, null_rows);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ColumnTable> ColumnTable::Wrap(const Sections& sections, std::string name,
                                              VerifyLevel level, int threads,
                                              std::shared_ptr<const void> owner) {
  auto state = std::make_shared<State>();
  state->sections = sections;
  state->name = std::move(name);
  state->owner = std::move(owner);
  RETURN_IF_ERROR(state->SetColumns());
  RETURN_IF_ERROR(state->SetReaders());
  if (level == VerifyLevel::kFull) {
    RETURN_IF_ERROR(state->CheckBlocks(threads));
  }
  ColumnTable table;
  table.state_ = std::move(state);
  return table;
}

uint64_t ColumnTable::rows() const {
  return state_ == nullptr ? 0 : state_->rows();
}

absl::Span<const ColumnSchema> ColumnTable::columns() const {
  return state_ == nullptr ? absl::Span<const ColumnSchema>() : state_->schemas;
}

std::optional<size_t> ColumnTable::Find(std::string_view name) const {
  for (size_t i = 0; i < columns().size(); ++i) {
    if (columns()[i].name == name) return i;
  }
  return std::nullopt;
}

uint64_t ColumnTable::null_count(size_t column) const {
  return state_->readers[column].nulls;
}

uint64_t ColumnTable::memory_bytes() const {
  if (state_ == nullptr) return 0;
  const Sections& sections = state_->sections;
  return sizeof sections.properties + sections.columns.size() * sizeof(ColumnRecord) +
         sections.names.size() + sections.blocks.size() +
         sections.directory.size() * sizeof(ColumnBlock) +
         sections.dictionary_ends.size() * sizeof(uint32_t) + sections.dictionary_heap.size();
}

absl::Status ColumnTable::CheckColumn(size_t column) const {
  if (column < columns().size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("there is no column %d, expected one of %d", column, columns().size()));
}

absl::Status ColumnTable::CheckType(size_t column, DataType type) const {
  RETURN_IF_ERROR(CheckColumn(column));
  if (columns()[column].type == type) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("column '%s' is of %s, expected %s", columns()[column].name,
                      DataTypeName(columns()[column].type), DataTypeName(type)));
}

absl::Status ColumnTable::CheckRows(absl::Span<const RowId> row_ids) const {
  RowId most = 0;
  for (const RowId row : row_ids) most = std::max(most, row);
  if (row_ids.empty() || most < rows()) return absl::OkStatus();
  for (const RowId row : row_ids) {
    if (row < rows()) continue;
    return absl::OutOfRangeError(
        absl::StrFormat("there is no row %d, expected one of %d", row, rows()));
  }
  return absl::OkStatus();
}

absl::Status ColumnTable::Gather(size_t column, absl::Span<const RowId> row_ids,
                                 ColumnValues* values) const {
  const size_t before = values->size();
  const absl::Status status = Guarded(kReading, [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckType(column, values->type()));
    RETURN_IF_ERROR(CheckRows(row_ids));
    return state_->readers[column].Gather(row_ids, values);
  });
  if (!status.ok()) values->Truncate(before);
  return status;
}

absl::Status ColumnTable::Read(size_t column, uint64_t begin, uint64_t end,
                               ColumnValues* values) const {
  const size_t before = values->size();
  const absl::Status status = Guarded(kReading, [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckType(column, values->type()));
    if (begin > end || end > rows()) {
      return absl::OutOfRangeError(absl::StrFormat(
          "there are no rows from %d to %d, expected some of %d", begin, end, rows()));
    }
    return state_->readers[column].Read(begin, end, values);
  });
  if (!status.ok()) values->Truncate(before);
  return status;
}

template <typename Integer>
absl::Status ColumnTable::GatherAs(size_t column, absl::Span<const RowId> row_ids,
                                   absl::Span<Integer> values) const {
  RETURN_IF_ERROR(CheckColumn(column));
  const DataType type = columns()[column].type;
  constexpr bool kSigned = std::is_signed_v<Integer>;
  if (!(kSigned ? IsSigned(type) : IsUnsigned(type))) {
    return absl::InvalidArgumentError(absl::StrFormat("column '%s' is of %s, expected %s integers",
                                                      columns()[column].name, DataTypeName(type),
                                                      kSigned ? "signed" : "unsigned"));
  }
  if (values.size() != row_ids.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected room for %d values, found %d", row_ids.size(), values.size()));
  }
  RETURN_IF_ERROR(CheckRows(row_ids));
  state_->readers[column].GatherIntegers(row_ids, values.data());
  return absl::OkStatus();
}

absl::Status ColumnTable::GatherIntegers(size_t column, absl::Span<const RowId> row_ids,
                                         absl::Span<uint64_t> values) const {
  return Guarded(kReading, [&] { return GatherAs(column, row_ids, values); });
}

absl::Status ColumnTable::GatherIntegers(size_t column, absl::Span<const RowId> row_ids,
                                         absl::Span<int64_t> values) const {
  return Guarded(kReading, [&] { return GatherAs(column, row_ids, values); });
}

uint64_t ColumnTable::column_bytes(size_t column) const {
  const ColumnReader& reader = state_->readers[column];
  uint64_t bytes = reader.directory.size() * sizeof(ColumnBlock) +
                   reader.dictionary_ends.size() * sizeof(uint32_t) + reader.dictionary_heap.size();
  for (uint64_t i = 0; i < reader.directory.size(); ++i) bytes += reader.BytesOf(i);
  return bytes;
}

}  // namespace cairn
