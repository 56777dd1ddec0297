#include "engine/log/table_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "engine/util/status.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"
#include "rocksdb/unique_id.h"

namespace cairn {
namespace {

// Maximum bytes of a key after the prefix that all keys share, and of all keys together.
constexpr size_t kMaxKeyBytes = 24;
constexpr size_t kMaxBytesOfKeys = size_t{4} << 20;
// If there are more files, none are remembered.
constexpr size_t kMaxFiles = 100'000;
constexpr int kFields = 8;
// A process keeps the list of at most this many files while it has a database open: some MB.
constexpr size_t kMaxFilesOfFamilies = 10'000;

// Writes bytes that are not printable, '%' and ':' as %hh.
std::string EscapeKey(std::string_view key) {
  std::string text;
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte <= '~' && c != '%' && c != ':') {
      text += c;
    } else {
      absl::StrAppendFormat(&text, "%%%02x", byte);
    }
  }
  return text;
}

std::string UnescapeKey(std::string_view text) {
  std::string key;
  for (size_t i = 0; i < text.size(); ++i) {
    char byte = text[i];
    if (byte == '%' && ReadHexEscape(text.substr(i + 1), &byte)) i += 2;
    key += byte;
  }
  return key;
}

// Returns the first key after all keys that begin with `prefix`; empty if there is none.
std::string Behind(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (!prefix.empty()) ++prefix.back();
  return prefix;
}

// Shortens the files' keys to a common maximum length, which may widen their ranges.
void ShortenKeys(std::vector<TableFile>* files) {
  if (files->empty()) return;
  std::string_view low = files->front().smallest, high = files->front().largest;
  for (const TableFile& file : *files) {
    low = std::min<std::string_view>(low, file.smallest);
    high = std::max<std::string_view>(high, file.largest);
  }
  const size_t same = static_cast<size_t>(
      std::mismatch(low.begin(), low.end(), high.begin(), high.end()).first - low.begin());
  const size_t share = kMaxBytesOfKeys / (2 * files->size());
  const size_t bytes = std::min(same + kMaxKeyBytes, std::max(share, size_t{1}));
  for (TableFile& file : *files) {
    if (file.smallest.size() > bytes) file.smallest.resize(bytes);
    if (file.largest.size() > bytes) {
      std::string behind = Behind(file.largest.substr(0, bytes));
      if (!behind.empty()) file.largest = std::move(behind);
    }
  }
}

bool IsSame(const TableFile& a, const TableFile& b) {
  return a.size == b.size && a.largest_sequence == b.largest_sequence &&
         (a.created == b.created || a.created == 0 || b.created == 0);
}

// Returns the files in `files` that are not in `others`.
std::vector<const TableFile*> Without(const TableFiles& files, const TableFiles& others) {
  std::vector<const TableFile*> found;
  for (const TableFile& file : files.files) {
    if (others.Find(file.number) == nullptr) found.push_back(&file);
  }
  return found;
}

// Finds the files that contain the rows of files that are gone.
class Successors {
 public:
  explicit Successors(std::vector<const TableFile*> files) : files_(std::move(files)) {
    std::sort(files_.begin(), files_.end(),
              [](const TableFile* a, const TableFile* b) { return a->smallest < b->smallest; });
    for (const TableFile* file : files_) {
      largest_.push_back(largest_.empty()
                             ? file->largest
                             : std::max<std::string_view>(largest_.back(), file->largest));
    }
  }

  bool AnyOf(const TableFile& gone) const {
    const auto behind = std::upper_bound(
        files_.begin(), files_.end(), gone.largest,
        [](const std::string& key, const TableFile* file) { return key < file->smallest; });
    for (auto i = static_cast<size_t>(behind - files_.begin()); i-- > 0;) {
      if (largest_[i] < gone.smallest) return false;
      const TableFile& file = *files_[i];
      if (file.number > gone.number && file.largest >= gone.smallest && IsAsOld(file, gone)) {
        return true;
      }
    }
    return false;
  }

 private:
  static bool IsAsOld(const TableFile& file, const TableFile& gone) {
    const bool are_known = file.ancestry != 0 && gone.ancestry != 0;
    if (are_known && file.ancestry != gone.ancestry) return file.ancestry < gone.ancestry;
    // If times are unknown, as after RepairDB, or if rows were written, flushed and followed by
    // others within a second, sequence numbers decide.
    const bool was_brief = gone.created <= gone.ancestry + 1;
    return (are_known && !was_brief) || file.smallest_sequence <= gone.largest_sequence;
  }

  std::vector<const TableFile*> files_;    // by smallest key
  std::vector<std::string_view> largest_;  // of all files up to this one
};

}  // namespace

uint64_t EntriesInMemory(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family) {
  uint64_t all = 0;
  for (const std::string& property : {rocksdb::DB::Properties::kNumEntriesActiveMemTable,
                                      rocksdb::DB::Properties::kNumEntriesImmMemTables}) {
    uint64_t entries = 0;
    if (!db->GetIntProperty(column_family, property, &entries)) return UINT64_MAX;
    all += entries;
  }
  return all;
}

std::vector<rocksdb::LiveFileMetaData> LiveFiles(rocksdb::DB* db) {
  std::vector<rocksdb::LiveFileMetaData> files;
  db->GetLiveFilesMetaData(&files);
  return files;
}

const TableFile* TableFiles::Find(uint64_t number) const {
  const auto found =
      std::lower_bound(files.begin(), files.end(), number,
                       [](const TableFile& file, uint64_t n) { return file.number < n; });
  return found != files.end() && found->number == number ? &*found : nullptr;
}

std::string TableFiles::ToString() const {
  std::string text = absl::StrFormat("complete=%d newest=%s", complete ? 1 : 0, newest);
  for (const TableFile& file : files) {
    absl::StrAppendFormat(&text, " %d:%d:%d:%d:%d:%d:%s:%s", file.number, file.size,
                          file.largest_sequence, file.created, file.ancestry, file.seen ? 1 : 0,
                          EscapeKey(file.smallest), EscapeKey(file.largest));
  }
  return text;
}

absl::StatusOr<TableFiles> TableFiles::Parse(std::string_view text) {
  TableFiles tables;
  const std::vector<std::string> words =
      absl::StrSplit(absl::string_view(text.data(), text.size()), ' ');
  bool good = words.size() >= 2 && words[1].starts_with("newest=");
  if (good) {
    tables.complete = words[0] == "complete=1";
    tables.newest = words[1].substr(words[1].find('=') + 1);
  }
  for (size_t i = 2; i < words.size() && good; ++i) {
    const std::vector<std::string> fields = absl::StrSplit(words[i], ':');
    TableFile file;
    good = fields.size() == kFields && absl::SimpleAtoi(fields[0], &file.number) &&
           absl::SimpleAtoi(fields[1], &file.size) &&
           absl::SimpleAtoi(fields[2], &file.largest_sequence) &&
           absl::SimpleAtoi(fields[3], &file.created) &&
           absl::SimpleAtoi(fields[4], &file.ancestry);
    if (!good) break;
    file.seen = fields[5] == "1";
    file.smallest = UnescapeKey(fields[6]);
    file.largest = UnescapeKey(fields[7]);
    good = tables.files.empty() || tables.files.back().number < file.number;
    tables.files.push_back(std::move(file));
  }
  if (!good || tables.ToString() != text) {
    return absl::DataLossError(
        absl::StrFormat("malformed list of table files: %s", Quoted(text.substr(0, 100))));
  }
  return tables;
}

std::shared_ptr<const TableFilesOfFamilies> TableFilesNow(
    rocksdb::DB* db, absl::Span<rocksdb::ColumnFamilyHandle* const> column_families) {
  auto files = std::make_shared<TableFilesOfFamilies>();
  size_t count = 0;
  const auto add = [&](rocksdb::ColumnFamilyHandle* family) {
    rocksdb::ColumnFamilyMetaData metadata;
    db->GetColumnFamilyMetaData(family, &metadata);
    count += metadata.file_count;
    files->emplace(family->GetID(), std::move(metadata));
  };
  add(db->DefaultColumnFamily());
  for (rocksdb::ColumnFamilyHandle* family : column_families) add(family);
  return count > kMaxFilesOfFamilies ? nullptr : files;
}

rocksdb::ColumnFamilyMetaData FilesOf(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                                      const TableFilesOfFamilies* files) {
  if (files != nullptr) {
    if (const auto found = files->find(column_family->GetID()); found != files->end()) {
      return found->second;
    }
  }
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(column_family, &metadata);
  return metadata;
}

TableFiles ListTableFiles(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family) {
  return ListTableFiles(FilesOf(db, column_family, nullptr), KnownKeyOrderOf(column_family));
}

TableFiles ListTableFiles(const rocksdb::ColumnFamilyMetaData& metadata, KeyOrder order) {
  TableFiles tables;
  tables.files.reserve(metadata.file_count);
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    for (const rocksdb::SstFileMetaData& file : level.files) {
      tables.files.push_back({file.file_number, file.size, file.largest_seqno,
                              file.file_creation_time, file.oldest_ancester_time, false,
                              file.smallestkey, file.largestkey, file.smallest_seqno});
      if (order == KeyOrder::kReverseBytewise) {
        std::swap(tables.files.back().smallest, tables.files.back().largest);
      }
    }
  }
  std::sort(tables.files.begin(), tables.files.end(),
            [](const TableFile& a, const TableFile& b) { return a.number < b.number; });
  return tables;
}

absl::Status TableFilesRecorder::Record(std::shared_ptr<const TableFiles>* tables) {
  // In this order: a memtable that is flushed in between is in the files that are then listed.
  const bool complete = EntriesInMemory(db_, column_family_) == 0;
  uint64_t version = 0;
  db_->GetIntProperty(column_family_, rocksdb::DB::Properties::kCurrentSuperVersionNumber,
                      &version);
  const bool same = last_ != nullptr && version != 0 && version == at_version_ &&
                    (*tables == before_ || *tables == last_);
  if (!same || last_->complete != complete) {
    auto next = std::make_shared<TableFiles>(same ? *last_ : ListTableFiles(db_, column_family_));
    if (!same) {
      ShortenKeys(&next->files);
      for (TableFile& file : next->files) {
        const TableFile* const known = *tables == nullptr ? nullptr : (*tables)->Find(file.number);
        file.seen = known != nullptr && known->seen;
      }
    }
    next->complete = complete;
    next->newest.clear();
    if (complete && !next->files.empty()) {
      const uint64_t newest = next->files.back().number;
      if (last_ != nullptr && last_->newest.starts_with(absl::StrFormat("%d:", newest))) {
        next->newest = last_->newest;
      } else {
        ASSIGN_OR_RETURN(next->newest, OwnFileId(db_, column_family_, newest));
      }
      next->complete = !next->newest.empty();
    }
    at_version_ = version;
    before_ = *tables;
    last_ = next->files.size() > kMaxFiles ? nullptr : std::move(next);
  }
  *tables = last_;
  return absl::OkStatus();
}

void UniteRanges(std::vector<ChangedRange>* ranges) {
  std::sort(ranges->begin(), ranges->end(),
            [](const ChangedRange& a, const ChangedRange& b) { return a.lower < b.lower; });
  size_t kept = 0;
  for (size_t i = 1; i < ranges->size(); ++i) {
    ChangedRange& last = (*ranges)[kept];
    ChangedRange& next = (*ranges)[i];
    if (next.lower < last.upper) {
      last.upper = std::max(last.upper, next.upper);
    } else if (++kept != i) {
      (*ranges)[kept] = std::move(next);
    }
  }
  if (!ranges->empty()) ranges->resize(kept + 1);
}

absl::StatusOr<std::vector<ChangedRange>> FindChangedRanges(const TableFiles& then,
                                                            const TableFiles& now,
                                                            ChangedFiles which) {
  for (const TableFile& file : then.files) {
    const TableFile* const live = now.Find(file.number);
    if (live == nullptr || IsSame(file, *live)) continue;
    return absl::FailedPreconditionError(
        absl::StrFormat("its table file %06d.sst is a different one", file.number));
  }
  const std::vector<const TableFile*> gone = Without(then, now);
  const std::vector<const TableFile*> come = Without(now, then);
  std::vector<ChangedRange> ranges;
  const auto add = [&](const TableFile& file) {
    ranges.push_back({file.smallest, KeyAfter(file.largest), file.number});
  };
  const Successors successors(come);
  for (const TableFile* file : gone) {
    if (which != ChangedFiles::kLost || !successors.AnyOf(*file)) add(*file);
  }
  for (const TableFile* file : come) {
    if (which == ChangedFiles::kDifferent) add(*file);
  }
  UniteRanges(&ranges);
  return ranges;
}

absl::StatusOr<std::string> OwnFileId(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                                      uint64_t number) {
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(column_family, &metadata);
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    for (const rocksdb::SstFileMetaData& file : level.files) {
      if (file.file_number != number) continue;
      // RocksDB includes the end of a range here.
      const std::string behind = KnownKeyOrderOf(column_family) == KeyOrder::kBytewise
                                     ? KeyAfter(file.largestkey)
                                     : file.largestkey;
      const rocksdb::Range range(file.smallestkey, behind);
      rocksdb::TablePropertiesCollection properties;
      std::string id;
      rocksdb::Status s = db->GetPropertiesOfTablesInRange(column_family, &range, 1, &properties);
      for (const auto& [path, table] : properties) {
        if (!absl::EndsWith(path, file.relative_filename)) continue;
        if (s.ok()) s = rocksdb::GetUniqueIdFromTableProperties(*table, &id);
      }
      if (s.IsNotSupported()) return std::string();  // from a RocksDB that gave files no ids
      RETURN_IF_ERROR(FromRocksDb(s, absl::StrFormat("cannot identify file '%s' of database '%s'",
                                                     file.relative_filename, db->GetName())));
      return id.empty() ? id : absl::StrFormat("%d:%s", number, rocksdb::UniqueIdToHumanString(id));
    }
  }
  return std::string();
}

}  // namespace cairn
