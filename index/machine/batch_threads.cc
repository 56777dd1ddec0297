// Compiled without ThreadSanitizer, which does not see oneTBB's own synchronization. The order that
// oneTBB guarantees is declared below instead; the loop bodies are checked as usual.
#include "index/machine/batch_threads.h"

#include <pthread.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>

#include <atomic>

#include "index/machine/parallel.h"
#include "index/machine/topology.h"

#ifdef CAIRN_TSAN
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace cairn {
namespace {

void HappensBefore([[maybe_unused]] void* event) {
#ifdef CAIRN_TSAN
  __tsan_release(event);
#endif
}
void HappensAfter([[maybe_unused]] void* event) {
#ifdef CAIRN_TSAN
  __tsan_acquire(event);
#endif
}

// A forked child has no workers, but a copy of oneTBB's state: locks that the workers held, and
// arena slots of those that were running. Nothing ever resets that state.
std::atomic<bool> has_workers{false};   // or is about to start them
std::atomic<bool> lost_workers{false};  // a process from which this one was forked had some
[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { lost_workers.store(has_workers.load()); });

// Binds workers to processors while they are in the arena.
class Placement final : public tbb::task_scheduler_observer {
 public:
  explicit Placement(tbb::task_arena& arena) : tbb::task_scheduler_observer(arena) {
    if (Topology::Get().hardware_threads() > Topology::Get().cores()) observe(true);
  }
  void on_scheduler_entry(bool is_worker) override {
    if (is_worker) Topology::Get().BindThisThread(Topology::Binding::kOneThreadPerCore);
  }
  void on_scheduler_exit(bool is_worker) override {
    if (is_worker) Topology::Get().BindThisThread(Topology::Binding::kProcess);
  }
};

struct Arena {
  Arena() : arena(Topology::Get().cores()), placement(arena) {}
  tbb::task_arena arena;
  Placement placement;
};

}  // namespace

void RunOnBatchThreads(size_t parts, absl::FunctionRef<void(size_t)> body) {
  if (lost_workers.load()) return ParallelFor(Topology::Get().cores(), parts, body);
  if (!has_workers.load(std::memory_order_relaxed)) has_workers.store(true);
  static Arena& arena = *new Arena;  // oneTBB may be destroyed before static objects are
  char started = 0, done = 0;
  HappensBefore(&started);
  arena.arena.execute([&] {
    // While a thread waits for these parts, it must not start parts of another call, which may take
    // longer.
    tbb::this_task_arena::isolate([&] {
      tbb::parallel_for(
          tbb::blocked_range<size_t>(0, parts, 1),
          [&](const tbb::blocked_range<size_t>& range) {
            HappensAfter(&started);
            for (size_t part = range.begin(); part < range.end(); ++part) body(part);
            HappensBefore(&done);
          },
          tbb::simple_partitioner());
    });
  });
  HappensAfter(&done);
}

}  // namespace cairn
