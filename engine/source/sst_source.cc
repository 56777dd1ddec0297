// SnapshotSource::FromSstFiles: loose SST files, read by RocksDB itself. A scratch directory gets a
// symbolic link to each file, and a MANIFEST that arranges the files in levels. RocksDB opens it
// read-only; no file is copied, ingested or written to.
#include <stdlib.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "engine/source/db_source.h"
#include "engine/source/read_only_database.h"
#include "engine/source/rocksdb_manifest.h"
#include "engine/source/sst_file.h"
#include "engine/source/sst_levels.h"
#include "engine/util/key_order.h"
#include "engine/util/rocksdb_compat.h"
#include "engine/util/status.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "rocksdb/env.h"

namespace cairn {
namespace {

// A new directory that the destructor removes with all its contents. It removes symbolic links, but
// not their targets. RocksDB finds a database's files in it; it contains no files of an index. So
// it is in the local file system, as the database's files are.
class ScratchDirectory {
 public:
  // Makes the directory in `parent`, with a name that starts with ".cairn-".
  static absl::StatusOr<std::unique_ptr<ScratchDirectory>> Make(const std::string& parent);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

absl::StatusOr<std::unique_ptr<ScratchDirectory>> ScratchDirectory::Make(
    const std::string& parent) {
  std::string path = (std::filesystem::path(parent) / ".cairn-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) {
    const int error = errno;
    const std::string message = absl::StrFormat("cannot make a scratch directory in '%s': %s",
                                                parent, std::strerror(error));
    if (error == ENOENT) return absl::NotFoundError(message);
    if (error == EACCES || error == EPERM || error == EROFS) {
      return absl::PermissionDeniedError(message);
    }
    if (error == ENOSPC) return absl::ResourceExhaustedError(message);
    return absl::InternalError(message);
  }
  return std::unique_ptr<ScratchDirectory>(new ScratchDirectory(std::move(path)));
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code error;  // leftovers are harmless
  std::filesystem::remove_all(path_, error);
}

namespace fs = std::filesystem;

// The maximum readahead of all levels together. Each level reads ahead separately.
constexpr size_t kReadaheadBytes = size_t{256} << 20;
constexpr size_t kMaxLevelReadaheadBytes = size_t{2} << 20;
constexpr size_t kMinLevelReadaheadBytes = size_t{64} << 10;
// If there are more files than this, not all are kept open.
constexpr size_t kMaxOpenFiles = 1000;
// The type of an entry whose value is in a blob file.
constexpr int kBlobIndexType = 17;

rocksdb::Options ReadingOptions(const rocksdb::Options* given, size_t files) {
  rocksdb::Options options;
  if (given != nullptr) options = *given;
  options.env = rocksdb::Env::Default();
  options.compaction_style = rocksdb::kCompactionStyleLevel;
  options.level_compaction_dynamic_level_bytes = false;
  options.wal_dir.clear();
  options.db_paths.clear();
  options.cf_paths.clear();
  if (files > kMaxOpenFiles) options.max_open_files = kMaxOpenFiles;
  return options;
}

absl::StatusOr<std::vector<SstFile>> Inspect(absl::Span<const std::string> paths,
                                             const rocksdb::Options& options) {
  std::vector<SstFile> files;
  std::map<std::string, std::string> seen;  // by path, and by unique id
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(SstFile file, InspectSstFile(path, options));
    if (!seen.emplace(file.path, path).second) {
      return absl::InvalidArgumentError(absl::StrFormat("'%s' is given twice", path));
    }
    if (!file.unique_id.empty()) {
      const auto [earlier, is_new] = seen.emplace("id " + file.unique_id, path);
      if (!is_new) {
        return absl::InvalidArgumentError(
            absl::StrFormat("'%s' and '%s' are copies of one file", earlier->second, path));
      }
    }
    if (file.entries > 0) files.push_back(std::move(file));
  }
  return files;
}

// Merge operands need their operator. If RocksDB can make it from its name, sets it in the options.
absl::Status ProvideMergeOperator(absl::Span<const SstFile> files, rocksdb::Options* options) {
  if (options->merge_operator != nullptr) return absl::OkStatus();
  const SstFile* merged = nullptr;
  for (const SstFile& file : files) {
    if (file.merge_operands == 0) continue;
    // SstFileWriter writes operands without knowing the operator.
    if (file.merge_operator.empty()) {
      return absl::FailedPreconditionError(
          absl::StrFormat("'%s' has merge operands, but does not name their merge operator; pass "
                          "options with it",
                          file.path));
    }
    if (merged != nullptr && merged->merge_operator != file.merge_operator) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "'%s' needs merge operator '%s', but '%s' needs '%s'; they do not belong together",
          merged->path, merged->merge_operator, file.path, file.merge_operator));
    }
    merged = &file;
  }
  if (merged == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      options->merge_operator,
      MakeMergeOperator(merged->merge_operator, absl::StrFormat("'%s'", merged->path)));
  return absl::OkStatus();
}

// Finds the comparator of the files: the one in the options if the files name it or none, otherwise
// the one that they name. Sets it in the options, and returns its order.
absl::StatusOr<KeyOrder> ProvideComparator(absl::Span<const SstFile> files,
                                           rocksdb::Options* options) {
  const SstFile* named = nullptr;
  for (const SstFile& file : files) {
    if (file.comparator.empty()) continue;
    if (named != nullptr && named->comparator != file.comparator) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "'%s' has comparator '%s', but '%s' has '%s'; they do not belong together", named->path,
          named->comparator, file.path, file.comparator));
    }
    named = &file;
  }
  if (named != nullptr && named->comparator != options->comparator->Name()) {
    const std::optional<KeyOrder> order = KeyOrderOfName(named->comparator);
    if (!order.has_value()) {
      return UnknownComparator(absl::StrFormat("SST file '%s'", named->path), named->comparator);
    }
    options->comparator = ComparatorOfName(named->comparator, *order);
  }
  return KeyOrderOf(options->comparator, rocksdb::kDefaultColumnFamilyName,
                    "the options for SST files");
}

absl::Status FindBounds(const rocksdb::Options& options, KeyOrder order, const std::string& scratch,
                        std::vector<SstFile>* files) {
  size_t longest = 0;
  for (SstFile& file : *files) {
    RETURN_IF_ERROR(FindKeyBounds(options, order, scratch, &file));
    longest = std::max(longest, file.largest.size());
  }
  // Range deletions must also cover every key of the other files.
  for (SstFile& file : *files) {
    if (file.IsWide()) file.largest.assign(longest + 1, '\xFF');
  }
  return absl::OkStatus();
}

absl::Status WriteDatabase(absl::Span<const SstFile> files, const SstLevels& levels,
                           const rocksdb::Comparator* comparator, KeyOrder order,
                           const std::string& directory) {
  std::vector<SstPlacement> placed;
  for (size_t i = 0; i < files.size(); ++i) {
    const SstFile& file = files[i];
    SstPlacement entry;
    entry.level = levels.level[i];
    entry.number = i + 2;
    entry.bytes = file.bytes;
    SetBounds(order, file.smallest, file.largest, file.IsWide(), &entry);
    if (file.origin == SstOrigin::kWriter) {
      // RocksDB uses this number for all of the file's entries, so later files win.
      entry.smallest_sequence = entry.largest_sequence = i + 1;
    } else if (file.global_sequence != 0) {
      entry.smallest_sequence = entry.largest_sequence = file.global_sequence;
    } else {
      entry.largest_sequence = kMaxSequenceNumber - 1;
    }
    std::error_code error;
    const std::string link = absl::StrFormat("%s/%s", directory, TableFileName(entry.number));
    fs::create_symlink(file.path, link, error);
    if (error) {
      return absl::InternalError(
          absl::StrFormat("cannot make the link '%s': %s", link, error.message()));
    }
    placed.push_back(std::move(entry));
  }
  return WriteRocksDbManifest(directory, comparator, placed);
}

// Reads all entries of a database's overlapping files once. A set that contains a file together
// with its compaction result would return old values, or fail during a scan. This also finds
// entries whose values are in blob files.
absl::Status CheckEntries(rocksdb::DB* db, KeyOrder order, absl::Span<const SstFile> files) {
  uint64_t expected = 0;
  uint64_t raw_bytes = 0;
  for (const SstFile& file : files) {
    expected += file.entries;
    raw_bytes += file.raw_bytes;
  }
  const size_t usual_limit = EntriesPerChunk(raw_bytes, expected);
  size_t limit = usual_limit;
  uint64_t found = 0;
  std::optional<std::string> from;
  std::vector<rocksdb::KeyVersion> chunk;
  while (true) {
    const rocksdb::Status status =
        GetKeyVersionsFrom(db, from.has_value() ? &*from : nullptr, limit, &chunk);
    if (!status.ok()) return FromRocksDb(status, "cannot read the entries of the SST files");
    // The last key of a full chunk may have more versions, so the next chunk begins with it.
    const bool full = chunk.size() == limit;
    size_t end = chunk.size();
    while (full && end > 0 && chunk[end - 1].user_key == chunk.back().user_key) --end;
    if (full && order == KeyOrder::kReverseBytewise && chunk.back().user_key.empty()) {
      limit *= 2;  // no chunk can begin with this key
      continue;
    }
    for (size_t i = 0; i < end; ++i) {
      if (chunk[i].type == kBlobIndexType) {
        return absl::FailedPreconditionError(
            "the SST files refer to blob files, which only their database's MANIFEST lists; read "
            "the database's directory or a checkpoint of it");
      }
      if (i > 0 && chunk[i].user_key == chunk[i - 1].user_key &&
          chunk[i].sequence == chunk[i - 1].sequence) {
        return absl::FailedPreconditionError(absl::StrFormat(
            "two of the SST files have the same entry of a key of %d bytes, sequence number %d: "
            "one of them is obsolete; make a checkpoint of the database and read that",
            chunk[i].user_key.size(), chunk[i].sequence));
      }
    }
    found += end;
    if (!full) break;
    limit = end == 0 ? limit * 2 : usual_limit;
    from = chunk[end].user_key;
  }
  if (found != expected) {
    return absl::DataLossError(absl::StrFormat(
        "the SST files have %d entries according to their properties, but %d can be read", expected,
        found));
  }
  return absl::OkStatus();
}

// The objects that must live as long as a source. The database is closed before its directory is
// removed.
struct OpenFiles {
  std::unique_ptr<ScratchDirectory> scratch;
  std::unique_ptr<ReadOnlyDatabase> database;
};

std::string Describe(absl::Span<const std::string> paths) {
  if (paths.size() == 1) return absl::StrFormat("SST file '%s'", paths[0]);
  return absl::StrFormat("%d SST files ('%s' and others)", paths.size(), paths[0]);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SnapshotSource>> SnapshotSource::FromSstFiles(
    absl::Span<const std::string> files, const std::string& scratch_directory,
    const rocksdb::Options* options) try {
  if (files.empty())
    return absl::InvalidArgumentError("FromSstFiles: expected at least one SST file, got none");
  rocksdb::Options reading = ReadingOptions(options, files.size());
  ASSIGN_OR_RETURN(std::vector<SstFile> inspected, Inspect(files, reading));
  ASSIGN_OR_RETURN(const KeyOrder order, ProvideComparator(inspected, &reading));
  RETURN_IF_ERROR(ProvideMergeOperator(inspected, &reading));

  auto open = std::make_shared<OpenFiles>();
  const std::string beside = fs::absolute(files[0]).parent_path().string();
  ASSIGN_OR_RETURN(std::unique_ptr<ScratchDirectory> scratch,
                   ScratchDirectory::Make(scratch_directory.empty() ? beside : scratch_directory));
  open->scratch = std::move(scratch);
  const std::string& directory = open->scratch->path();

  RETURN_IF_ERROR(FindBounds(reading, order, directory, &inspected));
  ASSIGN_OR_RETURN(SstLevels levels, ArrangeSstFiles(inspected));
  RETURN_IF_ERROR(WriteDatabase(inspected, levels, reading.comparator, order, directory));
  reading.num_levels = levels.depth + 1;
  ASSIGN_OR_RETURN(std::unique_ptr<ReadOnlyDatabase> database,
                   ReadOnlyDatabase::Open(directory, reading, rocksdb::kDefaultColumnFamilyName,
                                          reading, reading));
  open->database = std::move(database);

  DbView view;
  view.db = open->database->db();
  view.column_family = open->database->column_family();
  view.description = Describe(files);
  view.order = order;
  view.has_log = false;
  view.levels_are_ordered = !levels.overlapping_database_files;
  view.readahead_bytes = std::clamp(kReadaheadBytes / static_cast<size_t>(levels.depth),
                                    kMinLevelReadaheadBytes, kMaxLevelReadaheadBytes);
  if (levels.overlapping_database_files) {
    RETURN_IF_ERROR(CheckEntries(view.db, order, inspected));
  }
  return std::make_unique<DbSource>(std::move(view), std::move(open));
} catch (...) {
  return StatusOfException("opening SST files");
}

}  // namespace cairn
