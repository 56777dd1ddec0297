#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/file_system.h"
#include "test/engine/faults/opened_files.h"
#include "test/engine/faults/simulated_disk.h"

namespace cairn {

// A file system in memory for a database and its indexes, on a machine that stops at an operation
// whose number the test sets. Its users continue without noticing, but later operations are lost.
// After everything is closed, Restart restores the contents at that instant, or those that survive
// a power loss. Thread-safe, except for Restart.
class CrashFileSystem final : public rocksdb::FileSystem {
 public:
  using IOStatus = rocksdb::IOStatus;
  using IOOptions = rocksdb::IOOptions;
  using FileOptions = rocksdb::FileOptions;
  using Debug = rocksdb::IODebugContext;
  using Slice = rocksdb::Slice;
  enum class End { kKilled, kPowerLost };

  explicit CrashFileSystem(std::string database) : database_(std::move(database)) {}
  const char* Name() const override { return "CrashFileSystem"; }

  // Stops at the k-th operation from now on that changes something, 1 being the next; 0 means
  // never.
  void StopAfter(uint64_t k) {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_at_ = k == 0 ? 0 : changes_ + k;
  }
  bool stopped() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stopped_;
  }
  // The number of operations so far that changed something.
  uint64_t changes() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return changes_;
  }
  // Makes the k-th sync from now on of a file in `directory`, or of the directory itself, fail. The
  // data that it should have written is lost, and the next sync succeeds without writing it.
  void FailSync(uint64_t k, std::string directory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    fail_sync_ = k;
    fail_in_ = std::move(directory);
  }
  // Makes all operations that need space fail, or ends that.
  void SetFull(bool full) {
    const std::lock_guard<std::mutex> lock(mutex_);
    full_ = full;
  }

  void Restart(End end, std::mt19937_64* random) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) disk_ = std::exchange(image_, SimulatedDisk());
    if (end == End::kPowerLost) disk_.LosePower(database_, random);
    ++boots_;
    stopped_ = false;
    stop_at_ = 0;
    fail_sync_ = 0;
    locks_.clear();
  }
  void SyncAll() {
    const std::lock_guard<std::mutex> lock(mutex_);
    disk_.SyncAll();
  }

  // Overrides of rocksdb::FileSystem.
  IOStatus NewSequentialFile(const std::string& path, const FileOptions&,
                             std::unique_ptr<rocksdb::FSSequentialFile>* file, Debug*) override {
    return OpenAs<SequentialFile>(path, file);
  }
  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions&,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                               Debug*) override {
    return OpenAs<RandomAccessFile>(path, file);
  }
  IOStatus NewRandomRWFile(const std::string& path, const FileOptions&,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* file, Debug*) override {
    return OpenAs<RandomRWFile>(path, file);
  }
  IOStatus NewWritableFile(const std::string& path, const FileOptions&,
                           std::unique_ptr<rocksdb::FSWritableFile>* file, Debug*) override {
    return Create(Normal(path), nullptr, file);
  }
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions&,
                              std::unique_ptr<rocksdb::FSWritableFile>* file, Debug*) override {
    SimulatedDisk::NodePtr node;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      node = disk_.Find(Normal(path));
    }
    return Create(Normal(path), std::move(node), file);
  }
  IOStatus NewDirectory(const std::string& path, const IOOptions&,
                        std::unique_ptr<rocksdb::FSDirectory>* directory, Debug*) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (IOStatus s = Look(boots_); !s.ok()) return s;
    const SimulatedDisk::NodePtr node = disk_.Find(Normal(path));
    if (node == nullptr) return IOStatus::PathNotFound(path);
    if (!node->is_directory) return IOStatus::IOError(path, "is no directory");
    *directory = std::make_unique<Directory>(this, Normal(path), boots_);
    return IOStatus::OK();
  }

  IOStatus FileExists(const std::string& path, const IOOptions&, Debug*) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (IOStatus s = Look(boots_); !s.ok()) return s;
    return disk_.Find(Normal(path)) == nullptr ? IOStatus::NotFound(path) : IOStatus::OK();
  }
  IOStatus IsDirectory(const std::string& path, const IOOptions&, bool* is, Debug*) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const SimulatedDisk::NodePtr node = disk_.Find(Normal(path));
    *is = node != nullptr && node->is_directory;
    return Look(boots_);
  }
  IOStatus GetChildren(const std::string& path, const IOOptions&, std::vector<std::string>* names,
                       Debug*) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (IOStatus s = Look(boots_); !s.ok()) return s;
    const SimulatedDisk::NodePtr node = disk_.Find(Normal(path));
    if (node == nullptr || !node->is_directory) return IOStatus::NotFound(path);
    *names = disk_.Children(Normal(path));
    return IOStatus::OK();
  }
  IOStatus GetFileSize(const std::string& path, const IOOptions&, uint64_t* size, Debug*) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (IOStatus s = Look(boots_); !s.ok()) return s;
    const SimulatedDisk::NodePtr node = disk_.Find(Normal(path));
    if (node == nullptr) return IOStatus::PathNotFound(path);
    *size = node->bytes.size();
    return IOStatus::OK();
  }
  IOStatus GetFileModificationTime(const std::string&, const IOOptions&, uint64_t* time,
                                   Debug*) override {
    *time = static_cast<uint64_t>(std::time(nullptr));
    return IOStatus::OK();
  }

  IOStatus DeleteFile(const std::string& path, const IOOptions&, Debug*) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (disk_.Find(Normal(path)) == nullptr) return IOStatus::PathNotFound(path);
    return Bind({{Normal(path), nullptr}});
  }
  IOStatus CreateDir(const std::string& path, const IOOptions&, Debug*) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (disk_.Find(Normal(path)) != nullptr) return IOStatus::IOError(path, "exists");
    return Bind({{Normal(path), SimulatedDisk::MakeNode(/*is_directory=*/true)}});
  }
  IOStatus CreateDirIfMissing(const std::string& path, const IOOptions&, Debug*) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (disk_.Find(Normal(path)) != nullptr) return Look(boots_);
    return Bind({{Normal(path), SimulatedDisk::MakeNode(/*is_directory=*/true)}});
  }
  IOStatus DeleteDir(const std::string& path, const IOOptions&, Debug*) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (disk_.Find(Normal(path)) == nullptr) return IOStatus::PathNotFound(path);
    if (!disk_.Children(Normal(path)).empty()) return IOStatus::IOError(path, "is not empty");
    return Bind({{Normal(path), nullptr}});
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions&,
                      Debug*) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const SimulatedDisk::NodePtr node = disk_.Find(Normal(from));
    if (node == nullptr) return IOStatus::PathNotFound(from);
    return Bind({{Normal(from), nullptr}, {Normal(to), node}});
  }
  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions&,
                    Debug*) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const SimulatedDisk::NodePtr node = disk_.Find(Normal(from));
    if (node == nullptr) return IOStatus::PathNotFound(from);
    if (disk_.Find(Normal(to)) != nullptr) return IOStatus::IOError(to, "exists");
    return Bind({{Normal(to), node}});
  }
  IOStatus LockFile(const std::string& path, const IOOptions&, rocksdb::FileLock** file_lock,
                    Debug*) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::string normal = Normal(path);
    if (disk_.Find(normal) == nullptr) {
      IOStatus s = Bind({{normal, SimulatedDisk::MakeNode(/*is_directory=*/false)}});
      if (!s.ok()) return s;
    }
    if (IOStatus s = Look(boots_); !s.ok()) return s;
    if (!locks_.insert(normal).second) return IOStatus::IOError(path, "is locked");
    *file_lock = new Lock(normal, boots_);
    return IOStatus::OK();
  }
  IOStatus UnlockFile(rocksdb::FileLock* file_lock, const IOOptions&, Debug*) override {
    const std::unique_ptr<Lock> held(static_cast<Lock*>(file_lock));
    const std::lock_guard<std::mutex> lock(mutex_);
    if (held->boot == boots_) locks_.erase(held->path);
    return IOStatus::OK();
  }
  IOStatus GetTestDirectory(const IOOptions&, std::string* path, Debug*) override {
    *path = "/test";
    return IOStatus::OK();
  }
  IOStatus GetAbsolutePath(const std::string& path, const IOOptions&, std::string* absolute,
                           Debug*) override {
    *absolute = Normal(path);
    return IOStatus::OK();
  }

 private:
  struct Lock : rocksdb::FileLock {
    Lock(std::string p, uint64_t b) : path(std::move(p)), boot(b) {}
    const std::string path;
    const uint64_t boot;
  };

  // An open file, which does not outlive the machine on which it was opened.
  struct Open {
    CrashFileSystem* files;
    std::string path;
    SimulatedDisk::NodePtr node;
    uint64_t boot;

    IOStatus Read(uint64_t offset, size_t n, Slice* result, char* scratch) const {
      const std::lock_guard<std::mutex> lock(files->mutex_);
      if (IOStatus s = files->Look(boot); !s.ok()) return s;
      const std::string& bytes = node->bytes;
      const size_t count =
          offset >= bytes.size() ? 0 : std::min<uint64_t>(n, bytes.size() - offset);
      if (count > 0) bytes.copy(scratch, count, offset);
      *result = Slice(scratch, count);
      return IOStatus::OK();
    }
    // A write at which the machine stops has reached this point.
    IOStatus Write(uint64_t offset, const Slice& bytes) const {
      const std::lock_guard<std::mutex> lock(files->mutex_);
      const size_t half = bytes.size() / 2;
      SimulatedDisk::Write(node.get(), offset, {bytes.data(), half});
      if (IOStatus s = files->Change(boot); !s.ok()) return s;
      if (files->full_) return IOStatus::NoSpace(path);
      SimulatedDisk::Write(node.get(), offset + half, {bytes.data() + half, bytes.size() - half});
      return IOStatus::OK();
    }
    IOStatus Truncate(uint64_t size) const {
      const std::lock_guard<std::mutex> lock(files->mutex_);
      IOStatus s = files->Change(boot);
      if (s.ok()) SimulatedDisk::Truncate(node.get(), size);
      return s;
    }
    IOStatus Sync() const {
      const std::lock_guard<std::mutex> lock(files->mutex_);
      if (IOStatus s = files->Change(boot); !s.ok()) return s;
      if (files->SyncFails(path)) {
        SimulatedDisk::Forget(node.get());
        return IOStatus::IOError(path, "made to fail to sync");
      }
      SimulatedDisk::Sync(node.get());
      return IOStatus::OK();
    }
    uint64_t size() const {
      const std::lock_guard<std::mutex> lock(files->mutex_);
      return node->bytes.size();
    }
  };

  using SequentialFile = OpenedSequentialFile<Open>;
  using RandomAccessFile = OpenedRandomAccessFile<Open>;
  using RandomRWFile = OpenedRandomRWFile<Open>;
  using WritableFile = OpenedWritableFile<Open>;

  class Directory final : public rocksdb::FSDirectory {
   public:
    Directory(CrashFileSystem* files, std::string path, uint64_t boot)
        : files_(files), path_(std::move(path)), boot_(boot) {}
    IOStatus Fsync(const IOOptions&, Debug*) override {
      const std::lock_guard<std::mutex> lock(files_->mutex_);
      if (IOStatus s = files_->Change(boot_); !s.ok()) return s;
      // The next sync of the directory makes the names durable that this one does not.
      if (files_->SyncFails(path_)) return IOStatus::IOError(path_, "made to fail to sync");
      files_->disk_.SyncDirectory(path_);
      return IOStatus::OK();
    }
    IOStatus Close(const IOOptions&, Debug*) override { return IOStatus::OK(); }

   private:
    CrashFileSystem* const files_;
    const std::string path_;
    const uint64_t boot_;
  };

  static std::string Normal(const std::string& path) {
    std::string normal;
    for (const char c : path) {
      if (c != '/' || normal.empty() || normal.back() != '/') normal += c;
    }
    while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
    return normal;
  }

  // mutex_ is held during each of these.
  IOStatus Look(uint64_t boot) const {
    return boot == boots_ ? IOStatus::OK() : IOStatus::IOError("the machine was restarted");
  }
  IOStatus Change(uint64_t boot) {
    if (boot == boots_ && ++changes_ == stop_at_) {
      stopped_ = true;
      image_ = disk_.Copy();
    }
    return Look(boot);
  }
  IOStatus Bind(std::vector<SimulatedDisk::Binding> bindings) {
    for (const auto& [path, node] : bindings) {
      const SimulatedDisk::NodePtr parent = disk_.Find(SimulatedDisk::ParentOf(path));
      if (parent == nullptr) return IOStatus::PathNotFound(path);
      if (!parent->is_directory) return IOStatus::IOError(path, "has a parent that is a file");
    }
    if (IOStatus s = Change(boots_); !s.ok()) return s;
    if (full_ && bindings.back().second != nullptr && bindings.size() == 1) {
      return IOStatus::NoSpace(bindings.back().first);
    }
    disk_.Bind(std::move(bindings));
    return IOStatus::OK();
  }
  bool SyncFails(const std::string& path) {
    const bool is_in = path.compare(0, fail_in_.size(), fail_in_) == 0;
    return fail_sync_ > 0 && is_in && --fail_sync_ == 0;
  }

  template <typename File, typename Interface>
  IOStatus OpenAs(const std::string& path, std::unique_ptr<Interface>* file) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (IOStatus s = Look(boots_); !s.ok()) return s;
    SimulatedDisk::NodePtr node = disk_.Find(Normal(path));
    if (node == nullptr) return IOStatus::PathNotFound(path);
    if (node->is_directory) return IOStatus::IOError(path, "is a directory");
    *file = std::make_unique<File>(Open{this, Normal(path), std::move(node), boots_});
    return IOStatus::OK();
  }
  // With `node`, or an empty one.
  IOStatus Create(const std::string& path, SimulatedDisk::NodePtr node,
                  std::unique_ptr<rocksdb::FSWritableFile>* file) {
    Open open{this, path, std::move(node), 0};
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      open.boot = boots_;
      if (IOStatus s = Look(boots_); !s.ok()) return s;
      const SimulatedDisk::NodePtr old = disk_.Find(path);
      if (old != nullptr && old->is_directory) return IOStatus::IOError(path, "is a directory");
      if (open.node == nullptr && old != nullptr) {
        // Truncated, like open(O_TRUNC).
        if (IOStatus s = Change(boots_); !s.ok()) return s;
        SimulatedDisk::Truncate(old.get(), 0);
        open.node = old;
      } else if (open.node == nullptr) {
        open.node = SimulatedDisk::MakeNode(/*is_directory=*/false);
        if (IOStatus s = Bind({{path, open.node}}); !s.ok()) return s;
      }
    }
    *file = std::make_unique<WritableFile>(std::move(open));
    return IOStatus::OK();
  }

  const std::string database_;  // the path of a RocksDB database
  mutable std::mutex mutex_;    // guards the members below, and the contents of the disk
  SimulatedDisk disk_;
  SimulatedDisk image_;  // the contents at the stop
  std::set<std::string> locks_;
  uint64_t boots_ = 0;
  bool stopped_ = false;
  uint64_t changes_ = 0;
  uint64_t stop_at_ = 0;
  uint64_t fail_sync_ = 0;
  std::string fail_in_;
  bool full_ = false;
};

}  // namespace cairn
