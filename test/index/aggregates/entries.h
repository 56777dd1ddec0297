#pragma once

#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "index/columns/column_file.h"
#include "test/index/columns/column_files.h"
#include "test/index/columns/values.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {

// A table of one column, and entries over it in no order: rows may have several, or none.
struct Entries {
  TemporaryDirectory directory;
  ColumnTable table;
  std::vector<RowId> row_ids;
  std::vector<OwnedValue> values;  // by entry

  Entries(DataType type, std::vector<OwnedValue> rows, size_t entries, std::mt19937_64& random) {
    Columns columns;
    columns.Add("column", type, rows);
    WriteColumns(directory / "columns", columns, 5000, random);
    table = RequireOk(OpenColumnFile(directory / "columns", VerifyLevel::kFull)).table;
    for (size_t i = 0; i < entries && !rows.empty(); ++i) {
      row_ids.push_back(static_cast<RowId>(random() % rows.size()));
      values.push_back(rows[row_ids.back()]);
    }
  }
};

// The column's values in the order of the entries.
inline ColumnValues ValuesOf(const Entries& entries) {
  ColumnValues values(entries.table.columns()[0].type);
  RequireOk(entries.table.Gather(0, entries.row_ids, &values));
  return values;
}

// Ranges of positions, as batches take them.
struct Ranges {
  std::vector<Position> begin, end;

  size_t size() const { return begin.size(); }
  void Add(size_t first, size_t last) {
    begin.push_back(static_cast<Position>(first));
    end.push_back(static_cast<Position>(last));
  }
};

// Ranges of `entries` positions: everything, nothing, crossed ones, ones at and next to the bounds
// of blocks, and random ones.
inline Ranges SomeRanges(size_t entries, std::mt19937_64& random) {
  Ranges ranges;
  ranges.Add(0, entries);
  ranges.Add(0, 0);
  ranges.Add(entries, entries);
  ranges.Add(entries, 0);
  if (entries == 0) return ranges;
  for (size_t i = 0; i < 30; ++i) ranges.Add(random() % entries, random() % (entries + 1));
  for (const size_t around : {16, 32, 64, 128, 256, 1024, 2048}) {
    const size_t begin = random() % entries / around * around;
    for (const size_t length : {size_t{1}, around - 1, around, around + 1, 3 * around}) {
      for (const size_t from : {begin == 0 ? 0 : begin - 1, begin, begin + 1}) {
        if (from + length <= entries) ranges.Add(from, from + length);
      }
    }
  }
  return ranges;
}

}  // namespace cairn
