#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cairn/column.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "index/files/index_directory.h"
#include "test/engine/faults/crash_model.h"
#include "test/engine/indexed_database.h"

namespace cairn {

// An index of TwoFamilies.
struct IndexOfModel {
  const char* spec;
  size_t family;
  // The formatted key of a row; empty if it has none.
  std::string (*key)(const std::string& primary_key, const std::string& value);
};

inline std::string NumberOf(const std::string&, const std::string& value) {
  return value.substr(0, value.find(','));
}
inline std::string WordOf(const std::string&, const std::string& value) {
  return value.find(',') == value.npos ? "" : value.substr(value.find(',') + 1);
}
inline std::string PrefixOf(const std::string& primary_key, const std::string&) {
  return primary_key.substr(0, 3);
}
// An index that a test may repeatedly drop and create.
inline constexpr char kTransient[] = "prefix";
inline const std::map<std::string, IndexOfModel> kCrashIndexes = {
    {"number", {"number = value.field(',',0):u64", 0, NumberOf}},
    {"word", {"word = value.field(',',1):text", 0, WordOf}},
    {"code", {"code = value.field(',',1):text, unique=true, cf=a", 1, WordOf}},
    {kTransient, {"prefix = key[0:3]:text", 0, PrefixOf}},
};

// "key=primary key" of all entries.
inline std::vector<std::string> SortedEntries(const SecondaryIndex& index) {
  FindResult matches;
  QueryOptions options;
  options.with_keys = true;
  RequireOk(index.Scan(RangeBatch::Everything(index.codec().kind()), &matches, options));
  StringList primary_keys;
  RequireOk(index.PrimaryKeys(matches, &primary_keys));
  std::vector<std::string> entries;
  for (size_t i = 0; i < primary_keys.size(); ++i) {
    entries.push_back(
        absl::StrCat(*index.codec().Format(matches.keys, i), "=", std::string(primary_keys[i])));
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// The expected entries in the same form.
inline std::vector<std::string> SortedEntries(const IndexOfModel& index, const TwoFamilies& model) {
  std::vector<std::string> entries;
  for (const auto& [key, value] : model.rows[index.family]) {
    const std::string secondary = index.key(key, value);
    if (!secondary.empty()) entries.push_back(absl::StrCat(secondary, "=", key));
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Files in an index's directory, except the manifest and the files that it lists.
inline std::vector<std::string> Leftovers(const std::string& directory,
                                          FileSystem* files = FileSystem::Posix()) {
  std::set<std::string> known = {"MANIFEST", "LOCK"};
  const absl::StatusOr<Manifest> manifest = ReadManifest(directory, files);
  if (manifest.ok()) {
    for (const ManifestFile& file : manifest->files) known.insert(file.name);
  }
  std::vector<std::string> leftovers;
  const absl::StatusOr<std::vector<std::string>> names = files->List(directory);
  RequireOk(names.status());
  for (const std::string& name : *names) {
    if (known.count(name) == 0) leftovers.push_back(name);
  }
  return leftovers;
}

}  // namespace cairn
