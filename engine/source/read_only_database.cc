#include "engine/source/read_only_database.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "engine/util/rocksdb_compat.h"
#include "engine/util/status.h"
#include "index/machine/status_macros.h"
#include "rocksdb/convenience.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/memtablerep.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/table_properties.h"

namespace cairn {
namespace {

// Resets options that matter only to writers and may need a plug-in or setting that does not exist
// here.
rocksdb::ColumnFamilyOptions ForReading(rocksdb::ColumnFamilyOptions options) {
  options.memtable_factory = std::make_shared<rocksdb::SkipListFactory>();
  options.inplace_update_support = false;
  options.max_successive_merges = 0;
  options.compaction_filter = nullptr;
  options.compaction_filter_factory = nullptr;
  options.sst_partitioner_factory = nullptr;
  return options;
}

rocksdb::DBOptions ForReading(rocksdb::DBOptions options) {
  options.create_if_missing = false;
  options.create_missing_column_families = false;
  options.best_efforts_recovery = false;  // it skips files that are missing
  options.paranoid_checks = true;
  options.sst_file_manager = nullptr;
  options.manual_wal_flush = false;  // there is nothing to be written out
  ResetForReading(&options);
  return options;
}

// Maximum number of openings of a database while another process writes to it and flushes.
constexpr int kMaxOpenings = 20;

// Returns the name and size of a database's MANIFEST; every flush changes them.
absl::StatusOr<std::pair<std::string, uint64_t>> ManifestState(rocksdb::Env* env,
                                                               const std::string& directory) {
  std::string name;
  rocksdb::Status s = rocksdb::ReadFileToString(env, directory + "/CURRENT", &name);
  uint64_t size = 0;
  if (!name.empty() && name.back() == '\n') name.pop_back();
  if (s.ok()) s = env->GetFileSize(directory + "/" + name, &size);
  if (!s.ok()) return FromRocksDb(s, absl::StrFormat("cannot open '%s' for reading", directory));
  return std::pair(std::move(name), size);
}

}  // namespace

absl::StatusOr<std::shared_ptr<rocksdb::Env>> NewReadOnlyEnv() {
  std::shared_ptr<rocksdb::FileSystem> file_system;
  const rocksdb::Status status = rocksdb::FileSystem::CreateFromString(
      rocksdb::ConfigOptions(), "ReadOnlyFileSystem", &file_system);
  if (!status.ok()) return FromRocksDb(status, "cannot make a read-only file system");
  return std::shared_ptr<rocksdb::Env>(rocksdb::NewCompositeEnv(file_system));
}

absl::StatusOr<std::unique_ptr<ReadOnlyDatabase>> ReadOnlyDatabase::Open(
    const std::string& directory, const rocksdb::DBOptions& options,
    const std::string& column_family, const rocksdb::ColumnFamilyOptions& family_options,
    const rocksdb::ColumnFamilyOptions& default_options) {
  std::unique_ptr<ReadOnlyDatabase> opened(new ReadOnlyDatabase);
  rocksdb::DBOptions db_options = ForReading(options);
  if (db_options.env == nullptr || db_options.env == rocksdb::Env::Default()) {
    ASSIGN_OR_RETURN(opened->env_, NewReadOnlyEnv());
    db_options.env = opened->env_.get();
  }
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  if (column_family != rocksdb::kDefaultColumnFamilyName) {
    descriptors.emplace_back(rocksdb::kDefaultColumnFamilyName, ForReading(default_options));
  }
  descriptors.emplace_back(column_family, ForReading(family_options));
  for (int openings = 0; openings < kMaxOpenings; ++openings) {
    ASSIGN_OR_RETURN(const auto before, ManifestState(db_options.env, directory));
    const rocksdb::Status status = rocksdb::DB::OpenForReadOnly(
        db_options, directory, descriptors, &opened->handles_, Into(&opened->db_));
    // If a flush happens after RocksDB has read the MANIFEST and before it reads the log, RocksDB
    // sees the flushed rows in neither.
    ASSIGN_OR_RETURN(const auto after, ManifestState(db_options.env, directory));
    if (before == after) {
      if (status.ok()) return opened;
      return FromRocksDb(status, absl::StrFormat("cannot open '%s' for reading", directory));
    }
    opened->Close();
  }
  return absl::UnavailableError(
      absl::StrFormat("'%s' was flushed during each of %d attempts to open it for reading",
                      directory, kMaxOpenings));
}

ReadOnlyDatabase::~ReadOnlyDatabase() {
  Close();
}

void ReadOnlyDatabase::Close() {
  if (db_ == nullptr) return;
  for (rocksdb::ColumnFamilyHandle* handle : handles_) {
    db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  handles_.clear();
  db_->Close().PermitUncheckedError();
  db_.reset();
}

absl::StatusOr<std::string> NeededMergeOperator(const ReadOnlyDatabase& database) {
  rocksdb::TablePropertiesCollection properties;
  const rocksdb::Status status =
      database.db()->GetPropertiesOfAllTables(database.column_family(), &properties);
  if (!status.ok()) {
    return FromRocksDb(status, absl::StrFormat("cannot read the properties of the files of '%s'",
                                               database.db()->GetName()));
  }
  for (const auto& [file, table] : properties) {
    if (table->num_merge_operands == 0) continue;
    const std::string& name = table->merge_operator_name;
    if (name.empty() || name == "nullptr") {
      return absl::FailedPreconditionError(absl::StrFormat(
          "'%s' has merge operands, but does not name their merge operator; pass options with it",
          file));
    }
    return name;
  }
  return std::string();
}

absl::StatusOr<std::shared_ptr<rocksdb::MergeOperator>> MakeMergeOperator(const std::string& name,
                                                                          std::string_view where) {
  std::shared_ptr<rocksdb::MergeOperator> made;
  rocksdb::ConfigOptions config;
  config.ignore_unsupported_options = false;
  const rocksdb::Status status = rocksdb::MergeOperator::CreateFromString(config, name, &made);
  if (!status.ok() || made == nullptr) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s needs merge operator '%s', which is unknown here; pass options with it", where, name));
  }
  std::string settings;
  if (!made->GetOptionString(config, &settings).ok() || !settings.empty()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s needs merge operator '%s', whose settings ('%s' by default) are not in "
                        "its files; pass options with it",
                        where, name, settings));
  }
  return made;
}

}  // namespace cairn
