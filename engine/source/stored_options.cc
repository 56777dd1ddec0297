#include "engine/source/stored_options.h"

#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/util/status.h"
#include "rocksdb/convenience.h"
#include "rocksdb/env.h"
#include "rocksdb/utilities/options_util.h"

namespace cairn {
namespace {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t start = text.find_first_not_of(kBlank);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(kBlank) - start + 1);
}

// Gets the name in `[CFOptions "name"]`; returns false for every other line. RocksDB writes a
// backslash before some characters of a name.
bool ParseSection(std::string_view line, std::string* column_family) {
  constexpr std::string_view kStart = "[CFOptions \"";
  constexpr std::string_view kEnd = "\"]";
  if (line.size() < kStart.size() + kEnd.size() || line.substr(0, kStart.size()) != kStart ||
      line.substr(line.size() - kEnd.size()) != kEnd) {
    return false;
  }
  const std::string_view name =
      line.substr(kStart.size(), line.size() - kStart.size() - kEnd.size());
  column_family->clear();
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '\\' && i + 1 < name.size()) ++i;
    column_family->push_back(name[i]);
  }
  return true;
}

// Adds the names of comparators and merge operators in the file's text.
void AddPlugInNames(std::string_view text, StoredOptions* stored) {
  StoredColumnFamily* current = nullptr;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = Trim(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (!line.empty() && line.front() == '[') {
      std::string name;
      current = nullptr;
      if (ParseSection(line, &name)) {
        const auto found = stored->column_families.find(name);
        if (found != stored->column_families.end()) current = &found->second;
      }
      continue;
    }
    const size_t equals = line.find('=');
    if (current == nullptr || equals == std::string_view::npos) continue;
    const std::string_view option = Trim(line.substr(0, equals));
    if (option == "comparator") current->comparator = PlugInName(line.substr(equals + 1));
    if (option == "merge_operator") current->merge_operator = PlugInName(line.substr(equals + 1));
  }
}

}  // namespace

std::string PlugInName(std::string_view value) {
  value = Trim(value);
  if (!value.empty() && value.front() == '{') {
    constexpr std::string_view kId = "id=";
    size_t id = value.find(kId);
    // Find the id of the plug-in itself, not an option whose name ends in "id".
    while (id != std::string_view::npos && value[id - 1] != '{' && value[id - 1] != ';' &&
           value[id - 1] != ' ') {
      id = value.find(kId, id + 1);
    }
    if (id == std::string_view::npos) return std::string(value);
    value = value.substr(id + kId.size());
    value = Trim(value.substr(0, value.find_first_of(";}")));
  }
  return value == "nullptr" ? std::string() : std::string(value);
}

absl::StatusOr<StoredOptions> LoadStoredOptions(const std::string& directory, rocksdb::Env* env) {
  StoredOptions stored;
  std::string name;
  rocksdb::Status status = rocksdb::GetLatestOptionsFileName(directory, env, &name);
  if (status.IsNotFound() || status.IsPathNotFound()) return stored;
  if (!status.ok()) {
    return FromRocksDb(status, absl::StrFormat("cannot look for options in '%s'", directory));
  }
  stored.found = true;
  stored.file = directory + "/" + name;

  rocksdb::ConfigOptions config;
  config.env = env;
  config.ignore_unknown_options = true;
  config.ignore_unsupported_options = true;
  std::vector<rocksdb::ColumnFamilyDescriptor> column_families;
  status = rocksdb::LoadOptionsFromFile(config, stored.file, &stored.db, &column_families);
  if (!status.ok()) {
    return FromRocksDb(status, absl::StrFormat("cannot read the options file '%s'", stored.file));
  }
  for (rocksdb::ColumnFamilyDescriptor& column_family : column_families) {
    stored.column_families[column_family.name].options = std::move(column_family.options);
  }
  std::string text;
  status = rocksdb::ReadFileToString(env, stored.file, &text);
  if (!status.ok()) {
    return FromRocksDb(status, absl::StrFormat("cannot read the options file '%s'", stored.file));
  }
  AddPlugInNames(text, &stored);
  return stored;
}

}  // namespace cairn
