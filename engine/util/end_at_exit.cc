#include "engine/util/end_at_exit.h"

#include <cstdlib>
#include <set>
#include <utility>

#include "index/machine/mutex.h"
#include "rocksdb/env.h"

namespace cairn {
namespace {

// Never destroyed, because exit() may run while it is in use.
struct Registry {
  Mutex mutex;
  std::set<const EndAtExit*> all ABSL_GUARDED_BY(mutex);
};

Registry& TheRegistry() {
  static Registry* const registry = [] {
    // exit() calls the last registered function first, so RocksDB's environment must already exist.
    rocksdb::Env::Default();
    std::atexit([] {
      Registry& all = TheRegistry();
      const MutexLock lock(&all.mutex);
      for (const EndAtExit* each : all.all) each->end()();
      all.all.clear();
    });
    return new Registry;
  }();
  return *registry;
}

}  // namespace

EndAtExit::EndAtExit(std::function<void()> end) : end_(std::move(end)) {
  Registry& registry = TheRegistry();
  const MutexLock lock(&registry.mutex);
  registry.all.insert(this);
}

EndAtExit::~EndAtExit() {
  Registry& registry = TheRegistry();
  const MutexLock lock(&registry.mutex);
  registry.all.erase(this);
}

}  // namespace cairn
