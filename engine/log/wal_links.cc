#include "engine/log/wal_links.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/log/wal_files.h"
#include "index/machine/guard.h"
#include "rocksdb/file_system.h"

namespace cairn {
namespace {

constexpr char kPrefix[] = "cairn-log.";

std::vector<std::string> Children(rocksdb::DB* db, const std::string& directory) {
  std::vector<std::string> names;
  if (!db->GetFileSystem()->GetChildren(directory, rocksdb::IOOptions(), &names, nullptr).ok()) {
    names.clear();
  }
  return names;
}

void RemoveLinksIn(rocksdb::DB* db, const std::string& directory, uint64_t before) {
  rocksdb::FileSystem* const files = db->GetFileSystem();
  bool empty = true;
  for (const std::string& name : Children(db, directory)) {
    const std::optional<uint64_t> number = WalNumber(name);
    if (!number.has_value()) continue;
    if (*number < before) {
      files->DeleteFile(absl::StrCat(directory, "/", name), rocksdb::IOOptions(), nullptr)
          .PermitUncheckedError();
    } else {
      empty = false;
    }
  }
  if (empty) files->DeleteDir(directory, rocksdb::IOOptions(), nullptr).PermitUncheckedError();
}

std::string SessionOf(rocksdb::DB* db) {
  std::string session;
  return db->GetDbSessionId(session).ok() ? session : std::string();
}

template <typename Function>
void Try(const Function& function) {
  Guarded("linking the log", [&] {
    function();
    return absl::OkStatus();
  }).IgnoreError();
}

}  // namespace

std::string WalLinkDirectory(const std::string& log_directory, const std::string& session) {
  return absl::StrCat(log_directory, "/", kPrefix, session);
}

void LinkWalFiles(rocksdb::DB* db, uint64_t from) {
  Try([&] {
    const std::string log = LogDirectory(db);
    const std::string links = WalLinkDirectory(log, SessionOf(db));
    rocksdb::FileSystem* const files = db->GetFileSystem();
    bool made = false;
    for (const std::string& name : Children(db, log)) {
      const std::optional<uint64_t> number = WalNumber(name);
      if (!number.has_value() || *number < from) continue;
      if (!made) {
        files->CreateDirIfMissing(links, rocksdb::IOOptions(), nullptr).PermitUncheckedError();
        made = true;
      }
      files
          ->LinkFile(absl::StrCat(log, "/", name), absl::StrCat(links, "/", name),
                     rocksdb::IOOptions(), nullptr)
          .PermitUncheckedError();
    }
  });
}

void RemoveWalLinks(rocksdb::DB* db, uint64_t before) {
  Try([&] { RemoveLinksIn(db, WalLinkDirectory(LogDirectory(db), SessionOf(db)), before); });
}

bool HasWalLinks(rocksdb::DB* db) {
  const std::vector<std::string> names = Children(db, LogDirectory(db));
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.starts_with(kPrefix); });
}

void RemoveAllWalLinks(rocksdb::DB* db) {
  Try([&] {
    const std::string log = LogDirectory(db);
    for (const std::string& name : Children(db, log)) {
      if (name.starts_with(kPrefix)) RemoveLinksIn(db, absl::StrCat(log, "/", name), UINT64_MAX);
    }
  });
}

}  // namespace cairn
