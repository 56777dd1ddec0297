#include "python/src/base/worker.h"

#include <pthread.h>

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace cairn::python {
namespace {

constexpr size_t kMaxIdle = 4;

struct Worker {
  std::condition_variable wanted;
  std::function<void()> task;  // guarded by Workers::mutex, as are all members
};

// Never destroyed, since threads use it until the process ends.
struct Workers {
  std::mutex mutex;
  std::vector<std::shared_ptr<Worker>> idle;
};

Workers*& CurrentWorkers() {
  static Workers* workers = [] {
    // A child has none of its parent's threads.
    pthread_atfork(nullptr, nullptr, [] { CurrentWorkers() = new Workers; });
    return new Workers;
  }();
  return workers;
}

void Work(Workers* workers, std::shared_ptr<Worker> self) {
  std::unique_lock lock(workers->mutex);
  while (true) {
    self->wanted.wait(lock, [&] { return self->task != nullptr; });
    const std::function<void()> task = std::move(self->task);
    self->task = nullptr;
    lock.unlock();
    task();
    lock.lock();
    if (workers->idle.size() == kMaxIdle) return;
    workers->idle.push_back(self);
  }
}

}  // namespace

void RunOnWorker(std::function<void()> task) {
  Workers* const workers = CurrentWorkers();
  std::unique_lock lock(workers->mutex);
  if (workers->idle.empty()) {
    const auto made = std::make_shared<Worker>();
    made->task = std::move(task);
    std::thread(Work, workers, made).detach();
    return;
  }
  const std::shared_ptr<Worker> worker = std::move(workers->idle.back());
  workers->idle.pop_back();
  worker->task = std::move(task);
  lock.unlock();
  worker->wanted.notify_one();
}

}  // namespace cairn::python
