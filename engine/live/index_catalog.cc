#include "engine/live/index_catalog.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "index/escaped_text.h"
#include "index/index_directory.h"
#include "index/posix_file.h"

namespace cairn {
namespace {

constexpr char kBuilding[] = "building\n";
constexpr char kRemoved[] = "removed\n";
constexpr char kStale[] = "stale: ";  // and why

// More than any mark has.
constexpr uint64_t kMarkBytes = 65536;

absl::Status FileSystemStatus(const std::error_code& error, std::string_view doing,
                              const std::string& path) {
  return error ? ErrnoStatus(error.value(), doing, path) : absl::OkStatus();
}

}  // namespace

absl::Status CheckIndexName(std::string_view name) {
  if (!name.empty() && name[0] != '.') return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("an index of a database needs a name, which does not begin with a dot; found "
                      "%s",
                      Quoted(name)));
}

absl::StatusOr<IndexCatalog> IndexCatalog::Open(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directory(directory, error);
  if (absl::Status s = FileSystemStatus(error, "cannot make", directory); !s.ok()) return s;
  IndexCatalog catalog(directory);
  std::filesystem::directory_iterator files(directory, error), end;
  std::vector<std::string> unfinished;
  for (; !error && files != end; files.increment(error)) {
    const std::string file = files->path().filename().string();
    if (!absl::EndsWith(file, "~")) continue;
    const absl::StatusOr<std::string> mark = ReadSmallFile(files->path().string(), kMarkBytes);
    if (!mark.ok()) return mark.status();
    // A mark is written before there is anything to say, so that one which is cut off is of nothing
    // yet, unless it says that the index is stale.
    if (*mark == kBuilding || *mark == kRemoved) {
      unfinished.push_back(file.substr(0, file.size() - 1));
    }
  }
  if (absl::Status s = FileSystemStatus(error, "cannot list", directory); !s.ok()) return s;
  for (const std::string& name : unfinished) {
    if (absl::Status s = catalog.Remove(name); !s.ok()) return s;
  }
  return catalog;
}

absl::StatusOr<std::vector<IndexCatalog::Entry>> IndexCatalog::List() const {
  std::vector<Entry> entries;
  std::error_code error;
  std::filesystem::directory_iterator files(directory_, error), end;
  for (; !error && files != end; files.increment(error)) {
    std::error_code ignored;
    if (!files->is_directory(ignored)) continue;
    Entry entry{files->path().filename().string(), ""};
    if (!CheckIndexName(entry.name).ok()) continue;
    if (absl::IsNotFound(ReadManifest(files->path().string()).status())) continue;
    const absl::StatusOr<std::string> mark = ReadSmallFile(MarkOf(entry.name), kMarkBytes);
    if (mark.ok()) {
      entry.stale = absl::StartsWith(*mark, kStale) ? mark->substr(sizeof kStale - 1) : "of old";
    } else if (!absl::IsNotFound(mark.status())) {
      return mark.status();
    }
    entries.push_back(std::move(entry));
  }
  if (absl::Status s = FileSystemStatus(error, "cannot list", directory_); !s.ok()) return s;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

std::string IndexCatalog::DirectoryOf(std::string_view name) const {
  return absl::StrFormat("%s/%s", directory_, name);
}

absl::Status IndexCatalog::Mark(std::string_view name, std::string_view text) const {
  const std::string path = MarkOf(name);
  absl::StatusOr<FileDescriptor> file = OpenFile(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.ok()) return file.status();
  text = text.substr(0, kMarkBytes);
  if (absl::Status s = WriteAt(*file, path, 0, text.data(), text.size()); !s.ok()) return s;
  if (absl::Status s = SyncFile(*file, path); !s.ok()) return s;
  return SyncDirectory(directory_);
}

absl::Status IndexCatalog::MarkBuilding(std::string_view name) const {
  return Mark(name, kBuilding);
}

absl::Status IndexCatalog::MarkStale(std::string_view name, std::string_view why) const {
  return Mark(name, kStale + std::string(why));
}

absl::Status IndexCatalog::RemoveMark(std::string_view name) const {
  std::error_code error;
  const std::string path = MarkOf(name);
  if (!std::filesystem::remove(path, error)) return FileSystemStatus(error, "cannot remove", path);
  return SyncDirectory(directory_);
}

absl::Status IndexCatalog::Remove(std::string_view name) const {
  std::error_code error;
  const std::string path = DirectoryOf(name);
  if (std::filesystem::exists(path, error)) {
    if (absl::Status s = Mark(name, kRemoved); !s.ok()) return s;
    std::filesystem::remove_all(path, error);
  }
  if (absl::Status s = FileSystemStatus(error, "cannot remove", path); !s.ok()) return s;
  return RemoveMark(name);
}

}  // namespace cairn
