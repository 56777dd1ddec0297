#include "engine/live/index_catalog.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "index/escaped_text.h"
#include "index/index_directory.h"

namespace cairn {
namespace {

constexpr char kBuilding[] = "building\n";
constexpr char kRemoved[] = "removed\n";
constexpr char kStale[] = "stale: ";  // and why

// More than any mark has.
constexpr uint64_t kMarkBytes = 65536;

// A file's name may have 255 bytes.
constexpr size_t kMostNameBytes = 128;

}  // namespace

absl::Status CheckIndexName(std::string_view name) {
  const bool fits = !name.empty() && name.size() <= kMostNameBytes && name[0] != '.' &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
                    });
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "an index of a database needs a name of up to %d letters, digits, '_', '-' and '.', which "
      "does not begin with a dot; found %s",
      kMostNameBytes, Quoted(name)));
}

absl::StatusOr<IndexCatalog> IndexCatalog::Open(const std::string& directory,
                                                std::shared_ptr<FileSystem> files) {
  const absl::Status made = files->MakeDirectory(directory);
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  IndexCatalog catalog(directory, std::move(files));
  const absl::StatusOr<std::vector<std::string>> names = catalog.files_->List(directory);
  if (!names.ok()) return names.status();
  for (const std::string& file : *names) {
    if (!absl::EndsWith(file, "~")) continue;
    const std::string name = file.substr(0, file.size() - 1);
    if (!CheckIndexName(name).ok()) continue;
    const auto mark = ReadSmallFile(catalog.files(), catalog.MarkOf(name), kMarkBytes);
    if (absl::IsFailedPrecondition(mark.status())) continue;  // it is no file, so not ours
    if (!mark.ok()) return mark.status();
    // A mark is written before there is anything to say, so that one which is cut off is of nothing
    // yet, unless it says that the index is stale.
    if (*mark != kBuilding && *mark != kRemoved) continue;
    if (absl::Status s = catalog.Remove(name); !s.ok()) return s;
  }
  return catalog;
}

absl::StatusOr<std::vector<IndexCatalog::Entry>> IndexCatalog::List() const {
  const absl::StatusOr<std::vector<std::string>> names = files_->List(directory_);
  if (!names.ok()) return names.status();
  std::vector<Entry> entries;
  for (const std::string& name : *names) {
    if (!CheckIndexName(name).ok() || absl::EndsWith(name, "~")) continue;
    if (absl::IsNotFound(ReadManifest(DirectoryOf(name), files()).status())) continue;
    Entry entry{name, ""};
    const absl::StatusOr<std::string> mark = ReadSmallFile(files(), MarkOf(name), kMarkBytes);
    if (mark.ok()) {
      entry.stale = absl::StartsWith(*mark, kStale) ? mark->substr(sizeof kStale - 1) : "of old";
    } else if (!absl::IsNotFound(mark.status())) {
      return mark.status();
    }
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

std::string IndexCatalog::DirectoryOf(std::string_view name) const {
  return absl::StrFormat("%s/%s", directory_, name);
}

absl::Status IndexCatalog::Mark(std::string_view name, std::string_view text) const {
  absl::Status s = WriteSmallFile(files(), MarkOf(name), text.substr(0, kMarkBytes));
  return s.ok() ? files_->SyncDirectory(directory_) : s;
}

absl::Status IndexCatalog::MarkBuilding(std::string_view name) const {
  return Mark(name, kBuilding);
}

absl::Status IndexCatalog::MarkStale(std::string_view name, std::string_view why) const {
  return Mark(name, kStale + std::string(why));
}

absl::Status IndexCatalog::RemoveMark(std::string_view name) const {
  const absl::Status removed = files_->Remove(MarkOf(name));
  if (!removed.ok()) return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
  return files_->SyncDirectory(directory_);
}

absl::Status IndexCatalog::Remove(std::string_view name) const {
  const std::string path = DirectoryOf(name);
  const absl::StatusOr<std::vector<std::string>> names = files_->List(path);
  if (absl::IsNotFound(names.status())) return RemoveMark(name);
  if (!names.ok()) return names.status();
  if (absl::Status s = Mark(name, kRemoved); !s.ok()) return s;
  for (const std::string& file : *names) {
    if (absl::Status s = files_->Remove(path + "/" + file); !s.ok()) return s;
  }
  if (absl::Status s = files_->RemoveDirectory(path); !s.ok()) return s;
  return RemoveMark(name);
}

}  // namespace cairn
