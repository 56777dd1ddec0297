#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "rocksdb/options.h"

namespace cairn {

// The options of a column family in an OPTIONS file, with the names of the plug-ins that determine
// its rows. RocksDB silently drops plug-ins that it does not know, hence the names.
struct StoredColumnFamily {
  rocksdb::ColumnFamilyOptions options;
  std::string comparator;      // its name; empty if the file has none
  std::string merge_operator;  // its name; empty if there is none
};

// The options in a database directory's latest OPTIONS file.
struct StoredOptions {
  bool found = false;  // false if there is no OPTIONS file; then the rest has default values
  std::string file;
  rocksdb::DBOptions db;
  std::map<std::string, StoredColumnFamily, std::less<>> column_families;
};

// Reads the stored options. Errors: an OPTIONS file that cannot be read; the error names it.
// Options of newer RocksDB versions are ignored.
absl::StatusOr<StoredOptions> LoadStoredOptions(const std::string& directory, rocksdb::Env* env);

// Returns the name in an option's value in an OPTIONS file: "Name" or "{id=Name;delimiter=,}".
// Returns the empty string for "nullptr".
std::string PlugInName(std::string_view value);

}  // namespace cairn
