#pragma once

#include <stdlib.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cairn/snapshot_source.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/merge_operator.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {

struct Row {
  std::string key;
  std::string value;
  std::vector<std::pair<std::string, std::string>> columns;

  friend bool operator==(const Row& a, const Row& b) {
    return a.key == b.key && a.value == b.value && a.columns == b.columns;
  }
  friend std::ostream& operator<<(std::ostream& out, const Row& row) {
    out << '"' << rocksdb::Slice(row.key.substr(0, 40)).ToString(true) << "\" -> \""
        << rocksdb::Slice(row.value.substr(0, 40)).ToString(true) << '"';
    for (const auto& [name, value] : row.columns) out << ' ' << name << '=' << value;
    return out;
  }
};
using Rows = std::vector<Row>;

inline Row ToRow(const RowView& view) {
  Row row{std::string(view.primary_key), std::string(view.value), {}};
  for (const ColumnView& column : view.columns) {
    row.columns.emplace_back(std::string(column.name), std::string(column.value));
  }
  return row;
}

inline Rows ToRows(const std::map<std::string, std::string>& model) {
  Rows rows;
  for (const auto& [key, value] : model) rows.push_back({key, value, {}});
  return rows;
}

// The contents of a column family according to RocksDB: the oracle.
inline Rows DbRows(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family = nullptr) {
  if (column_family == nullptr) column_family = db->DefaultColumnFamily();
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator(options, column_family));
  Rows rows;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    Row row{iterator->key().ToString(), iterator->value().ToString(), {}};
    const rocksdb::WideColumns& columns = iterator->columns();
    if (columns.size() != 1 || !columns[0].name().empty()) {
      for (const auto& column : columns) {
        row.columns.emplace_back(column.name().ToString(), column.value().ToString());
      }
    }
    rows.push_back(std::move(row));
  }
  RequireOk(iterator->status());
  return rows;
}

inline Rows RangeRows(const SnapshotSource& source, const PrimaryKeyRange& range) {
  std::unique_ptr<RowCursor> cursor = RequireOk(source.Scan(range));
  Rows rows;
  while (cursor->Next()) rows.push_back(ToRow(cursor->row()));
  RequireOk(cursor->status());
  BOOST_TEST(!cursor->Next());
  return rows;
}

inline Rows SourceRows(const SnapshotSource& source) {
  return RangeRows(source, {});
}

inline std::vector<PrimaryKeyRange> SplitOrDie(const SnapshotSource& source, int parts) {
  std::vector<PrimaryKeyRange> ranges = RequireOk(source.Split(parts));
  BOOST_REQUIRE(!ranges.empty());
  BOOST_TEST(ranges.size() <= static_cast<size_t>(parts));
  BOOST_TEST(ranges.front().lower.empty());
  BOOST_TEST(ranges.back().open);
  for (size_t i = 1; i < ranges.size(); ++i) {
    BOOST_TEST(!ranges[i - 1].open);
    BOOST_TEST((ranges[i - 1].upper == ranges[i].lower));
    BOOST_TEST((ranges[i - 1].lower < ranges[i - 1].upper));
  }
  return ranges;
}

// The rows of all ranges of a split, each scanned on a separate thread.
inline Rows ParallelRows(const SnapshotSource& source, int parts) {
  const std::vector<PrimaryKeyRange> ranges = SplitOrDie(source, parts);
  std::vector<Rows> found(ranges.size());
  std::vector<absl::Status> errors(ranges.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranges.size(); ++i) {
    threads.emplace_back([&, i] {
      absl::StatusOr<std::unique_ptr<RowCursor>> cursor = source.Scan(ranges[i]);
      if (!cursor.ok()) {
        errors[i] = cursor.status();
        return;
      }
      while ((*cursor)->Next()) found[i].push_back(ToRow((*cursor)->row()));
      errors[i] = (*cursor)->status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  Rows rows;
  for (size_t i = 0; i < ranges.size(); ++i) {
    BOOST_TEST_REQUIRE(errors[i].ok(), errors[i].ToString());
    rows.insert(rows.end(), found[i].begin(), found[i].end());
  }
  return rows;
}

inline void CheckSameRows(const Rows& found, const Rows& expected) {
  BOOST_TEST(found.size() == expected.size());
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    if (found[i] == expected[i]) continue;
    BOOST_ERROR("row " << i << " is " << found[i] << ", expected " << expected[i]);
    return;
  }
}

// Reads some rows that exist and some that do not.
inline void CheckGet(const SnapshotSource& source, const Rows& expected, std::mt19937_64* random) {
  std::map<std::string, Row> by_key;
  for (const Row& row : expected) by_key[row.key] = row;
  std::vector<std::string> keys{"", "absent", std::string(3, '\xFF')};
  for (int i = 0; i < 700 && !expected.empty(); ++i) {
    std::string key = expected[(*random)() % expected.size()].key;
    if (i % 4 == 0) key += '\0';
    if (i % 9 == 0 && !key.empty()) key.pop_back();
    keys.push_back(key);
    if (i % 50 == 0) keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  std::vector<std::optional<Row>> found(keys.size());
  size_t last = 0;
  const absl::Status status = source.Get(views, [&](size_t index, const RowView& row) {
    BOOST_TEST_REQUIRE(index < found.size());
    BOOST_TEST(index >= last);
    BOOST_TEST(!found[index].has_value());
    last = index;
    found[index] = ToRow(row);
    return absl::OkStatus();
  });
  BOOST_TEST_REQUIRE(status.ok(), status.ToString());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto row = by_key.find(keys[i]);
    BOOST_TEST_REQUIRE(found[i].has_value() == (row != by_key.end()));
    if (found[i].has_value() && !(*found[i] == row->second)) {
      BOOST_ERROR("got " << *found[i] << ", expected " << row->second);
      return;
    }
  }
}

// Checks everything that a source guarantees, with the rows that it must contain.
inline void CheckSource(const SnapshotSource& source, const Rows& expected,
                        std::mt19937_64* random) {
  CheckSameRows(SourceRows(source), expected);
  CheckSameRows(ParallelRows(source, 4), expected);
  CheckSameRows(ParallelRows(source, 1 + static_cast<int>((*random)() % 16)), expected);
  CheckGet(source, expected, random);
}

inline std::unique_ptr<SnapshotSource> OrDie(
    absl::StatusOr<std::unique_ptr<SnapshotSource>> source) {
  RequireOk(source);
  return *std::move(source);
}

inline void CheckOk(const rocksdb::Status& status) {
  RequireOk(status);
}

// Checks that a status' message contains all of the texts.
inline void CheckMessage(const absl::Status& status, std::initializer_list<std::string> texts) {
  for (const std::string& text : texts) {
    BOOST_TEST((std::string(status.message()).find(text) != std::string::npos),
               "'" << text << "' is not in: " << status.ToString());
  }
}

inline std::unique_ptr<rocksdb::DB> OpenDb(const std::string& path,
                                           rocksdb::Options options = rocksdb::Options()) {
  options.create_if_missing = true;
  std::unique_ptr<rocksdb::DB> db;
  CheckOk(rocksdb::DB::Open(options, path, Into(&db)));
  return db;
}

inline std::shared_ptr<rocksdb::MergeOperator> MakeOperator(const std::string& name) {
  std::shared_ptr<rocksdb::MergeOperator> made;
  CheckOk(rocksdb::MergeOperator::CreateFromString(rocksdb::ConfigOptions(), name, &made));
  return made;
}

// Every file below a directory, with its time and contents: unchanged if nothing was written.
inline std::map<std::string, std::string> DirectoryState(const std::string& directory) {
  std::map<std::string, std::string> state;
  namespace fs = std::filesystem;
  state["."] = std::to_string(fs::last_write_time(directory).time_since_epoch().count());
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    std::string& file = state[entry.path().string()];
    // An open database writes to LOG; opening it again renames the file.
    if (entry.path().filename() == "LOG") continue;
    file = std::to_string(entry.last_write_time().time_since_epoch().count());
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::stringstream contents;
    contents << in.rdbuf();
    file.append(":").append(contents.str());
  }
  return state;
}

// Keys for edge cases: empty, with 0x00 and 0xFF bytes, prefixes of each other, long.
inline std::string AdversarialKey(std::mt19937_64* random) {
  static const char kBytes[] = {'\0', '\1', 'a', '\x7F', '\x80', '\xFE', '\xFF'};
  std::string key;
  const size_t length = (*random)() % 50 == 0 ? 3000 : (*random)() % 7;
  for (size_t i = 0; i < length; ++i) key.push_back(kBytes[(*random)() % sizeof kBytes]);
  return key;
}

inline std::string RandomKey(std::mt19937_64* random, uint64_t space) {
  const std::string digits = std::to_string((*random)() % space);
  std::string key("key");
  key.append(8 - std::min<size_t>(8, digits.size()), '0');
  return key.append(digits);
}

inline std::string RandomValue(std::mt19937_64* random) {
  return std::string((*random)() % 120, static_cast<char>('a' + (*random)() % 26));
}

}  // namespace cairn
