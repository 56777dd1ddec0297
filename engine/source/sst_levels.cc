#include "engine/source/sst_levels.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr char kAdvice[] =
    "; make a checkpoint of the database, or copy its whole directory, and read that";

absl::Status Refuse(const std::string& why) {
  return absl::FailedPreconditionError(absl::StrFormat("%s%s", why, kAdvice));
}

// Files of one level, which do not overlap, by their smallest key.
class Level {
 public:
  // Returns a file that shares keys with this one; null if there is none.
  const SstFile* Overlapping(const SstFile& file) const {
    auto next = files_.lower_bound(file.smallest);
    if (next != files_.end() && Reaches(file, next->first)) return next->second;
    if (next == files_.begin()) return nullptr;
    --next;
    return Reaches(*next->second, file.smallest) ? next->second : nullptr;
  }
  void Add(const SstFile& file) { files_.emplace(file.smallest, &file); }

 private:
  static bool Reaches(const SstFile& file, std::string_view key) {
    return file.IsWide() ? key < file.largest : key <= file.largest;
  }

  std::map<std::string_view, const SstFile*> files_;
};

// Arranges files of a database, ascending by smallest key, in as few levels as possible, regardless
// of their age.
absl::Status ArrangeDatabaseFiles(absl::Span<const SstFile> files, absl::Span<const size_t> which,
                                  std::vector<Level>* levels, std::vector<size_t>* placed) {
  // For each level, the largest key so far. The level whose last file ends first is tried first.
  std::multimap<std::string_view, size_t> ends;
  std::vector<const SstFile*> last;
  for (size_t i : which) {
    const SstFile& file = files[i];
    for (const SstFile* other : last) {
      if (other->largest < file.smallest || other->database_id.empty() ||
          file.database_id.empty() || other->database_id == file.database_id) {
        continue;
      }
      return Refuse(absl::StrFormat(
          "'%s' and '%s' overlap, but are from different databases ('%s' and '%s'), whose sequence "
          "numbers cannot be compared",
          other->path, file.path, other->database_id, file.database_id));
    }
    size_t level = levels->size();
    if (!ends.empty() && ends.begin()->first < file.smallest) {
      level = ends.begin()->second;
      ends.erase(ends.begin());
      last[level] = &file;
    } else {
      levels->emplace_back();
      last.push_back(&file);
    }
    (*levels)[level].Add(file);
    (*placed)[i] = level;
    ends.emplace(file.largest, level);
  }
  return absl::OkStatus();
}

// Arranges files of SstFileWriter, in the order given: each one is above all that it overlaps.
void ArrangeWriterFiles(absl::Span<const SstFile> files, absl::Span<const size_t> which,
                        std::vector<Level>* levels, std::vector<size_t>* placed) {
  for (size_t i : which) {
    size_t level = levels->size();
    while (level > 0 && (*levels)[level - 1].Overlapping(files[i]) == nullptr) --level;
    if (level == levels->size()) levels->emplace_back();
    (*levels)[level].Add(files[i]);
    (*placed)[i] = level;
  }
}

absl::Status CheckTogether(absl::Span<const SstFile> files) {
  if (files.size() == 1) return absl::OkStatus();
  const SstFile* named = nullptr;
  const SstFile* of_database = nullptr;
  const SstFile* wide = nullptr;
  for (const SstFile& file : files) {
    if (file.IsWide() && file.origin == SstOrigin::kDatabase) {
      return Refuse(
          absl::StrFormat("'%s' was written by a database and has range deletions, whose ends are "
                          "stored only in that database's MANIFEST",
                          file.path));
    }
    if (file.origin == SstOrigin::kDatabase) of_database = &file;
    if (file.IsWide()) wide = &file;
    if (file.column_family.empty()) continue;
    if (named != nullptr && named->column_family != file.column_family) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "'%s' is from column family '%s', but '%s' is from '%s'; they do not belong together",
          named->path, named->column_family, file.path, file.column_family));
    }
    named = &file;
  }
  if (of_database != nullptr && wide != nullptr) {
    return Refuse(
        absl::StrFormat("'%s', made by SstFileWriter, has range deletions, and '%s' was written by "
                        "a database; it is "
                        "unknown which of them is newer",
                        wide->path, of_database->path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SstLevels> ArrangeSstFiles(absl::Span<const SstFile> files) {
  RETURN_IF_ERROR(CheckTogether(files));
  std::vector<size_t> of_database;
  std::vector<size_t> of_writer;
  for (size_t i = 0; i < files.size(); ++i) {
    (files[i].origin == SstOrigin::kDatabase ? of_database : of_writer).push_back(i);
  }
  std::sort(of_database.begin(), of_database.end(),
            [&](size_t a, size_t b) { return files[a].smallest < files[b].smallest; });
  // From the oldest level up.
  std::vector<Level> database_levels;
  std::vector<Level> writer_levels;
  std::vector<size_t> placed(files.size());
  RETURN_IF_ERROR(ArrangeDatabaseFiles(files, of_database, &database_levels, &placed));
  for (size_t i : of_writer) {
    for (const Level& level : database_levels) {
      const SstFile* other = level.Overlapping(files[i]);
      if (other == nullptr) continue;
      return Refuse(absl::StrFormat(
          "'%s', made by SstFileWriter, and '%s', written by a database, overlap; it is unknown "
          "which of them is newer",
          files[i].path, other->path));
    }
  }
  ArrangeWriterFiles(files, of_writer, &writer_levels, &placed);

  SstLevels levels;
  levels.depth =
      static_cast<int>(std::max<size_t>(1, database_levels.size() + writer_levels.size()));
  levels.overlapping_database_files = database_levels.size() > 1;
  levels.level.resize(files.size());
  for (size_t i : of_database) levels.level[i] = levels.depth - static_cast<int>(placed[i]);
  for (size_t i : of_writer) {
    levels.level[i] = levels.depth - static_cast<int>(database_levels.size() + placed[i]);
  }
  return levels;
}

}  // namespace cairn
