#include "python/src/watched.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "python/src/base/errors.h"
#include "python/src/base/gil.h"

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
  std::optional<Progress> reported;  // that has not been passed on
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
    std::thread thread([&] {
      const InFlight working;
      const CancelledAtExit at_exit(&cancelled);
      absl::Status result = work(watch);
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
      if (!raised.has_value()) {
        released.Take();
        try {
          if (PyErr_CheckSignals() != 0) throw nb::python_error();
          if (news.has_value() && !progress.is_none()) {
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
    lock.unlock();
    thread.join();
  }
  if (raised.has_value()) throw nb::python_error(std::move(*raised));
  Check(status);
}

}  // namespace cairn::python
