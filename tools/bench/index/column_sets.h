#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "cairn/column.h"
#include "index/columns/column_table.h"

namespace cairn::bench {

// Columns of benchmarks, by name:
//
//   flag       u8     one of 3 values;
//   time       i64    microseconds, ascending, about 1,000 per second;
//   id         u64    any;
//   nullable   u32    below 1,000,000, 10% null;
//   price      f64    up to 1,000.00, two digits;
//   measure    f64    any in [0, 1);
//   country    text   one of 200, 7 to 11 bytes;
//   name       text   near-unique, 13 to 20 bytes
inline constexpr const char* kColumnSets[] = {"flag",  "time",    "id",      "nullable",
                                              "price", "measure", "country", "name"};

// `rows` values.
ColumnValues MakeColumn(const std::string& name, size_t rows);

// Bytes of the values as a program has them: numbers of their width, text as offsets and a heap.
uint64_t PlainBytes(const ColumnValues& values);

// A column file of one column of 2^log2_rows rows, in the page cache. The last one is
// kept.
const ColumnTable& TableOf(const std::string& name, int log2_rows);

}  // namespace cairn::bench
