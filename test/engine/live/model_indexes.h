#pragma once

#include <cstdlib>
#include <map>
#include <string>

#include "cairn/indexed_db.h"
#include "test/engine/indexed_database.h"
#include "test/require_ok.h"

namespace cairn {

inline absl::Duration TestTime() {
  const char* seconds = std::getenv("CAIRN_TEST_SECONDS");
  return seconds != nullptr ? absl::Seconds(std::atof(seconds)) : absl::Seconds(3);
}

// One index of the model: the column family of its rows, and the key of a row.
struct ModelIndex {
  const char* spec;
  size_t family;
  std::string (*key)(const std::string& primary_key, const std::string& value);
};

inline std::string FirstField(const std::string&, const std::string& value) {
  return value.substr(0, value.find(','));
}
inline std::string KeyPrefix(const std::string& primary_key, const std::string&) {
  return primary_key.substr(0, 2);
}

inline const std::map<std::string, ModelIndex> kModelIndexes = {
    {"field", {"field = value.field(',', 0):text", 0, FirstField}},
    {"prefix", {"prefix = key[0:2]:bytes", 0, KeyPrefix}},
    {"of_a", {"of_a = value.field(',', 0):text, cf=a", 1, FirstField}},
};

}  // namespace cairn
