#pragma once

// The GIL: releasing it while C++ works, and ending threads at the end of the interpreter.

#include <nanobind/nanobind.h>

#include <atomic>
#include <optional>

namespace cairn::python {

// Counts work in C++ for its lifetime: the end of the process waits for it (BindExit).
class InFlight {
 public:
  InFlight();
  ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
};

// Releases the GIL for its lifetime, like nb::gil_scoped_release. If the interpreter is finalizing,
// a thread cannot get the GIL back, and stops here until the process ends. CPython before 3.14 ends
// such a thread by unwinding its stack, which must not pass through C++ frames. Requires the GIL.
class GilReleased {
 public:
  GilReleased() { Release(); }
  ~GilReleased() {
    if (state_ != nullptr) Take();
  }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

  // Takes the GIL back before the end of the scope.
  void Take();
  // Releases the GIL again.
  void Release();

 private:
  PyThreadState* state_ = nullptr;  // null while this thread has the GIL
  std::optional<InFlight> working_;
};

// Calls `callable` with the arguments that Py_BuildValue creates from `format`. If the interpreter
// is finalizing, the thread stops here, as in GilReleased. Throws nb::python_error.
template <typename... Arguments>
nanobind::object CallPython(nanobind::handle callable, const char* format, Arguments... arguments);

// Stops this thread until the process ends.
[[noreturn]] void StopThread() noexcept;

// During its lifetime, the end of the interpreter sets the flag, so that work that reads the flag
// ends early.
class CancelledAtExit {
 public:
  explicit CancelledAtExit(std::atomic<bool>* cancelled);
  ~CancelledAtExit();
  CancelledAtExit(const CancelledAtExit&) = delete;
  CancelledAtExit& operator=(const CancelledAtExit&) = delete;

 private:
  std::atomic<bool>* const cancelled_;
};

// Makes the end of the interpreter cancel running work of daemon threads, and wait a moment for it.
// If some work has not ended by then, the process ends without C++'s exit handlers and destructors,
// which would destroy objects that the work uses.
void BindExit();

template <typename... Arguments>
nanobind::object CallPython(nanobind::handle callable, const char* format, Arguments... arguments) {
  PyObject* result = nullptr;
  try {
    result = PyObject_CallFunction(callable.ptr(), format, arguments...);
  } catch (...) {
    StopThread();  // the unwinding of a thread that CPython ends; CPython throws nothing else
  }
  if (result == nullptr) throw nanobind::python_error();
  return nanobind::steal(result);
}

}  // namespace cairn::python
