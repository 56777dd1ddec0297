#include "python/src/base/gil.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace cairn::python {
namespace {

constexpr std::chrono::seconds kPatience(1);

// State for the end of the interpreter. Never destroyed, since threads use it until the process
// ends.
struct Exit {
  std::atomic<int> in_flight{0};
  std::atomic<bool> finalized{false};  // set at the end of Py_Finalize
  std::mutex mutex;
  std::condition_variable ended;  // notified when the last work in flight ends after `finalized`
  std::vector<std::atomic<bool>*> cancelled;  // guarded by mutex
};

Exit& GetExit() {
  static Exit* const state = new Exit;
  return *state;
}

void LeaveAtOnce(int status, void*) {
  if (GetExit().in_flight.load() == 0) return;
  std::fflush(nullptr);
  _exit(status);
}

void AtExit() {
  Exit& state = GetExit();
  std::unique_lock lock(state.mutex);
  state.finalized.store(true);
  for (std::atomic<bool>* flag : state.cancelled) flag->store(true);
  const bool quiet =
      state.ended.wait_for(lock, kPatience, [&] { return state.in_flight.load() == 0; });
  // The handler that is registered last runs first.
  if (!quiet) on_exit(&LeaveAtOnce, nullptr);
}

}  // namespace

InFlight::InFlight() {
  GetExit().in_flight.fetch_add(1);
}

InFlight::~InFlight() {
  Exit& state = GetExit();
  if (state.in_flight.fetch_sub(1) != 1 || !state.finalized.load()) return;
  const std::lock_guard lock(state.mutex);
  state.ended.notify_all();
}

void StopThread() noexcept {
  while (true) pause();
}

void GilReleased::Take() {
  working_.reset();
  // After finalization, the interpreter has no state left to query.
  if (GetExit().finalized.load()) StopThread();
  try {
    PyEval_RestoreThread(state_);
  } catch (...) {
    StopThread();  // the unwinding of a thread that CPython ends; CPython throws nothing else
  }
  state_ = nullptr;
}

void GilReleased::Release() {
  working_.emplace();
  state_ = PyEval_SaveThread();
}

CancelledAtExit::CancelledAtExit(std::atomic<bool>* cancelled) : cancelled_(cancelled) {
  Exit& state = GetExit();
  const std::lock_guard lock(state.mutex);
  state.cancelled.push_back(cancelled);
}

CancelledAtExit::~CancelledAtExit() {
  Exit& state = GetExit();
  const std::lock_guard lock(state.mutex);
  const auto at = std::find(state.cancelled.begin(), state.cancelled.end(), cancelled_);
  if (at != state.cancelled.end()) state.cancelled.erase(at);  // in a child of a fork there is none
}

void BindExit() {
  GetExit();
  // Threads that ended with the interpreter still hold their objects; that is not a leak.
  nanobind::set_leak_warnings(false);
  // A child has none of its parent's threads.
  pthread_atfork([] { GetExit().mutex.lock(); }, [] { GetExit().mutex.unlock(); },
                 [] {
                   GetExit().mutex.unlock();
                   GetExit().in_flight.store(0);
                   GetExit().cancelled.clear();
                 });
  Py_AtExit(&AtExit);
}

}  // namespace cairn::python
