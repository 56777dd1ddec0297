#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "rocksdb/file_system.h"

// RocksDB's kinds of files over a handle of a simulated file system that has Read, Write, Truncate,
// Sync and size.
namespace cairn {

template <typename Handle>
class OpenedSequentialFile final : public rocksdb::FSSequentialFile {
 public:
  explicit OpenedSequentialFile(Handle open) : open_(std::move(open)) {}
  rocksdb::IOStatus Read(size_t n, const rocksdb::IOOptions&, rocksdb::Slice* result, char* scratch,
                         rocksdb::IODebugContext*) override {
    rocksdb::IOStatus s = open_.Read(offset_, n, result, scratch);
    if (s.ok()) offset_ += result->size();
    return s;
  }
  rocksdb::IOStatus Skip(uint64_t n) override {
    offset_ = std::min(offset_ + n, open_.size());
    return rocksdb::IOStatus::OK();
  }

 private:
  const Handle open_;
  uint64_t offset_ = 0;
};

template <typename Handle>
class OpenedRandomAccessFile final : public rocksdb::FSRandomAccessFile {
 public:
  explicit OpenedRandomAccessFile(Handle open) : open_(std::move(open)) {}
  rocksdb::IOStatus Read(uint64_t offset, size_t n, const rocksdb::IOOptions&,
                         rocksdb::Slice* result, char* scratch,
                         rocksdb::IODebugContext*) const override {
    return open_.Read(offset, n, result, scratch);
  }

 private:
  const Handle open_;
};

template <typename Handle>
class OpenedRandomRWFile final : public rocksdb::FSRandomRWFile {
 public:
  explicit OpenedRandomRWFile(Handle open) : open_(std::move(open)) {}
  rocksdb::IOStatus Read(uint64_t offset, size_t n, const rocksdb::IOOptions&,
                         rocksdb::Slice* result, char* scratch,
                         rocksdb::IODebugContext*) const override {
    return open_.Read(offset, n, result, scratch);
  }
  rocksdb::IOStatus Write(uint64_t offset, const rocksdb::Slice& bytes, const rocksdb::IOOptions&,
                          rocksdb::IODebugContext*) override {
    return open_.Write(offset, bytes);
  }
  rocksdb::IOStatus Flush(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return rocksdb::IOStatus::OK();
  }
  rocksdb::IOStatus Sync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return open_.Sync();
  }
  rocksdb::IOStatus Close(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return rocksdb::IOStatus::OK();
  }

 private:
  const Handle open_;
};

template <typename Handle>
class OpenedWritableFile final : public rocksdb::FSWritableFile {
 public:
  explicit OpenedWritableFile(Handle open) : open_(std::move(open)), size_(open_.size()) {}
  using rocksdb::FSWritableFile::Append;
  rocksdb::IOStatus Append(const rocksdb::Slice& bytes, const rocksdb::IOOptions&,
                           rocksdb::IODebugContext*) override {
    rocksdb::IOStatus s = open_.Write(size_, bytes);
    if (s.ok()) size_ += bytes.size();
    return s;
  }
  rocksdb::IOStatus Truncate(uint64_t size, const rocksdb::IOOptions&,
                             rocksdb::IODebugContext*) override {
    size_ = size;
    return open_.Truncate(size);
  }
  rocksdb::IOStatus Close(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return rocksdb::IOStatus::OK();
  }
  rocksdb::IOStatus Flush(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return rocksdb::IOStatus::OK();
  }
  rocksdb::IOStatus Sync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return open_.Sync();
  }
  bool IsSyncThreadSafe() const override { return true; }
  uint64_t GetFileSize(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return size_;
  }

 private:
  const Handle open_;
  uint64_t size_;
};

}  // namespace cairn
