#include "tools/bench/child_process.h"

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"

namespace cairn::bench {
namespace {

constexpr char kFlag[] = "--child_measurement";
constexpr int kResultFile = 3;  // the child's end of the pipe

std::string ReadAll(int file) {
  std::string text;
  char buffer[4096];
  for (ssize_t size; (size = read(file, buffer, sizeof(buffer))) > 0;) text.append(buffer, size);
  return text;
}

void WriteResult(const std::string& text) {
  if (write(kResultFile, text.data(), text.size()) != static_cast<ssize_t>(text.size())) abort();
}

}  // namespace

ChildMeasurement::ChildMeasurement(const char* name, Function function)
    : name_(name), function_(function), next_(first_) {
  first_ = this;
}

Counters ChildMeasurement::Run(const std::vector<std::string>& arguments) const {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  std::vector<std::string> words = {"cairn_bench", kFlag, name_};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], kResultFile);
  pid_t child;
  const int error = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  const std::string text = error == 0 ? ReadAll(ends[0]) : "";
  close(ends[0]);
  if (error != 0) throw std::runtime_error("cannot start a process");
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(absl::StrFormat("%s: %s", name_, text.empty() ? "crashed" : text));
  }
  Counters counters;
  std::istringstream lines(text);
  std::string counter;
  double value;
  while (lines >> counter >> value) counters[counter] = value;
  return counters;
}

void ChildMeasurement::RegisterBenchmark(const std::string& name,
                                         std::vector<std::string> arguments) const {
  const auto run = [this, arguments = std::move(arguments)](benchmark::State& state) {
    for (auto _ : state) {
      for (const auto& [counter, value] : Run(arguments)) state.counters[counter] = value;
    }
  };
  benchmark::RegisterBenchmark(name.c_str(), run)
      ->UseRealTime()
      ->Iterations(1)
      ->Unit(benchmark::kSecond);
}

bool ChildMeasurement::InChild(int argc, char** argv) {
  return argc > 2 && std::string_view(argv[1]) == kFlag;
}

int ChildMeasurement::RunInChild(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    for (const ChildMeasurement* at = first_; at != nullptr; at = at->next_) {
      if (at->name_ != argv[2]) continue;
      std::string text;
      for (const auto& [name, value] : at->function_({argv + 3, argv + argc})) {
        absl::StrAppendFormat(&text, "%s %.9g\n", name, value);
      }
      WriteResult(text);
      return 0;
    }
    throw std::runtime_error("no such measurement");
  } catch (const std::exception& error) {
    WriteResult(error.what());
    return 1;
  }
}

}  // namespace cairn::bench
