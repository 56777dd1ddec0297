#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "index/machine/mutex.h"
#include "rocksdb/listener.h"

namespace cairn {

// Reports events of a database, through any of its objects: ingested files, flushes, and writes
// that may be in the log although they failed. RocksDB calls it before the ingestion or the write
// returns, and shortly after a flush.
// Delays the first compactions until the table files have been listed, because a compaction can
// hide that a file was lost. Thread-safe.
class DatabaseListener final : public rocksdb::EventListener {
 public:
  struct Observer {
    // `sequence`: the sequence number of the file; 0 for none.
    std::function<void(const std::string& column_family, uint64_t sequence)> on_ingested;
    // `sequence`: the largest sequence number in the new file.
    std::function<void(uint64_t sequence)> on_flushed;
    // `in_memtable`: the log has the record, but RocksDB applied it only in part or not at all.
    // RocksDB may call this while the observer itself calls the database.
    std::function<void(bool in_memtable)> on_failed_write;
  };

  // Replaces the observer; null for none. Returns once the previous one is no longer called, so an
  // observer must not call this.
  void Tell(std::shared_ptr<const Observer> observer) {
    MutexLock lock(&mutex_);
    observer_ = std::move(observer);
    while (calls_ > 0) ended_.Wait(&lock);
  }

  // Compactions may begin. Until this is called, they wait for a second at most: if RocksDB cannot
  // open the database, it waits for them.
  void AllowCompactions() {
    const MutexLock lock(&mutex_);
    delays_compactions_ = false;
    allowed_.NotifyAll();
  }

  void OnCompactionBegin(rocksdb::DB* /*db*/, const rocksdb::CompactionJobInfo&) override {
    MutexLock lock(&mutex_);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (delays_compactions_ && std::chrono::steady_clock::now() < until) {
      allowed_.WaitUntil(&lock, until);
    }
  }

  void OnExternalFileIngested(rocksdb::DB* /*db*/,
                              const rocksdb::ExternalFileIngestionInfo& info) override {
    Call([&](const Observer& observer) { observer.on_ingested(info.cf_name, info.global_seqno); });
  }

  void OnFlushCompleted(rocksdb::DB* /*db*/, const rocksdb::FlushJobInfo& info) override {
    Call([&](const Observer& observer) { observer.on_flushed(info.largest_seqno); });
  }

  // Another listener may have cleared the status by now, so the reason decides.
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status*) override {
    // The write of a log record failed, or the record could not be applied to the memtable.
    const bool in_memtable = reason == rocksdb::BackgroundErrorReason::kMemTable;
    if (in_memtable || reason == rocksdb::BackgroundErrorReason::kWriteCallback) {
      Call([&](const Observer& observer) { observer.on_failed_write(in_memtable); });
    }
  }

 private:
  template <typename Function>
  void Call(const Function& function) {
    std::shared_ptr<const Observer> observer;
    {
      const MutexLock lock(&mutex_);
      if (observer_ == nullptr) return;
      observer = observer_;
      ++calls_;
    }
    function(*observer);
    const MutexLock lock(&mutex_);
    --calls_;
    ended_.NotifyAll();
  }

  Mutex mutex_;
  CondVar ended_;
  CondVar allowed_;
  bool delays_compactions_ ABSL_GUARDED_BY(mutex_) = true;
  std::shared_ptr<const Observer> observer_ ABSL_GUARDED_BY(mutex_);
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;  // of observers, in progress
};

}  // namespace cairn
