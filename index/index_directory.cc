#include "index/index_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"

namespace cairn {
namespace {

constexpr const char* kManifestName = "MANIFEST";
constexpr const char* kNewManifestName = "MANIFEST.tmp";
constexpr const char* kLockName = "LOCK";
// What readers store beside an index; not part of it (engine/route/calibration_file.h).
constexpr const char* kCalibrationName = "CALIBRATION";

// How often a writer tries again after another has removed the directory under its feet, and a
// reader after another version was published.
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

absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& path) {
  DIR* directory = opendir(path.c_str());
  if (directory == nullptr) return ErrnoStatus(errno, "read directory", path);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  const int error = errno;
  closedir(directory);
  if (error != 0) return ErrnoStatus(error, "read directory", path);
  return names;
}

// Without the slashes at its end, which would hide its parent.
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

IndexDirectory::IndexDirectory(std::string path) : path_(Trimmed(std::move(path))) {}

absl::StatusOr<std::unique_ptr<IndexDirectory>> IndexDirectory::OpenForWrite(
    const std::string& path) {
  std::unique_ptr<IndexDirectory> directory(new IndexDirectory(path));
  for (int attempt = 0;; ++attempt) {
    absl::StatusOr<bool> locked = directory->TakeLock();
    if (!locked.ok()) return locked.status();
    if (*locked) break;
    if (attempt == kAttempts) {
      return absl::UnavailableError(
          absl::StrFormat("'%s' is being made and removed by others", path));
    }
  }
  if (absl::Status s = directory->ReadCurrent(); !s.ok()) return s;
  directory->may_clean_ = true;
  directory->RemoveLeftovers();
  return directory;
}

absl::StatusOr<bool> IndexDirectory::TakeLock() {
  made_directory_ = mkdir(path_.c_str(), 0755) == 0;
  if (!made_directory_ && errno != EEXIST) {
    return ErrnoStatus(errno, "make directory", path_);
  }
  const std::string lock_path = PathOf(kLockName);
  int flags = O_RDWR | O_CREAT | O_EXCL;
  absl::StatusOr<FileDescriptor> lock = OpenFile(lock_path, flags);
  made_lock_ = lock.ok();
  if (absl::IsAlreadyExists(lock.status())) lock = OpenFile(lock_path, flags & ~(O_CREAT | O_EXCL));
  if (absl::IsNotFound(lock.status())) {
    struct stat info;
    if (stat(path_.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) {
      return absl::FailedPreconditionError(absl::StrFormat("'%s' is no directory", path_));
    }
    return false;
  }
  if (!lock.ok()) return lock.status();
  int result;
  do {
    result = flock(lock->get(), LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    const int error = errno;
    made_lock_ = made_directory_ = false;  // whoever holds it decides
    if (error != EWOULDBLOCK) return ErrnoStatus(error, "lock", lock_path);
    char pid[32] = {};
    const ssize_t got = pread(lock->get(), pid, sizeof(pid) - 1, 0);
    return absl::UnavailableError(
        absl::StrFormat("'%s' is being written by another process (%s)", path_,
                        got > 0 ? std::string_view(pid, std::min<size_t>(strcspn(pid, "\n"), got))
                                : std::string_view("not known which")));
  }
  // The writer before may have removed the file that is locked now.
  struct stat locked, named;
  if (fstat(lock->get(), &locked) != 0 || stat(lock_path.c_str(), &named) != 0 ||
      locked.st_dev != named.st_dev || locked.st_ino != named.st_ino) {
    made_lock_ = made_directory_ = false;
    return false;
  }
  lock_ = *std::move(lock);
  const std::string pid = absl::StrFormat("pid %d\n", getpid());
  if (ftruncate(lock_.get(), 0) != 0) return ErrnoStatus(errno, "truncate", lock_path);
  if (absl::Status s = WriteAt(lock_, lock_path, 0, pid.data(), pid.size()); !s.ok()) return s;
  return true;
}

absl::Status IndexDirectory::ReadCurrent() {
  absl::StatusOr<Manifest> manifest = ReadManifest(path_);
  if (absl::IsNotFound(manifest.status())) return CheckItIsAnIndex();
  if (!manifest.ok()) return manifest.status();
  // Files that the manifest does not name have numbers from its next one on, or lower ones that are
  // removed now: no reader ever heard of them.
  next_file_number_ = manifest->next_file_number;
  manifest_ = *std::move(manifest);
  return absl::OkStatus();
}

absl::Status IndexDirectory::CheckItIsAnIndex() const {
  absl::StatusOr<std::vector<std::string>> names = NamesIn(path_);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (KindOf(name) != NameKind::kForeign) continue;
    return absl::FailedPreconditionError(absl::StrFormat(
        "'%s' is no index and not empty: it holds '%s'; an index needs a directory of its own",
        path_, name));
  }
  return absl::OkStatus();
}

IndexDirectory::~IndexDirectory() {
  if (may_clean_) RemoveLeftovers();
  if (manifest_.has_value() || !lock_.is_open()) {
    if (!lock_.is_open() && made_directory_) rmdir(path_.c_str());
    return;
  }
  // Nothing was ever published. Names go before the lock does, see TakeLock.
  if (made_lock_) unlink(PathOf(kLockName).c_str());
  if (made_directory_) rmdir(path_.c_str());
}

std::string IndexDirectory::PathOf(std::string_view name) const {
  return absl::StrFormat("%s/%s", path_, name);
}

std::string IndexDirectory::NextFileName(std::string_view prefix, std::string_view extension) {
  return IndexFileName(prefix, next_file_number_.fetch_add(1), extension);
}

void IndexDirectory::RemoveLeftovers() const {
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(path_);
  if (!names.ok()) return;  // they stay for the next writer
  for (const std::string& name : *names) {
    const NameKind kind = KindOf(name);
    const auto is_it = [&](const ManifestFile& file) { return file.name == name; };
    const bool live = manifest_.has_value() &&
                      std::any_of(manifest_->files.begin(), manifest_->files.end(), is_it);
    if (kind == NameKind::kTemporary || (kind == NameKind::kIndexFile && !live)) {
      unlink(PathOf(name).c_str());
    }
  }
}

absl::Status IndexDirectory::CheckLiveFile(const ManifestFile& file) const {
  const std::string path = PathOf(file.name);
  uint64_t size = 0;
  absl::StatusOr<FileDescriptor> opened = OpenRegularFile(path, &size);
  if (!opened.ok()) return opened.status();
  FileHeader header;
  if (absl::Status s = ReadAt(*opened, path, 0, &header, sizeof(header)); !s.ok()) return s;
  if (size == file.size && header.checksum == file.header_checksum) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "'%s' has %d bytes and header checksum %016x, to be published as %d and %016x", path, size,
      header.checksum, file.size, file.header_checksum));
}

absl::Status IndexDirectory::Publish(Manifest next) {
  next.version = manifest_.has_value() ? manifest_->version + 1 : 1;
  next.next_file_number = next_file_number_.load();
  for (const ManifestFile& file : next.files) {
    if (absl::Status s = CheckLiveFile(file); !s.ok()) return s;
    next.next_file_number = std::max(next.next_file_number, NumberOf(file.name) + 1);
  }
  const absl::StatusOr<std::string> text = FormatManifest(next);
  if (!text.ok()) return text.status();

  const std::string new_path = PathOf(kNewManifestName);
  absl::StatusOr<FileDescriptor> file = OpenFile(new_path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.ok()) return file.status();
  if (absl::Status s = WriteAt(*file, new_path, 0, text->data(), text->size()); !s.ok()) return s;
  if (absl::Status s = SyncFile(*file, new_path); !s.ok()) return s;
  // The new files' names must be durable before the manifest that names them can be.
  if (absl::Status s = SyncDirectory(path_); !s.ok()) return s;
  if (!manifest_.has_value()) {
    if (absl::Status s = SyncDirectory(ParentOf(path_)); !s.ok()) return s;
  }
  if (rename(new_path.c_str(), PathOf(kManifestName).c_str()) != 0) {
    return ErrnoStatus(errno, "rename to MANIFEST", new_path);
  }
  const std::optional<Manifest> before = std::exchange(manifest_, std::move(next));
  if (absl::Status s = SyncDirectory(path_); !s.ok()) return s;
  if (!before.has_value()) return absl::OkStatus();
  for (const ManifestFile& old : before->files) {
    const auto is_it = [&](const ManifestFile& live) { return live.name == old.name; };
    if (std::none_of(manifest_->files.begin(), manifest_->files.end(), is_it)) {
      unlink(PathOf(old.name).c_str());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Manifest> ReadManifest(const std::string& directory) {
  const std::string path = absl::StrFormat("%s/%s", Trimmed(directory), kManifestName);
  absl::StatusOr<std::string> text = ReadSmallFile(path, kMaxManifestBytes);
  if (text.ok()) return ParseManifest(*text, path);
  if (!absl::IsNotFound(text.status())) return text.status();
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(directory);
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
                                const std::function<absl::Status(const Manifest&)>& open) {
  uint64_t version_before = 0;
  for (int attempt = 0;; ++attempt) {
    const absl::StatusOr<Manifest> manifest = ReadManifest(directory);
    if (!manifest.ok()) return manifest.status();
    absl::Status opened = open(*manifest);
    const bool same = manifest->version == version_before;
    if (!absl::IsNotFound(opened) || same || attempt == kAttempts) return opened;
    version_before = manifest->version;
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
