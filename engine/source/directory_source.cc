// SnapshotSource::FromDirectory: opens a checkpoint or database directory read-only, with its
// stored options.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/source/db_source.h"
#include "engine/source/manifest_families.h"
#include "engine/source/read_only_database.h"
#include "engine/source/stored_options.h"
#include "engine/util/key_order.h"
#include "engine/util/status.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "rocksdb/env.h"
#include "rocksdb/table_properties.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

absl::Status CheckIsDatabase(const std::string& directory) {
  std::error_code error;
  if (!fs::exists(directory, error)) {
    return absl::NotFoundError(absl::StrFormat("there is no directory '%s'", directory));
  }
  if (!fs::is_directory(directory, error)) {
    return absl::InvalidArgumentError(absl::StrFormat("'%s' is not a directory", directory));
  }
  if (!Exists(fs::path(directory) / "CURRENT")) {
    return absl::InvalidArgumentError(
        absl::StrFormat("'%s' is not a RocksDB database: it has no file CURRENT", directory));
  }
  return absl::OkStatus();
}

absl::Status CheckHasColumnFamily(const std::string& directory, const std::string& column_family,
                                  const rocksdb::DBOptions& options) {
  std::vector<std::string> names;
  const rocksdb::Status status = rocksdb::DB::ListColumnFamilies(options, directory, &names);
  if (!status.ok()) {
    return FromRocksDb(status,
                       absl::StrFormat("cannot list the column families of '%s'", directory));
  }
  if (std::find(names.begin(), names.end(), column_family) != names.end()) return absl::OkStatus();
  std::string known;
  for (const std::string& name : names) {
    known += absl::StrFormat("%s'%s'", known.empty() ? "" : ", ", name);
  }
  return absl::NotFoundError(absl::StrFormat("'%s' has no column family '%s'; it has %s", directory,
                                             column_family, known));
}

// Returns the directory that contains the write-ahead log. `stored` is `wal_dir` of the OPTIONS
// file. It is `directory` instead if `stored` is empty, missing or the same, or if it may be that
// of the database from which `directory` was copied:
// - `directory` has no LOCK file, so it was never opened for writing. Checkpoints and restored
//   backups contain their own log.
// - `stored` contains a database. RocksDB up to 6.x stored the database's own directory.
std::string WalDirectory(const std::string& directory, const std::string& stored) {
  std::error_code error;
  if (stored.empty() || fs::equivalent(stored, directory, error) || !Exists(stored) ||
      Exists(fs::path(stored) / "CURRENT") || !Exists(fs::path(directory) / "LOCK")) {
    return directory;
  }
  return stored;
}

// The options for opening a directory.
struct OpenOptions {
  rocksdb::DBOptions db;
  rocksdb::ColumnFamilyOptions family;
  rocksdb::ColumnFamilyOptions default_family;
  std::string missing_merge_operator;  // stored by name, but unknown to this process
};

absl::StatusOr<OpenOptions> ChooseStoredOptions(const std::string& directory,
                                                const std::string& column_family) {
  ASSIGN_OR_RETURN(StoredOptions stored, LoadStoredOptions(directory, rocksdb::Env::Default()));
  OpenOptions chosen;
  chosen.db = stored.db;
  chosen.db.wal_dir = WalDirectory(directory, stored.db.wal_dir);
  // Settings of the machine where the database was need not fit this one.
  chosen.db.use_direct_reads = false;
  const auto default_family = stored.column_families.find(rocksdb::kDefaultColumnFamilyName);
  if (default_family != stored.column_families.end()) {
    chosen.default_family = default_family->second.options;
  }
  const auto wanted = stored.column_families.find(column_family);
  if (wanted != stored.column_families.end()) {
    const StoredColumnFamily& family = wanted->second;
    chosen.family = family.options;
    if (family.options.merge_operator == nullptr) {
      chosen.missing_merge_operator = family.merge_operator;
    }
  }
  return chosen;
}

// Replaces the comparators of the options by those that the MANIFEST names. RocksDB opens no column
// family under another name, and it always opens the default one, too.
absl::Status ChooseComparators(const std::string& directory, const std::string& column_family,
                               OpenOptions* chosen) {
  ManifestFamilies manifest(chosen->db.env->GetFileSystem().get(), directory);
  const auto names = manifest.Read();
  if (!names.ok()) return absl::OkStatus();  // RocksDB reports that
  for (const auto& [id, comparator] : manifest.comparators()) {
    const auto name = names->find(id);
    if (name == names->end()) continue;
    const bool is_default = id == 0, is_wanted = name->second == column_family;
    for (rocksdb::ColumnFamilyOptions* options :
         {is_default ? &chosen->default_family : nullptr, is_wanted ? &chosen->family : nullptr}) {
      if (options == nullptr || options->comparator->Name() == comparator) continue;
      const std::optional<KeyOrder> order = KeyOrderOfName(comparator);
      if (!order.has_value()) {
        return UnknownComparator(
            absl::StrFormat("column family '%s' of '%s'", name->second, directory), comparator);
      }
      options->comparator = ComparatorOfName(comparator, *order);
    }
  }
  return absl::OkStatus();
}

// An unknown merge operator does no harm if there is nothing to merge.
absl::Status CheckMergeOperator(const ReadOnlyDatabase& database, const OpenOptions& options,
                                std::string_view where, std::string* needed) {
  if (database.db()->GetOptions(database.column_family()).merge_operator != nullptr) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(*needed, NeededMergeOperator(database));
  if (options.missing_merge_operator.empty()) return absl::OkStatus();
  uint64_t in_log = 0;
  database.db()->GetIntProperty(database.column_family(),
                                rocksdb::DB::Properties::kNumEntriesActiveMemTable, &in_log);
  if (needed->empty() && in_log == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s needs merge operator '%s', which is unknown here; pass options with it",
                      where, options.missing_merge_operator));
}

// Returns the identity of the database. A checkpoint has no IDENTITY file, and RocksDB would invent
// an identity at every opening. Then the SST files name the database that wrote them. If they name
// several databases or none, the identity is unknown and the result is empty.
absl::StatusOr<std::string> DatabaseId(const ReadOnlyDatabase& database,
                                       const std::string& directory, bool in_manifest) {
  std::string id;
  if (in_manifest || Exists(fs::path(directory) / "IDENTITY")) {
    const rocksdb::Status status = database.db()->GetDbIdentity(id);
    if (!status.ok())
      return FromRocksDb(status, absl::StrFormat("cannot identify '%s'", directory));
    return id;
  }
  rocksdb::TablePropertiesCollection properties;
  const rocksdb::Status status =
      database.db()->GetPropertiesOfAllTables(database.column_family(), &properties);
  if (!status.ok()) {
    return FromRocksDb(
        status, absl::StrFormat("cannot read the properties of the files of '%s'", directory));
  }
  for (const auto& [file, table] : properties) {
    if (table->db_id.empty() || table->db_id == "SST Writer") continue;
    if (!id.empty() && id != table->db_id) return std::string();
    id = table->db_id;
  }
  return id;
}

absl::StatusOr<std::unique_ptr<ReadOnlyDatabase>> OpenDirectory(const std::string& directory,
                                                                const std::string& column_family,
                                                                const OpenOptions& options) {
  absl::StatusOr<std::unique_ptr<ReadOnlyDatabase>> database = ReadOnlyDatabase::Open(
      directory, options.db, column_family, options.family, options.default_family);
  if (!database.ok() && absl::IsInvalidArgument(database.status()) &&
      database.status().message().find("comparator") != absl::string_view::npos) {
    return absl::UnimplementedError(database.status().message());
  }
  return database;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SnapshotSource>> SnapshotSource::FromDirectory(
    const std::string& directory, const std::string& column_family,
    const rocksdb::Options* options) try {
  const bool plain_files = options == nullptr || options->env == rocksdb::Env::Default();
  if (plain_files) {
    RETURN_IF_ERROR(CheckIsDatabase(directory));
  }
  OpenOptions chosen;
  if (options != nullptr) {
    chosen.db = *options;
    chosen.family = chosen.default_family = *options;
  }
  RETURN_IF_ERROR(CheckHasColumnFamily(directory, column_family, chosen.db));
  if (options == nullptr) {
    ASSIGN_OR_RETURN(chosen, ChooseStoredOptions(directory, column_family));
  }
  const std::string where = absl::StrFormat("'%s'", directory);
  RETURN_IF_ERROR(ChooseComparators(directory, column_family, &chosen));

  DbView view;
  ASSIGN_OR_RETURN(view.order, KeyOrderOf(chosen.family.comparator, column_family, where));
  view.description =
      absl::StrFormat("directory '%s', column family '%s'", directory, column_family);
  ASSIGN_OR_RETURN(std::unique_ptr<ReadOnlyDatabase> database,
                   OpenDirectory(directory, column_family, chosen));
  std::string needed_merge_operator;
  RETURN_IF_ERROR(CheckMergeOperator(*database, chosen, view.description, &needed_merge_operator));
  if (!needed_merge_operator.empty()) {
    ASSIGN_OR_RETURN(chosen.family.merge_operator,
                     MakeMergeOperator(needed_merge_operator, view.description));
    database.reset();
    ASSIGN_OR_RETURN(database, OpenDirectory(directory, column_family, chosen));
  }
  ASSIGN_OR_RETURN(std::string id,
                   DatabaseId(*database, directory, chosen.db.write_dbid_to_manifest));

  std::shared_ptr<ReadOnlyDatabase> owned = std::move(database);
  view.db = owned->db();
  view.column_family = owned->column_family();
  view.sequence = view.db->GetLatestSequenceNumber();
  view.database_id = std::move(id);
  return std::make_unique<DbSource>(std::move(view), std::move(owned));
} catch (...) {
  return StatusOfException("opening a database directory");
}

}  // namespace cairn
