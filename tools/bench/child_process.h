#pragma once

#include <map>
#include <string>
#include <vector>

namespace cairn::bench {

// Named numbers that a measurement returns.
using Counters = std::map<std::string, double>;

// A measurement that runs in a process of its own, so that peak memory, processor time and threads
// are those of one store. The process is a new cairn_bench, not a fork: it has none of the memory
// and threads of earlier benchmarks.
class ChildMeasurement {
 public:
  using Function = Counters (*)(const std::vector<std::string>& arguments);

  // Registers a function by a unique name; to be defined as a global variable.
  ChildMeasurement(const char* name, Function function);
  ChildMeasurement(const ChildMeasurement&) = delete;
  ChildMeasurement& operator=(const ChildMeasurement&) = delete;

  // Runs the function in a new process, and returns its counters. An exception of the function is
  // thrown here with the same text.
  Counters Run(const std::vector<std::string>& arguments) const;
  // Registers a benchmark that calls Run once and reports its counters. This object must outlive
  // the benchmarks.
  void RegisterBenchmark(const std::string& name, std::vector<std::string> arguments) const;

  // Returns whether this process is such a process. RunInChild then executes its measurement, and
  // returns the exit status.
  static bool InChild(int argc, char** argv);
  static int RunInChild(int argc, char** argv);

 private:
  inline static const ChildMeasurement* first_ = nullptr;
  const std::string name_;
  const Function function_;
  const ChildMeasurement* const next_;
};

}  // namespace cairn::bench
