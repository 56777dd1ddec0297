#pragma once

#include <functional>
#include <string>
#include <utility>

#include "index/machine/mutex.h"
#include "rocksdb/listener.h"

namespace cairn {

// Tells of files that are ingested into a database, through whichever of its objects. RocksDB calls
// it before the ingestion returns. Thread-safe.
class IngestionListener final : public rocksdb::EventListener {
 public:
  // Whom to tell, with the column family's name; null for nobody, from when this returns.
  void Tell(std::function<void(const std::string&)> on_ingested) {
    const MutexLock lock(&mutex_);
    on_ingested_ = std::move(on_ingested);
  }

  void OnExternalFileIngested(rocksdb::DB* /*db*/,
                              const rocksdb::ExternalFileIngestionInfo& info) override {
    const MutexLock lock(&mutex_);
    if (on_ingested_) on_ingested_(info.cf_name);
  }

 private:
  Mutex mutex_;
  std::function<void(const std::string&)> on_ingested_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
