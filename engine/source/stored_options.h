#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "rocksdb/options.h"

namespace cairn {

// What a column family's section of an OPTIONS file says of the plug-ins that decide what its rows
// are. RocksDB drops those that it does not know without a word, hence the names.
struct StoredColumnFamily {
  rocksdb::ColumnFamilyOptions options;
  std::string comparator;      // its name; empty where the file does not say
  std::string merge_operator;  // its name; empty for none
};

// The options that a database directory's latest OPTIONS file holds.
struct StoredOptions {
  bool found = false;  // false where there is no OPTIONS file; the rest is then default
  std::string file;
  rocksdb::DBOptions db;
  std::map<std::string, StoredColumnFamily, std::less<>> column_families;
};

// Reads them. An OPTIONS file that cannot be read is an error that names it. Options of newer
// RocksDB versions are ignored.
absl::StatusOr<StoredOptions> LoadStoredOptions(const std::string& directory, rocksdb::Env* env);

// The name in an option's value as OPTIONS files write it: "Name", "{id=Name;delimiter=,}" or
// "nullptr", which gives the empty string.
std::string PlugInName(std::string_view value);

}  // namespace cairn
