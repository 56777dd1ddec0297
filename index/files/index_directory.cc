#include "index/files/index_directory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr const char* kManifestName = "MANIFEST";
constexpr const char* kNewManifestName = "MANIFEST.tmp";
constexpr const char* kLockName = "LOCK";
// A file that readers store next to an index; it is not part of the index
// (engine/route/calibration_file.h).
constexpr const char* kCalibrationName = "CALIBRATION";

// The max number of attempts, of a writer if others remove the directory, and of a reader if others
// publish new versions.
constexpr int kAttempts = 100;

enum class NameKind { kManifest, kLock, kCalibration, kTemporary, kIndexFile, kForeign };

NameKind KindOf(std::string_view name) {
  constexpr std::string_view kTemporary = ".tmp";
  std::string_view prefix, extension;
  uint64_t number = 0;
  if (name == kManifestName) return NameKind::kManifest;
  if (name == kLockName) return NameKind::kLock;
  if (name == kCalibrationName) return NameKind::kCalibration;
  if (name.size() >= kTemporary.size() &&
      name.substr(name.size() - kTemporary.size()) == kTemporary) {
    return NameKind::kTemporary;
  }
  return ParseIndexFileName(name, &prefix, &number, &extension) ? NameKind::kIndexFile
                                                                : NameKind::kForeign;
}

// Removes trailing slashes, which would hide the parent.
std::string Trimmed(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

uint64_t NumberOf(std::string_view name) {
  std::string_view prefix, extension;
  uint64_t number = 0;
  return ParseIndexFileName(name, &prefix, &number, &extension) ? number : 0;
}

}  // namespace

IndexDirectory::IndexDirectory(std::string path, FileSystem* files)
    : path_(Trimmed(std::move(path))), files_(files) {}

absl::StatusOr<std::unique_ptr<IndexDirectory>> IndexDirectory::OpenForWrite(
    const std::string& path, FileSystem* files) {
  std::unique_ptr<IndexDirectory> directory(new IndexDirectory(path, files));
  for (int attempt = 0;; ++attempt) {
    ASSIGN_OR_RETURN(bool locked, directory->TakeLock());
    if (locked) break;
    if (attempt == kAttempts) {
      return absl::UnavailableError(
          absl::StrFormat("'%s' is being created and removed by other processes", path));
    }
  }
  RETURN_IF_ERROR(directory->ReadCurrent());
  directory->may_clean_ = true;
  directory->RemoveLeftovers();
  return directory;
}

absl::StatusOr<bool> IndexDirectory::TakeLock() {
  const absl::Status made = files_->MakeDirectory(path_);
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  absl::StatusOr<std::unique_ptr<FileLock>> lock = files_->Lock(PathOf(kLockName));
  if (absl::IsNotFound(lock.status())) return false;
  // The holder of the lock decides whether to remove the directory.
  made_directory_ = made.ok() && !absl::IsUnavailable(lock.status());
  if (!lock.ok()) return lock.status();
  lock_ = *std::move(lock);
  return true;
}

absl::Status IndexDirectory::ReadCurrent() {
  absl::StatusOr<Manifest> manifest = ReadManifest(path_, files_);
  if (absl::IsNotFound(manifest.status())) return CheckItIsAnIndex();
  if (!manifest.ok()) return manifest.status();
  // Files that the manifest does not name either have numbers from next_file_number on, or lower
  // numbers and are removed now. No reader has opened them.
  next_file_number_ = manifest->next_file_number;
  manifest_ = std::make_shared<const Manifest>(*std::move(manifest));
  return absl::OkStatus();
}

absl::Status IndexDirectory::CheckItIsAnIndex() const {
  ASSIGN_OR_RETURN(std::vector<std::string> names, files_->List(path_));
  for (const std::string& name : names) {
    if (KindOf(name) != NameKind::kForeign) continue;
    return absl::FailedPreconditionError(absl::StrFormat(
        "'%s' is not an index and not empty: it contains '%s'; an index needs its own directory",
        path_, name));
  }
  return absl::OkStatus();
}

IndexDirectory::~IndexDirectory() {
  const auto clean = [&] {
    if (may_clean_) RemoveLeftovers();
    if (manifest_ != nullptr) return absl::OkStatus();
    // Nothing was ever published. Remove the names before the lock, so that a process that waits
    // for the lock finds them removed.
    if (lock_ != nullptr && lock_->made_file()) files_->Remove(PathOf(kLockName)).IgnoreError();
    if (made_directory_) files_->RemoveDirectory(path_).IgnoreError();
    return absl::OkStatus();
  };
  // The next writer removes files that cannot be removed now.
  Guarded("removing files", clean).IgnoreError();
}

std::string IndexDirectory::PathOf(std::string_view name) const {
  return absl::StrFormat("%s/%s", path_, name);
}

std::string IndexDirectory::NextFileName(std::string_view prefix, std::string_view extension) {
  return IndexFileName(prefix, next_file_number_.fetch_add(1), extension);
}

void IndexDirectory::RemoveLeftovers() const {
  const absl::StatusOr<std::vector<std::string>> names = files_->List(path_);
  if (!names.ok()) return;  // the next writer removes them
  std::vector<std::string> leftovers;
  for (const std::string& name : *names) {
    const NameKind kind = KindOf(name);
    const auto is_it = [&](const ManifestFile& file) { return file.name == name; };
    const bool live = manifest_ != nullptr &&
                      std::any_of(manifest_->files.begin(), manifest_->files.end(), is_it);
    if (kind == NameKind::kTemporary || (kind == NameKind::kIndexFile && !live)) {
      leftovers.push_back(name);
    }
  }
  // The leftovers may be files of the previous version. A power loss would restore that version if
  // the current manifest is not durable yet.
  if (leftovers.empty()) return;
  if (manifest_ != nullptr && !files_->SyncDirectory(path_).ok()) return;
  for (const std::string& name : leftovers) files_->Remove(PathOf(name)).IgnoreError();
}

absl::Status IndexDirectory::CheckLiveFile(const ManifestFile& file) const {
  const std::string path = PathOf(file.name);
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> opened, files_->OpenForReading(path));
  const uint64_t size = opened->size();
  FileHeader header;
  RETURN_IF_ERROR(opened->ReadAt(0, &header, sizeof(header)));
  if (size == file.size && header.checksum == file.header_checksum) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("'%s' has %d bytes and header checksum %016x, expected %d and %016x", path,
                      size, header.checksum, file.size, file.header_checksum));
}

absl::Status IndexDirectory::Publish(Manifest next) {
  next.version = manifest_ != nullptr ? manifest_->version + 1 : 1;
  next.next_file_number = next_file_number_.load();
  for (const ManifestFile& file : next.files) {
    RETURN_IF_ERROR(CheckLiveFile(file));
    next.next_file_number = std::max(next.next_file_number, NumberOf(file.name) + 1);
  }
  ASSIGN_OR_RETURN(const std::string text, FormatManifest(next));
  auto published = std::make_shared<const Manifest>(std::move(next));

  const std::string path = PathOf(kManifestName), new_path = PathOf(kNewManifestName);
  RETURN_IF_ERROR(WriteSmallFile(files_, new_path, text));
  // The new files' names must be durable before a manifest that names them can be.
  RETURN_IF_ERROR(files_->SyncDirectory(path_));
  if (manifest_ == nullptr) {
    RETURN_IF_ERROR(files_->SyncDirectory(ParentOf(path_)));
  }
  // From here on nothing may throw, since the caller could not know which version is in force.
  absl::Status status =
      Guarded("publishing a version", [&] { return files_->Rename(new_path, path); });
  if (!status.ok() && !IsPublished(*published)) return status;
  manifest_.swap(published);
  status.Update(Guarded("publishing a version", [&] { return files_->SyncDirectory(path_); }));
  if (!status.ok() || published == nullptr) return status;
  // Files that only the previous version has are leftovers.
  Guarded("removing files", [&] {
    for (const ManifestFile& old : published->files) {
      const auto is_it = [&](const ManifestFile& live) { return live.name == old.name; };
      if (std::none_of(manifest_->files.begin(), manifest_->files.end(), is_it)) {
        files_->Remove(PathOf(old.name)).IgnoreError();
      }
    }
    return absl::OkStatus();
  }).IgnoreError();
  return absl::OkStatus();
}

// On a remote file system, a rename may have taken effect although it reported an error.
bool IndexDirectory::IsPublished(const Manifest& next) {
  bool published = false;
  const absl::Status read = Guarded("reading a manifest", [&] {
    const absl::StatusOr<Manifest> manifest = ReadManifest(path_, files_);
    published = manifest.ok() && *manifest == next;
    return manifest.status();
  });
  // It is unknown which files are live.
  if (!read.ok() && !absl::IsNotFound(read)) may_clean_ = false;
  return published;
}

absl::StatusOr<Manifest> ReadManifest(const std::string& directory, FileSystem* files) {
  const std::string path = absl::StrFormat("%s/%s", Trimmed(directory), kManifestName);
  absl::StatusOr<std::string> text = ReadSmallFile(files, path, kMaxManifestBytes);
  if (text.ok()) return ParseManifest(*text, path);
  if (!absl::IsNotFound(text.status())) return text.status();
  const absl::StatusOr<std::vector<std::string>> names = files->List(directory);
  if (!names.ok()) {
    return absl::NotFoundError(
        absl::StrFormat("no index in '%s': %s", directory, std::string(names.status().message())));
  }
  const bool leftovers = std::any_of(names->begin(), names->end(), [](const std::string& name) {
    const NameKind kind = KindOf(name);
    return kind == NameKind::kIndexFile || kind == NameKind::kTemporary;
  });
  return absl::NotFoundError(absl::StrFormat(
      "no index in '%s': it has no MANIFEST%s", directory,
      leftovers ? "; an interrupted build left files there, or one is running" : ""));
}

absl::Status OpenCurrentVersion(const std::string& directory,
                                const std::function<absl::Status(const Manifest&)>& open,
                                FileSystem* files) {
  uint64_t version_before = 0;
  for (int attempt = 0;; ++attempt) {
    ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(directory, files));
    absl::Status opened = open(manifest);
    const bool same = manifest.version == version_before;
    if (!absl::IsNotFound(opened) || same || attempt == kAttempts) return opened;
    version_before = manifest.version;
  }
}

absl::Status CheckIsManifestFile(const ManifestFile& file, const SectionFile& opened) {
  if (opened.size() == file.size && opened.header_checksum() == file.header_checksum) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrFormat(
      "'%s' is not the file that the manifest names: it has %d bytes and header checksum %016x, "
      "expected %d and %016x",
      opened.path(), opened.size(), opened.header_checksum(), file.size, file.header_checksum));
}

}  // namespace cairn
