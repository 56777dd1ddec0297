#include "engine/shards/shard_directory.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "index/files/checksum.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr std::string_view kShardsName = "SHARDS";
constexpr std::string_view kLockName = "LOCK";
constexpr std::string_view kTemporary = ".tmp";
constexpr size_t kAttemptDigits = 16;
// The max number of a writer's attempts if others remove the directory.
constexpr int kAttempts = 100;

std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string ParentDirectory(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Whether NewName created this name.
bool IsAttemptName(std::string_view name) {
  const size_t dash = name.find('-'), dot = name.find('.');
  if (dash == std::string_view::npos || dot == std::string_view::npos || dot < dash) return false;
  const std::string_view prefix = name.substr(0, dash), attempt = name.substr(dot + 1);
  const std::string_view number = name.substr(dash + 1, dot - dash - 1);
  return (prefix == "shard" || prefix == "segment") && !number.empty() &&
         number.find_first_not_of("0123456789") == std::string_view::npos &&
         attempt.size() == kAttemptDigits &&
         attempt.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

uint64_t ManifestChecksum(const Manifest& manifest) {
  const absl::StatusOr<std::string> text = FormatManifest(manifest);
  return text.ok() ? Checksum(text->data(), text->size()) : 0;
}

ShardRecord RecordOf(std::string directory, const Manifest& manifest) {
  ShardRecord record;
  record.directory = std::move(directory);
  record.version = manifest.version;
  record.manifest_checksum = ManifestChecksum(manifest);
  record.database_id = manifest.database_id;
  record.sequence = manifest.sequence;
  record.rows = manifest.rows;
  record.entries = manifest.entries;
  return record;
}

absl::StatusOr<ShardManifest> ReadShardManifest(const std::string& directory, FileSystem* files) {
  const std::string path = absl::StrFormat("%s/%s", WithoutSlashes(directory), kShardsName);
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(files, path, kMaxShardManifestBytes));
  return ParseShardManifest(text, path);
}

void RemoveTree(FileSystem* files, const std::string& path) {
  const absl::StatusOr<std::vector<std::string>> names = files->List(path);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string inner = path + "/" + name;
    if (files->Remove(inner).ok()) continue;
    const absl::StatusOr<std::vector<std::string>> below = files->List(inner);
    if (!below.ok()) continue;
    for (const std::string& file : *below) files->Remove(inner + "/" + file).IgnoreError();
    files->RemoveDirectory(inner).IgnoreError();
  }
  files->RemoveDirectory(path).IgnoreError();
}

absl::Status ReplaceFile(FileSystem* files, const std::string& path, const std::string& temporary,
                         std::string_view bytes) {
  const std::string directory = ParentDirectory(path);
  RETURN_IF_ERROR(WriteSmallFile(files, temporary, bytes));
  RETURN_IF_ERROR(files->SyncDirectory(directory));
  RETURN_IF_ERROR(files->Rename(temporary, path));
  return files->SyncDirectory(directory);
}

absl::StatusOr<std::unique_ptr<ShardDirectory>> ShardDirectory::OpenForWrite(
    const std::string& path, FileSystem* files) {
  std::unique_ptr<ShardDirectory> directory(new ShardDirectory(WithoutSlashes(path), files));
  for (int attempt = 0; directory->lock_ == nullptr; ++attempt) {
    const absl::Status made = files->MakeDirectory(directory->path_);
    if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
    if (absl::IsAlreadyExists(made)) {
      // Checks first, before it adds a lock to a directory that may not be an index.
      const absl::Status contents = directory->CheckContents();
      if (!contents.ok() && !absl::IsNotFound(contents)) return contents;
    }
    absl::StatusOr<std::unique_ptr<FileLock>> lock = files->Lock(directory->PathOf(kLockName));
    if (lock.ok()) {
      directory->made_directory_ = made.ok();
      directory->lock_ = *std::move(lock);
    } else if (!absl::IsNotFound(lock.status()) || attempt == kAttempts) {
      return lock.status();
    }
  }
  RETURN_IF_ERROR(directory->CheckContents());
  absl::StatusOr<ShardManifest> manifest = ReadShardManifest(directory->path_, files);
  if (manifest.ok()) {
    directory->manifest_ = std::make_unique<const ShardManifest>(*std::move(manifest));
  } else if (!absl::IsNotFound(manifest.status())) {
    return manifest.status();
  }
  return directory;
}

absl::Status ShardDirectory::CheckContents() const {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_->List(path_));
  const auto has = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (has(kShardsName)) return absl::OkStatus();
  for (const std::string& name : names) {
    if (name == kLockName || name == std::string(kShardsName).append(kTemporary) ||
        IsAttemptName(name)) {
      continue;
    }
    return absl::FailedPreconditionError(absl::StrFormat(
        "'%s' is not a sharded index and not empty: it contains '%s'; %s", path_, name,
        has("MANIFEST") ? "that index is unsharded; build into another directory"
                        : "an index needs its own directory"));
  }
  return absl::OkStatus();
}

ShardDirectory::~ShardDirectory() {
  if (manifest_ != nullptr || lock_ == nullptr) return;
  Guarded("removing files", [&] {
    const absl::StatusOr<std::vector<std::string>> names = files_->List(path_);
    const bool empty = names.ok() && names->size() == 1;  // LOCK
    if (!empty) return absl::OkStatus();                  // the next writer uses it
    if (lock_->made_file()) files_->Remove(PathOf(kLockName)).IgnoreError();
    if (made_directory_) files_->RemoveDirectory(path_).IgnoreError();
    return absl::OkStatus();
  }).IgnoreError();
}

std::string ShardDirectory::PathOf(std::string_view name) const {
  return absl::StrFormat("%s/%s", path_, name);
}

std::string ShardDirectory::NewName(std::string_view prefix, size_t number) {
  std::random_device device;
  const uint64_t attempt = static_cast<uint64_t>(device()) << 32 | device();
  return absl::StrFormat("%s-%d.%0*x", prefix, number, static_cast<int>(kAttemptDigits), attempt);
}

absl::Status ShardDirectory::Publish(ShardManifest next) {
  next.generation = manifest_ == nullptr ? 1 : manifest_->generation + 1;
  ASSIGN_OR_RETURN(const std::string text, FormatShardManifest(next));
  auto published = std::make_unique<const ShardManifest>(std::move(next));
  if (manifest_ == nullptr) {
    RETURN_IF_ERROR(files_->SyncDirectory(ParentDirectory(path_)));
  }
  const std::string file = PathOf(kShardsName);
  const absl::Status status =
      ReplaceFile(files_, file, absl::StrFormat("%s%s", file, kTemporary), text);
  if (status.ok()) {
    manifest_ = std::move(published);
    return status;
  }
  // A rename may have taken effect although it failed, or a sync may fail after it.
  const absl::StatusOr<ShardManifest> now = ReadShardManifest(path_, files_);
  if (now.ok() && *now == *published) manifest_ = std::move(published);
  // It is unknown which shards are live.
  if (!now.ok() && !absl::IsNotFound(now.status())) may_clean_ = false;
  return status;
}

void ShardDirectory::RemoveLeftovers() {
  if (!may_clean_) return;
  Guarded("removing files", [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, files_->List(path_));
    // The leftovers may be of the previous generation, which a power loss would restore if the
    // current one is not durable yet.
    RETURN_IF_ERROR(files_->SyncDirectory(path_));
    for (const std::string& name : names) {
      const auto lives = [&](const ShardRecord& shard) {
        return shard.directory == name || absl::StartsWith(shard.directory, name + "/");
      };
      if (!IsAttemptName(name)) continue;
      if (manifest_ == nullptr ||
          std::none_of(manifest_->shards.begin(), manifest_->shards.end(), lives)) {
        RemoveTree(files_, PathOf(name));
      }
    }
    return absl::OkStatus();
  }).IgnoreError();
}

}  // namespace cairn
