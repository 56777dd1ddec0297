#include "engine/log/older_logs.h"

#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "engine/log/wal_reader.h"
#include "engine/source/manifest_families.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// The evidence that a log file gives about an earlier position in it.
enum class OlderLogFile : uint8_t { kGone, kSame, kDiffers };

absl::StatusOr<OlderLogFile> CompareLogFile(rocksdb::FileSystem* files, const std::string& path,
                                            const LogPosition& position) {
  const absl::StatusOr<std::unique_ptr<WalReader>> opened =
      WalReader::Open(files, path, position.log_number);
  if (absl::IsNotFound(opened.status())) return OlderLogFile::kGone;
  RETURN_IF_ERROR(opened.status());
  WalReader& reader = **opened;
  while (reader.end().offset < position.place.offset && reader.Next()) continue;
  if (reader.end() == position.place) return OlderLogFile::kSame;
  if (!reader.status().ok() && !absl::IsDataLoss(reader.status())) return reader.status();
  // RocksDB renames a log file before it uses it again (recycle_log_file_num).
  const bool exists = files->FileExists(path, rocksdb::IOOptions(), nullptr).ok();
  return exists ? OlderLogFile::kDiffers : OlderLogFile::kGone;
}

}  // namespace

absl::StatusOr<std::vector<LogPosition>> OlderLogs::Before(uint64_t log_number,
                                                           absl::Span<const LogPosition> known) {
  uint64_t first = 0;
  db_->GetIntProperty(rocksdb::DB::Properties::kMinLogNumberToKeep, &first);
  ASSIGN_OR_RETURN(const std::vector<WalFile> files, ListWalFiles(db_));
  const MutexLock lock(&mutex_);
  for (const LogPosition& log : known) ends_.emplace(log.log_number, log.place);
  ends_.erase(ends_.begin(), ends_.lower_bound(first));
  for (const WalFile& file : files) {
    if (file.number < first || file.path == file.archived_path) continue;
    if (file.number >= log_number) break;
    if (ends_.contains(file.number)) continue;
    const absl::StatusOr<std::unique_ptr<WalReader>> reader = OpenWalFile(db_, file);
    if (absl::IsNotFound(reader.status())) continue;  // its rows have been flushed since
    RETURN_IF_ERROR(reader.status());
    // The position after the last record does not depend on what follows: unused space, or a part
    // of a record whose write failed.
    WalPlace end;
    while ((*reader)->Next()) end = (*reader)->end();
    const absl::Status& read = (*reader)->status();
    if (!read.ok() && !absl::IsDataLoss(read)) return read;
    ends_.emplace(file.number, end);
  }
  std::vector<LogPosition> found;
  for (const auto& [number, end] : ends_) {
    if (number < log_number && end.offset > 0) found.push_back({number, end});
  }
  return found;
}

std::string FormatOlderLogs(absl::Span<const LogPosition> logs) {
  std::string text;
  for (const LogPosition& log : logs) {
    absl::StrAppendFormat(&text, "%s%d:%d:%016x", text.empty() ? "" : " ", log.log_number,
                          log.place.offset, log.place.checksum);
  }
  return text;
}

absl::StatusOr<std::vector<LogPosition>> ParseOlderLogs(std::string_view text) {
  std::vector<LogPosition> logs;
  if (text.empty()) return logs;
  bool good = true;
  for (const absl::string_view word :
       absl::StrSplit(absl::string_view(text.data(), text.size()), ' ')) {
    const std::vector<std::string> fields = absl::StrSplit(word, ':');
    LogPosition log;
    good = good && fields.size() == 3 && absl::SimpleAtoi(fields[0], &log.log_number) &&
           absl::SimpleAtoi(fields[1], &log.place.offset) &&
           absl::SimpleHexAtoi(fields[2], &log.place.checksum) &&
           (logs.empty() || logs.back().log_number < log.log_number);
    logs.push_back(log);
  }
  if (good && FormatOlderLogs(logs) == text) return logs;
  return absl::DataLossError(
      absl::StrFormat("malformed list of log files: %s", Quoted(text.substr(0, 100))));
}

absl::Status OlderLogCheck::HasAll(SequenceNumber sequence, absl::Span<const LogPosition> logs) {
  for (const LogPosition& log : logs) {
    const auto known = same_.find(log.log_number);
    if (known != same_.end() && known->second == log.place) continue;
    const std::string name = absl::StrFormat("/%06d.log", log.log_number);
    const auto lost = [&](const char* how) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "database '%s' does not have all rows of the state %d that the index has: its log file "
          "'%s' %s, which had rows that were in no table file; rebuild the index",
          database_, sequence, name.substr(1), how));
    };
    ASSIGN_OR_RETURN(OlderLogFile file, CompareLogFile(files_, log_directory_ + name, log));
    if (file == OlderLogFile::kGone) {
      // RocksDB moves files to the archive, and recovers no rows from there. The MANIFEST is read
      // after the file was found to be gone, because RocksDB writes to it before it moves or
      // removes a file.
      ASSIGN_OR_RETURN(file, CompareLogFile(files_, log_directory_ + "/archive" + name, log));
      if (log.log_number >= needed_from_) {
        ManifestFamilies manifest(files_, database_);
        RETURN_IF_ERROR(manifest.Read().status());
        needed_from_ = manifest.min_log_to_keep();
      }
      if (log.log_number >= needed_from_) return lost("is missing");
    }
    if (file == OlderLogFile::kDiffers) return lost("is damaged");
    same_[log.log_number] = log.place;
  }
  return absl::OkStatus();
}

}  // namespace cairn
