#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "index/files/file_system.h"
#include "index/machine/status_macros.h"

namespace cairn {

// A file system in memory whose machine loses power. Each unsynced name and file then survives or
// not, separately, as `choose` decides. Not thread-safe.
class ForgetfulFileSystem final : public FileSystem {
 public:
  ForgetfulFileSystem() { directories_ = durable_directories_ = {"/"}; }

  // Makes every operation that changes something fail from the k-th on, 1 being the next.
  void FailFrom(int64_t k) { left_ = k - 1; }
  // The number of operations that changed something.
  int64_t changes() const { return changes_; }

  // Calls `choose` for everything for which the disk may have the old or the new state.
  void LosePower(const std::function<bool()>& choose) {
    left_ = INT64_MAX;
    locks_->clear();
    std::map<std::string, std::shared_ptr<File>> files;
    std::set<std::string> names;
    for (const auto& [path, file] : files_) names.insert(path);
    for (const auto& [path, file] : durable_) names.insert(path);
    for (const std::string& path : names) {
      const auto now = files_.find(path), then = durable_.find(path);
      const bool same =
          now != files_.end() && then != durable_.end() && now->second == then->second;
      const auto kept = same || choose() ? now : then;
      if (kept == files_.end() || kept == durable_.end()) continue;
      files[path] = std::make_shared<File>(*kept->second);
    }
    for (auto& [path, file] : files) {
      if (file->bytes != file->durable) {
        if (!choose()) file->bytes = file->durable;
        file->durable = file->bytes;
      }
    }
    std::set<std::string> directories;
    for (const std::string& path : Union(directories_, durable_directories_)) {
      const bool same = directories_.count(path) == durable_directories_.count(path);
      if (same || choose()) {
        if (directories_.count(path) > 0) directories.insert(path);
      } else if (durable_directories_.count(path) > 0) {
        directories.insert(path);
      }
    }
    // A directory is lost with its contents.
    const auto is_lost = [&](const std::string& path) {
      for (std::string up = ParentOf(path); up != "/"; up = ParentOf(up)) {
        if (directories.count(up) == 0) return true;
      }
      return false;
    };
    std::erase_if(directories, [&](const auto& path) { return path != "/" && is_lost(path); });
    std::erase_if(files, [&](const auto& entry) { return is_lost(entry.first); });
    files_ = durable_ = std::move(files);
    directories_ = durable_directories_ = std::move(directories);
  }

  bool Exists(const std::string& path) const {
    return files_.count(path) > 0 || directories_.count(path) > 0;
  }

  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) override {
    if (directories_.count(path) > 0) return absl::FailedPreconditionError(path);
    const auto found = files_.find(path);
    if (found == files_.end()) return absl::NotFoundError(path);
    return std::make_unique<Reader>(found->second->bytes);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                                       IfExists if_exists) override {
    RETURN_IF_ERROR(Change(path));
    std::shared_ptr<File>& file = files_[path];
    if (file != nullptr && if_exists == IfExists::kFail) return absl::AlreadyExistsError(path);
    if (file == nullptr) file = std::make_shared<File>();
    file->bytes.clear();
    return std::make_unique<Writer>(this, file);
  }
  absl::StatusOr<std::unique_ptr<TemporaryFile>> CreateTemporary(const std::string& path) override {
    return absl::UnimplementedError(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    RETURN_IF_ERROR(Change(to));
    const auto found = files_.find(from);
    if (found == files_.end()) return absl::NotFoundError(from);
    if (directories_.count(to) > 0) return absl::FailedPreconditionError(to);
    files_[to] = found->second;
    files_.erase(from);
    return absl::OkStatus();
  }
  absl::Status Remove(const std::string& path) override {
    RETURN_IF_ERROR(Change(path));
    return files_.erase(path) > 0 ? absl::OkStatus() : absl::NotFoundError(path);
  }
  absl::Status LinkOrCopy(const std::string& from, const std::string& to) override {
    return absl::UnimplementedError(absl::StrCat(from, to));
  }
  absl::Status MakeDirectory(const std::string& path) override {
    RETURN_IF_ERROR(Change(path));
    return directories_.insert(path).second ? absl::OkStatus() : absl::AlreadyExistsError(path);
  }
  absl::Status RemoveDirectory(const std::string& path) override {
    RETURN_IF_ERROR(Change(path));
    for (const auto& [file, bytes] : files_) {
      if (ParentOf(file) == path) return absl::FailedPreconditionError(path);
    }
    return directories_.erase(path) > 0 ? absl::OkStatus() : absl::NotFoundError(path);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    if (directories_.count(directory) == 0) return absl::NotFoundError(directory);
    std::vector<std::string> names;
    const auto add = [&](const std::string& path) {
      if (path != "/" && ParentOf(path) == directory) {
        names.push_back(path.substr(path.rfind('/') + 1));
      }
    };
    for (const auto& [path, file] : files_) add(path);
    for (const std::string& path : directories_) add(path);
    return names;
  }
  absl::Status SyncDirectory(const std::string& path) override {
    RETURN_IF_ERROR(Change(path));
    if (directories_.count(path) == 0) return absl::NotFoundError(path);
    const auto is_in = [&](const std::string& name) {
      return name != "/" && ParentOf(name) == path;
    };
    std::erase_if(durable_, [&](const auto& entry) { return is_in(entry.first); });
    std::erase_if(durable_directories_, is_in);
    for (const auto& entry : files_) {
      if (is_in(entry.first)) durable_.insert(entry);
    }
    for (const std::string& directory : directories_) {
      if (is_in(directory)) durable_directories_.insert(directory);
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    if (directories_.count(ParentOf(path)) == 0) return absl::NotFoundError(path);
    if (!locks_->insert(path).second) return absl::UnavailableError(path);
    const bool made = files_.count(path) == 0;
    if (made) {
      RETURN_IF_ERROR(Change(path));
      files_[path] = std::make_shared<File>();
    }
    return std::make_unique<HeldLock>(locks_, path, made);
  }

 private:
  struct File {
    std::string bytes;
    std::string durable;
  };
  class Reader final : public ReadableFile {
   public:
    explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}
    uint64_t size() const override { return bytes_.size(); }
    absl::Status ReadAt(uint64_t offset, void* data, size_t size) const override {
      if (offset + size > bytes_.size()) return absl::DataLossError("it ends before");
      std::memcpy(data, bytes_.data() + offset, size);
      return absl::OkStatus();
    }

   private:
    const std::string bytes_;
  };
  class Writer final : public WritableFile {
   public:
    Writer(ForgetfulFileSystem* files, std::shared_ptr<File> file)
        : files_(files), file_(std::move(file)) {}
    absl::Status WriteAt(uint64_t offset, const void* data, size_t size) override {
      RETURN_IF_ERROR(files_->Change("a file"));
      file_->bytes.resize(std::max<size_t>(file_->bytes.size(), offset + size));
      std::memcpy(file_->bytes.data() + offset, data, size);
      return absl::OkStatus();
    }
    absl::Status Sync() override {
      RETURN_IF_ERROR(files_->Change("a file"));
      file_->durable = file_->bytes;
      return absl::OkStatus();
    }

   private:
    ForgetfulFileSystem* const files_;
    const std::shared_ptr<File> file_;
  };
  class HeldLock final : public FileLock {
   public:
    HeldLock(std::shared_ptr<std::set<std::string>> locks, std::string path, bool made)
        : locks_(std::move(locks)), path_(std::move(path)), made_(made) {}
    ~HeldLock() override { locks_->erase(path_); }
    bool made_file() const override { return made_; }

   private:
    const std::shared_ptr<std::set<std::string>> locks_;
    const std::string path_;
    const bool made_;
  };

  static std::string ParentOf(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == 0 ? "/" : path.substr(0, slash);
  }
  static std::set<std::string> Union(std::set<std::string> a, const std::set<std::string>& b) {
    a.insert(b.begin(), b.end());
    return a;
  }
  absl::Status Change(const std::string& what) {
    if (left_ <= 0) return absl::InternalError(absl::StrCat("no power for ", what));
    --left_;
    ++changes_;
    return absl::OkStatus();
  }

  int64_t left_ = INT64_MAX;
  int64_t changes_ = 0;
  std::map<std::string, std::shared_ptr<File>> files_, durable_;
  std::set<std::string> directories_, durable_directories_;
  std::shared_ptr<std::set<std::string>> locks_ = std::make_shared<std::set<std::string>>();
};

}  // namespace cairn
