#include "engine/live/index_catalog.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "index/files/checksum.h"
#include "index/files/index_directory.h"
#include "index/files/manifest.h"
#include "index/files/manifest_text.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// A file name can have 255 bytes, including the extension of ".NAME.tmp".
constexpr size_t kMaxNameBytes = 128;
// A spec cannot be longer, because it must fit into a manifest.
constexpr uint64_t kMaxMarkBytes = 2 * kMaxManifestBytes;
constexpr size_t kMaxReasonBytes = 4096;

// A mark's text: three lines, then the spec, then a line with the checksum of everything before.
constexpr std::string_view kFirstLine = "cairn-mark 1";
constexpr size_t kChecksumBytes = 16 + 1;  // digits, line end
constexpr std::string_view kKinds[] = {"none", "build", "stale", "removed", "rebuild"};

std::string FormatMark(const IndexMark& mark) {
  const std::string why = absl::StrReplaceAll(mark.why.substr(0, kMaxReasonBytes), {{"\n", " "}});
  std::string text = absl::StrFormat("%s\n%s\n%s\n%s\n", kFirstLine,
                                     kKinds[static_cast<size_t>(mark.kind)], why, mark.spec);
  absl::StrAppendFormat(&text, "%016x\n", Checksum(text.data(), text.size()));
  return text;
}

// Returns nullopt for any text that FormatMark does not write.
std::optional<IndexMark> ParseMark(std::string_view text) {
  const std::string_view whole = text;
  if (text.size() < kChecksumBytes + 1) return std::nullopt;
  text.remove_suffix(kChecksumBytes + 1);  // and the end of the spec's line
  std::string_view first, kind, why;
  if (!TakeLine(&text, &first) || !TakeLine(&text, &kind) || !TakeLine(&text, &why)) {
    return std::nullopt;
  }
  IndexMark mark;
  for (size_t i = 0; i < std::size(kKinds); ++i) {
    if (kind == kKinds[i]) mark.kind = static_cast<IndexMark::Kind>(i);
  }
  mark.why = why;
  mark.spec = text;
  if (mark.kind == IndexMark::Kind::kNone || FormatMark(mark) != whole) return std::nullopt;
  return mark;
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.find_last_not_of('/') == std::string::npos
                           ? std::string::npos
                           : path.rfind('/', path.find_last_not_of('/'));
  if (slash == std::string::npos) return path[0] == '/' ? "/" : ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

absl::Status CheckIndexName(std::string_view name) {
  const bool fits = !name.empty() && name.size() <= kMaxNameBytes && name[0] != '.' &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
                    });
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("index name: expected 1 to %d letters, digits, '_', '-' and '.', without a "
                      "leading dot; found %s",
                      kMaxNameBytes, Quoted(name)));
}

absl::StatusOr<IndexCatalog> IndexCatalog::Open(const std::string& directory,
                                                std::shared_ptr<FileSystem> files) {
  const absl::Status made = files->MakeDirectory(directory);
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  // Also syncs directories and renames of another process that may have died before it synced them.
  // From now on they must persist.
  RETURN_IF_ERROR(files->SyncDirectory(ParentOf(directory)));
  RETURN_IF_ERROR(files->SyncDirectory(directory));
  IndexCatalog catalog(directory, std::move(files));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, catalog.files_->List(directory));
  RETURN_IF_ERROR(catalog.EndInterrupted(names));
  return catalog;
}

absl::Status IndexCatalog::EndInterrupted(const std::vector<std::string>& names) const {
  const std::string kTemporary = ".tmp";
  for (const std::string& file : names) {
    if (file[0] == '.' && file.size() > kTemporary.size() && absl::EndsWith(file, kTemporary) &&
        CheckIndexName(file.substr(1, file.size() - 1 - kTemporary.size())).ok()) {
      files_->Remove(DirectoryOf(file)).IgnoreError();
    }
    if (!absl::EndsWith(file, "~")) continue;
    const std::string name = file.substr(0, file.size() - 1);
    if (!CheckIndexName(name).ok()) continue;
    const absl::StatusOr<IndexMark> mark = ReadMark(name);
    if (absl::IsFailedPrecondition(mark.status())) continue;  // not a file, so no mark
    if (!mark.ok() && !absl::IsDataLoss(mark.status())) return mark.status();
    if (mark.ok() ? mark->kind != IndexMark::Kind::kRemoved
                  : !absl::IsNotFound(ReadManifest(DirectoryOf(name), files()).status()) ||
                        !HoldsOnlyAnIndex(name)) {
      continue;
    }
    // If the mark of an index that was not yet built is damaged, the spec is lost.
    RETURN_IF_ERROR(Remove(name));
  }
  return absl::OkStatus();
}

absl::Status IndexCatalog::Destroy(const std::string& directory,
                                   std::shared_ptr<FileSystem> files) {
  const absl::StatusOr<std::vector<std::string>> listed = files->List(directory);
  if (absl::IsNotFound(listed.status())) return absl::OkStatus();
  RETURN_IF_ERROR(listed.status());
  const IndexCatalog catalog(directory, std::move(files));
  const auto foreign = [&](const std::string& file) {
    return absl::FailedPreconditionError(
        absl::StrFormat("directory '%s' contains '%s', which is not an index; nothing was removed",
                        directory, file));
  };
  const std::string kTemporary = ".tmp";
  std::vector<std::string> indexes, temporary;
  std::vector<std::unique_ptr<IndexDirectory>> held;  // until all have been checked
  for (const std::string& file : *listed) {
    if (file[0] == '.' && absl::EndsWith(file, kTemporary)) {
      if (!CheckIndexName(file.substr(1, file.size() - 1 - kTemporary.size())).ok()) {
        return foreign(file);
      }
      temporary.push_back(file);
      continue;
    }
    const bool is_mark = absl::EndsWith(file, "~");
    const std::string name = is_mark ? file.substr(0, file.size() - 1) : file;
    if (!CheckIndexName(name).ok()) return foreign(file);
    indexes.push_back(name);
    if (is_mark) {
      const absl::StatusOr<IndexMark> mark = catalog.ReadMark(name);
      if (!mark.ok() && !absl::IsDataLoss(mark.status())) return foreign(file);
      const bool has_index = std::find(listed->begin(), listed->end(), name) != listed->end();
      if (!mark.ok() && !has_index) return foreign(file);
      continue;
    }
    const std::string path = catalog.DirectoryOf(name);
    if (!catalog.files_->List(path).ok()) return foreign(file);
    absl::StatusOr<std::unique_ptr<IndexDirectory>> taken =
        IndexDirectory::OpenForWrite(path, catalog.files());
    if (absl::IsUnavailable(taken.status())) return taken.status();
    const bool damaged = absl::IsDataLoss(taken.status());
    if (!taken.ok() && !damaged) return foreign(file);
    if (taken.ok()) held.push_back(*std::move(taken));
  }
  held.clear();
  for (const std::string& file : temporary) {
    RETURN_IF_ERROR(catalog.files_->Remove(catalog.DirectoryOf(file)));
  }
  for (const std::string& name : indexes) {
    RETURN_IF_ERROR(catalog.Remove(name));  // twice if it also has a mark
  }
  RETURN_IF_ERROR(catalog.files_->RemoveDirectory(directory));
  return catalog.files_->SyncDirectory(ParentOf(directory));
}

absl::StatusOr<IndexMark> IndexCatalog::ReadMark(std::string_view name) const {
  const absl::StatusOr<std::string> text = ReadSmallFile(files(), MarkOf(name), kMaxMarkBytes);
  if (absl::IsNotFound(text.status())) return IndexMark();
  if (!text.ok()) return text.status();
  std::optional<IndexMark> mark = ParseMark(*text);
  if (mark.has_value()) return *std::move(mark);
  return absl::DataLossError(absl::StrFormat("'%s' is damaged", MarkOf(name)));
}

bool IndexCatalog::HoldsOnlyAnIndex(std::string_view name) const {
  const std::string path = DirectoryOf(name);
  if (absl::IsNotFound(files_->List(path).status())) return true;
  return IndexDirectory::OpenForWrite(path, files()).ok();
}

absl::StatusOr<std::vector<IndexCatalog::Entry>> IndexCatalog::List() const {
  ASSIGN_OR_RETURN(std::vector<std::string> names, files_->List(directory_));
  for (std::string& name : names) {
    if (absl::EndsWith(name, "~")) name.pop_back();
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<Entry> entries;
  for (const std::string& name : names) {
    if (!CheckIndexName(name).ok()) continue;
    absl::StatusOr<IndexMark> mark = ReadMark(name);
    if (absl::IsDataLoss(mark.status())) {
      mark = IndexMark{IndexMark::Kind::kStale, std::string(mark.status().message()), ""};
    } else if (absl::IsFailedPrecondition(mark.status())) {
      mark = IndexMark();
    }
    if (!mark.ok()) return mark.status();
    // Without a spec in the mark, the spec must be in the index's files.
    if (mark->spec.empty() && absl::IsNotFound(ReadManifest(DirectoryOf(name), files()).status())) {
      continue;
    }
    entries.push_back({name, *std::move(mark)});
  }
  return entries;
}

std::string IndexCatalog::DirectoryOf(std::string_view name) const {
  return absl::StrFormat("%s/%s", directory_, name);
}

std::string IndexCatalog::NewMarkOf(std::string_view name) const {
  return absl::StrFormat("%s/.%s.tmp", directory_, name);
}

absl::Status IndexCatalog::Mark(std::string_view name, const IndexMark& mark) const {
  if (mark.kind == IndexMark::Kind::kNone) {
    const absl::Status removed = files_->Remove(MarkOf(name));
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  } else {
    const std::string path = NewMarkOf(name);
    absl::Status s = WriteSmallFile(files(), path, FormatMark(mark));
    if (s.ok()) s = files_->Rename(path, MarkOf(name));
    if (!s.ok()) {
      files_->Remove(path).IgnoreError();
      return s;
    }
  }
  return files_->SyncDirectory(directory_);
}

absl::Status IndexCatalog::MarkDamaged(std::string_view name) const {
  absl::Status s = files_->Create(MarkOf(name), IfExists::kTruncate).status();
  if (s.ok()) s = files_->SyncDirectory(directory_);
  if (s.ok()) return s;
  const std::string path = DirectoryOf(name);
  s = files_->Remove(path + "/MANIFEST");
  if (!s.ok() && !absl::IsNotFound(s)) return s;
  return files_->SyncDirectory(path);
}

absl::Status IndexCatalog::RemoveFiles(std::string_view name) const {
  const std::string path = DirectoryOf(name);
  if (absl::IsNotFound(files_->List(path).status())) return files_->SyncDirectory(directory_);
  absl::Status taken = IndexDirectory::OpenForWrite(path, files()).status();
  if (absl::IsUnavailable(taken)) return taken;
  // A directory that was never an index is kept.
  if (absl::IsFailedPrecondition(taken) && absl::IsNotFound(ReadManifest(path, files()).status())) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_->List(path));
  for (const std::string& file : names) {
    RETURN_IF_ERROR(files_->Remove(path + "/" + file));
  }
  RETURN_IF_ERROR(files_->RemoveDirectory(path));
  return files_->SyncDirectory(directory_);
}

absl::Status IndexCatalog::Remove(std::string_view name) const {
  RETURN_IF_ERROR(Mark(name, {IndexMark::Kind::kRemoved, "", ""}));
  RETURN_IF_ERROR(RemoveFiles(name));
  return Mark(name, {});
}

absl::Status LostLogMarks::Make(OlderLogCheck check) {
  const absl::StatusOr<std::vector<IndexCatalog::Entry>> entries = catalog_.List();
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  RETURN_IF_ERROR(entries.status());
  for (const IndexCatalog::Entry& entry : *entries) {
    if (entry.mark.kind != IndexMark::Kind::kNone) continue;
    const absl::Status has_all = HasAll(entry.name, &check);
    if (has_all.ok()) continue;
    marked_.push_back(entry.name);
    const absl::Status marked =
        catalog_.Mark(entry.name, {IndexMark::Kind::kStale, std::string(has_all.message()), ""});
    if (!marked.ok() && !catalog_.MarkDamaged(entry.name).ok()) return marked;
  }
  return absl::OkStatus();
}

void LostLogMarks::Undo(OlderLogCheck check) {
  for (const std::string& name : marked_) {
    if (!absl::IsFailedPrecondition(HasAll(name, &check))) continue;
    catalog_.Mark(name, IndexMark()).IgnoreError();
  }
}

absl::Status LostLogMarks::HasAll(const std::string& name, OlderLogCheck* check) {
  absl::StatusOr<Manifest> manifest;
  for (int i = 0; i < 2 && !manifest.ok(); ++i) {  // an error of reading may pass
    manifest = ReadManifest(catalog_.DirectoryOf(name), catalog_.files());
    const absl::Status& read = manifest.status();
    if (absl::IsNotFound(read) || absl::IsDataLoss(read) || absl::IsFailedPrecondition(read)) {
      return absl::OkStatus();  // the index is not used
    }
  }
  RETURN_IF_ERROR(manifest.status());
  const absl::StatusOr<std::vector<LogPosition>> logs = ParseOlderLogs(manifest->logs);
  return logs.ok() ? check->HasAll(manifest->sequence, *logs) : absl::OkStatus();
}

}  // namespace cairn
