#include "index/parallel.h"

#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>

namespace cairn {

void ParallelFor(int threads, size_t items, const std::function<void(size_t)>& body) {
  // TBB has no more threads than it finds cores, and complains about a wish for more.
  threads = std::min(threads, tbb::info::default_concurrency());
  const size_t workers = std::min(items, static_cast<size_t>(std::max(threads, 1)));
  if (workers <= 1) {
    for (size_t i = 0; i < items; ++i) body(i);
    return;
  }
  // The counter does more than count: its release-acquire chain orders every body before the return
  // of the caller's, also in the eyes of tools that cannot see into TBB.
  std::atomic<size_t> next{0};
  tbb::task_arena arena(static_cast<int>(workers));
  arena.execute([&] {
    tbb::parallel_for(
        size_t{0}, workers,
        [&](size_t) {
          try {
            for (size_t i; (i = next.fetch_add(1, std::memory_order_acq_rel)) < items;) body(i);
          } catch (...) {
            next.store(items, std::memory_order_release);
            throw;
          }
        },
        tbb::simple_partitioner());
  });
  next.load(std::memory_order_acquire);
}

}  // namespace cairn
