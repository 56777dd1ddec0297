#pragma once

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "index/columns/column_file.h"
#include "test/index/columns/values.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {

// Columns of some rows, and the expected values.
struct Columns {
  std::vector<ColumnSchema> schemas;
  std::vector<std::vector<OwnedValue>> values;  // by column

  size_t rows() const { return values.empty() ? 0 : values[0].size(); }
  void Add(std::string name, DataType type, std::vector<OwnedValue> column) {
    schemas.push_back({std::move(name), type});
    values.push_back(std::move(column));
  }
  // Rows [first, first + count) of each column.
  std::vector<ColumnValues> Piece(size_t first, size_t count) const {
    std::vector<ColumnValues> piece;
    for (size_t i = 0; i < schemas.size(); ++i) {
      piece.push_back(ToColumn(schemas[i].type,
                               {values[i].begin() + static_cast<std::ptrdiff_t>(first),
                                values[i].begin() + static_cast<std::ptrdiff_t>(first + count)}));
    }
    return piece;
  }
};

// A column of each type.
inline Columns RandomColumns(size_t rows, int null_percent, std::mt19937_64& random) {
  Columns columns;
  for (DataType type : kAllTypes) {
    columns.Add(std::string(DataTypeName(type)), type,
                RandomValues(type, rows, null_percent, random));
  }
  return columns;
}

// Writes all rows in pieces of random sizes, the largest of `most` rows.
inline void WriteColumns(const std::string& path, const Columns& columns, size_t most,
                         std::mt19937_64& random) {
  auto writer = RequireOk(ColumnFileWriter::Create(path, columns.schemas));
  for (size_t at = 0; at < columns.rows();) {
    const size_t count = std::min(columns.rows() - at, static_cast<size_t>(random() % (most + 1)));
    RequireOk(writer->Append(columns.Piece(at, count)));
    at += count;
  }
  RequireOk(writer->Finish());
}

// Whether a table has exactly these columns, read row by row and in stretches.
inline void CheckTable(const ColumnTable& table, const Columns& expected, std::mt19937_64& random) {
  BOOST_REQUIRE(table.rows() == expected.rows());
  BOOST_REQUIRE(table.columns() == absl::MakeConstSpan(expected.schemas));
  for (size_t i = 0; i < expected.schemas.size(); ++i) {
    const std::vector<OwnedValue>& values = expected.values[i];
    const size_t column = table.Find(expected.schemas[i].name).value();
    BOOST_REQUIRE(column == i);
    ColumnValues read(expected.schemas[i].type);
    RequireOk(table.Read(column, 0, table.rows(), &read));
    CheckValues(read, values);
    BOOST_REQUIRE(table.null_count(column) == read.null_count());
    // Rows in any order, and stretches, appended to existing values.
    ColumnValues some(expected.schemas[i].type);
    std::vector<OwnedValue> oracle;
    for (int round = 0; round < 4 && !values.empty(); ++round) {
      std::vector<RowId> rows;
      for (size_t count = random() % 200; count > 0; --count) {
        rows.push_back(static_cast<RowId>(random() % values.size()));
        oracle.push_back(values[rows.back()]);
      }
      RequireOk(table.Gather(column, rows, &some));
      const size_t begin = random() % values.size();
      const size_t end = begin + random() % (values.size() - begin + 1);
      RequireOk(table.Read(column, begin, end, &some));
      oracle.insert(oracle.end(), values.begin() + static_cast<std::ptrdiff_t>(begin),
                    values.begin() + static_cast<std::ptrdiff_t>(end));
    }
    CheckValues(some, oracle);
  }
}

}  // namespace cairn
