#include "index/machine/parallel.h"
#include "index/machine/mutex.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace cairn {

void ParallelFor(int threads, size_t items, const std::function<void(size_t)>& body) {
  const size_t workers = std::min(items, static_cast<size_t>(std::max(threads, 1)));
  if (workers <= 1) {
    for (size_t i = 0; i < items; ++i) body(i);
    return;
  }
  std::atomic<size_t> next{0};
  Mutex mutex;
  std::exception_ptr thrown;  // the first one; guarded by mutex
  const auto work = [&] {
    try {
      for (size_t i; (i = next.fetch_add(1)) < items;) body(i);
    } catch (...) {
      next.store(items);
      const MutexLock lock(&mutex);
      if (thrown == nullptr) thrown = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  others.reserve(workers - 1);
  try {
    while (others.size() < workers - 1) others.emplace_back(work);
  } catch (...) {
    // The system has no more threads, or no memory for one; the threads that exist do all the work.
  }
  work();
  for (std::thread& other : others) other.join();
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

}  // namespace cairn
