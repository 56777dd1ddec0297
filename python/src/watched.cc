#include "python/src/watched.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "python/src/base/errors.h"
#include "python/src/base/gil.h"
#include "python/src/base/worker.h"

namespace cairn::python {
namespace {

constexpr std::chrono::milliseconds kTick(100);

const char* PhaseName(Progress::Phase phase) {
  switch (phase) {
    case Progress::Phase::kScan:
      return "scan";
    case Progress::Phase::kSort:
      return "sort";
    case Progress::Phase::kWrite:
      return "write";
  }
  return "work";
}

}  // namespace

void RunWatched(nb::handle progress, const std::function<absl::Status(const Watch&)>& work) {
  std::atomic<bool> cancelled{false};
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;                 // guarded by mutex, as are the next two
  std::optional<Progress> reported;  // not yet passed on
  absl::Status status;

  Watch watch;
  watch.cancelled = &cancelled;
  watch.on_progress = [&](const Progress& made) {
    const std::lock_guard lock(mutex);
    reported = made;
  };
  std::optional<nb::python_error> raised;
  {
    GilReleased released;
    RunOnWorker([&] {
      absl::Status result;
      {
        const InFlight working;
        const CancelledAtExit at_exit(&cancelled);
        try {
          result = work(watch);
        } catch (const std::bad_alloc&) {
          result = absl::ResourceExhaustedError("there is no memory for the result");
        }
      }
      // This thread uses nothing after this. It notifies with the lock held, so that the other
      // thread has to wait for it.
      const std::lock_guard lock(mutex);
      status = std::move(result);
      done = true;
      ended.notify_all();
    });
    std::unique_lock lock(mutex);
    while (true) {
      ended.wait_for(lock, kTick, [&] { return done; });
      const bool last = done;
      const std::optional<Progress> news = reported;
      reported.reset();
      lock.unlock();
      const bool reports = news.has_value() && !progress.is_none();
      if (!raised.has_value() && (reports || !last)) {
        released.Take();
        try {
          if (PyErr_CheckSignals() != 0) throw nb::python_error();
          if (reports) {
            CallPython(progress, "(sKK)", PhaseName(news->phase),
                       static_cast<unsigned long long>(news->done),
                       static_cast<unsigned long long>(news->total));
          }
        } catch (nb::python_error& error) {
          raised.emplace(std::move(error));
          cancelled.store(true);
        }
        released.Release();
      }
      lock.lock();
      if (last) break;
    }
  }
  if (raised.has_value()) throw nb::python_error(std::move(*raised));
  Check(status);
}

void RunQuery(const std::function<absl::Status(const std::atomic<bool>*)>& query) {
  if (gettid() == getpid()) {
    RunWatched(nb::none(), [&](const Watch& watch) { return query(watch.cancelled); });
    return;
  }
  std::atomic<bool> cancelled{false};
  absl::Status status;
  {
    const GilReleased released;
    const CancelledAtExit at_exit(&cancelled);
    status = query(&cancelled);
  }
  Check(status);
}

}  // namespace cairn::python
