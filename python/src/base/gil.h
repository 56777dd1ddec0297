#pragma once

// The GIL: given up while C++ works, and how threads end when the interpreter does.

#include <nanobind/nanobind.h>

#include <atomic>
#include <optional>

namespace cairn::python {

// Counts work in C++ for as long as it lives: the end of the process waits for it (BindExit).
class InFlight {
 public:
  InFlight();
  ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
};

// Gives up the GIL for as long as it lives, as nb::gil_scoped_release does. A thread that cannot
// have the GIL back, because the interpreter is finalizing, stops here until the process ends:
// CPython before 3.14 ends such a thread by unwinding its stack, which would go through C++ frames
// that must not be left so. Requires the GIL.
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
  // Gives it up again.
  void Release();

 private:
  PyThreadState* state_ = nullptr;  // null while this thread has the GIL
  std::optional<InFlight> working_;
};

// Calls `callable` with the arguments that Py_BuildValue makes of `format`. If the interpreter is
// finalizing, the thread stops here, as in GilReleased. Throws nb::python_error.
template <typename... Arguments>
nanobind::object CallPython(nanobind::handle callable, const char* format, Arguments... arguments);

// Stops this thread until the process ends.
[[noreturn]] void StopThread() noexcept;

// For as long as it lives, the end of the interpreter sets the flag, so that work which reads it
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

// Has the end of the interpreter cancel the work that daemon threads have begun, and wait a moment
// for it. If some still goes on, the process ends without C++'s handlers and destructors, which
// would destroy what that work uses.
void BindExit();

template <typename... Arguments>
nanobind::object CallPython(nanobind::handle callable, const char* format, Arguments... arguments) {
  PyObject* result = nullptr;
  try {
    result = PyObject_CallFunction(callable.ptr(), format, arguments...);
  } catch (...) {
    StopThread();  // CPython throws nothing else than the unwinding of a thread that it ends
  }
  if (result == nullptr) throw nanobind::python_error();
  return nanobind::steal(result);
}

}  // namespace cairn::python
