#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "index/files/file_system.h"
#include "index/machine/status_macros.h"

namespace cairn {

// A file system that supports only spill files. One operation fails, or one write is damaged. Not
// thread-safe.
class FailingSpills final : public FileSystem {
 public:
  // After `spared` operations.
  FailingSpills(int spared, bool damage) : spared_(spared), damage_(damage) {}

  bool failed() const { return failed_; }

  absl::StatusOr<std::unique_ptr<TemporaryFile>> CreateTemporary(
      const std::string& directory) override {
    if (!damage_) {
      RETURN_IF_ERROR(Next());
    }
    ASSIGN_OR_RETURN(auto file, Posix()->CreateTemporary(directory));
    return std::make_unique<File>(this, std::move(file));
  }

  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForReading(const std::string&) override {
    return No();
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string&, IfExists) override {
    return No();
  }
  absl::Status Rename(const std::string&, const std::string&) override { return No(); }
  absl::Status Remove(const std::string&) override { return No(); }
  absl::Status LinkOrCopy(const std::string&, const std::string&) override { return No(); }
  absl::Status MakeDirectory(const std::string&) override { return No(); }
  absl::Status RemoveDirectory(const std::string&) override { return No(); }
  absl::StatusOr<std::vector<std::string>> List(const std::string&) override { return No(); }
  absl::Status SyncDirectory(const std::string&) override { return No(); }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string&) override { return No(); }

 private:
  class File final : public TemporaryFile {
   public:
    File(FailingSpills* files, std::unique_ptr<TemporaryFile> file)
        : files_(files), file_(std::move(file)) {}
    absl::Status WriteAt(uint64_t offset, const void* data, size_t size) override {
      absl::Status status = files_->Next();
      if (status.ok()) return file_->WriteAt(offset, data, size);
      if (!files_->damage_) return status;
      std::vector<char> bytes(static_cast<const char*>(data),
                              static_cast<const char*>(data) + size);
      bytes[size / 2] = static_cast<char>(bytes[size / 2] ^ 1);
      return file_->WriteAt(offset, bytes.data(), size);
    }
    absl::Status ReadAt(uint64_t offset, void* data, size_t size) const override {
      if (!files_->damage_) {
        RETURN_IF_ERROR(files_->Next());
      }
      return file_->ReadAt(offset, data, size);
    }
    absl::Status Sync() override { return file_->Sync(); }

   private:
    FailingSpills* files_;
    std::unique_ptr<TemporaryFile> file_;
  };

  static absl::Status No() { return absl::UnimplementedError("for spill files alone"); }
  absl::Status Next() {
    if (spared_-- != 0) return absl::OkStatus();
    failed_ = true;
    return absl::ResourceExhaustedError("no space left");
  }

  int spared_;
  const bool damage_;
  bool failed_ = false;
};

}  // namespace cairn
