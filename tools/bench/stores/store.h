#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "tools/bench/child_process.h"

namespace cairn::bench {

struct Row {
  uint64_t key = 0;
  std::string value;
};

// An unsigned big-endian number in the value of a row.
struct NumberField {
  const char* name;
  size_t offset;
  size_t bytes;
};

// The rows of a workload and the indexes of a store.
struct Schema {
  size_t value_bytes = 0;
  std::vector<NumberField> fields;           // adjacent, from the first byte of the value on
  std::vector<std::vector<size_t>> indexes;  // each: the fields of its key, by their positions
  // Readers call Newest, not Range.
  bool newest_first = false;
};

// Answers questions about a Store, each with all writes that returned before. For use by one
// thread, during writes of another one. Errors are exceptions.
class StoreReader {
 public:
  virtual ~StoreReader() = default;
  // Sets *value to the value of a row; returns whether the row exists.
  virtual bool Get(uint64_t key, std::string* value) = 0;
  // Sets *keys to the primary keys of the first `limit` entries of an index, in the order of its
  // fields and the primary key, whose first field is at least `from`. Reads no rows.
  virtual void Range(size_t index, uint64_t from, size_t limit, std::vector<uint64_t>* keys) = 0;
  // Sets *rows to the `limit` rows with the largest primary keys, largest first, for which the
  // only field of the first index has this value.
  virtual void Newest(uint64_t value, size_t limit, std::vector<Row>* rows) = 0;
};

// A database with secondary indexes, as a workload uses it. Each method that writes makes one
// atomic commit, which survives the end of the process. For use by one thread. Errors are
// exceptions.
class Store {
 public:
  virtual ~Store() = default;
  // Adds rows whose primary keys ascend and are larger than any before.
  virtual void Insert(absl::Span<const Row> rows) = 0;
  // Replaces existing rows.
  virtual void Update(absl::Span<const Row> rows) = 0;
  // Removes existing rows.
  virtual void Delete(absl::Span<const uint64_t> keys) = 0;
  // Makes the indexes of the schema, from all rows, and waits until they are ready. Called once.
  virtual void CreateIndexes() = 0;
  // The store must outlive the reader. CreateIndexes was called.
  virtual std::unique_ptr<StoreReader> NewReader() = 0;
  // Returns the store's own sums since it was opened; a workload reports differences.
  virtual Counters Sums() const { return {}; }
};

// Returns the names of all stores of this build: plain (RocksDB without indexes), by_hand (RocksDB
// with a column family per index), cairn, and lmdb and sqlite if their libraries were found.
std::vector<std::string> StoreNames();
// Opens an empty store in an empty directory.
std::unique_ptr<Store> OpenStore(const std::string& name, const Schema& schema,
                                 const std::string& directory);

// Big-endian numbers.
inline uint64_t ReadNumber(const char* at, size_t bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < bytes; ++i) number = number << 8 | static_cast<unsigned char>(at[i]);
  return number;
}
inline void AppendNumber(uint64_t number, size_t bytes, std::string* to) {
  for (size_t i = bytes; i-- > 0;) to->push_back(static_cast<char>(number >> (8 * i)));
}

// The bytes of a row's key in an index, which sort as the fields do.
inline std::string IndexKey(const Schema& schema, size_t index, std::string_view value) {
  std::string key;
  for (const size_t field : schema.indexes[index]) {
    key += value.substr(schema.fields[field].offset, schema.fields[field].bytes);
  }
  return key;
}

}  // namespace cairn::bench
