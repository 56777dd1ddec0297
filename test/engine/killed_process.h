#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace cairn {

// A message from the killed process. It is small enough that a pipe transfers it whole or not at
// all. Each test defines the meaning of the numbers.
struct Message {
  uint32_t kind = 0;
  uint32_t number = 0;
};

// Another process of this test program, which runs one of its test cases. The test case must do
// nothing without the environment variables passed here. The process executes the program again
// instead of continuing after a fork, since threads of this process, such as RocksDB's, would be
// missing there.
class KilledProcess {
 public:
  // `test` is "suite/case". The variables are added to its environment.
  KilledProcess(const std::string& test,
                const std::vector<std::pair<std::string, std::string>>& variables) {
    int ends[2];
    BOOST_REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    out_ = ends[0];
    std::vector<std::string> arguments = {"test", "--run_test=" + test, "--log_level=error",
                                          "--report_level=no", "--catch_system_errors=no"};
    std::vector<std::string> environment = {std::string(kPipe) + "=" + std::to_string(ends[1])};
    for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
    for (char** variable = environ; *variable != nullptr; ++variable) {
      environment.emplace_back(*variable);
    }
    const std::vector<char*> argv = Pointers(&arguments), envp = Pointers(&environment);
    process_ = fork();
    BOOST_REQUIRE(process_ >= 0);
    if (process_ == 0) {
      // No call here may take a lock.
      fcntl(ends[1], F_SETFD, 0);
      execve("/proc/self/exe", argv.data(), envp.data());
      _exit(126);
    }
    close(ends[1]);
  }
  ~KilledProcess() {
    if (process_ > 0) Kill();
    close(out_);
  }
  KilledProcess(const KilledProcess&) = delete;
  KilledProcess& operator=(const KilledProcess&) = delete;

  // The next message; nullopt at `deadline`, or after the process has ended and all are read.
  std::optional<Message> Next(absl::Time deadline) {
    pollfd ready = {out_, POLLIN, 0};
    const int64_t wait = absl::ToInt64Milliseconds(deadline - absl::Now());
    if (process_ > 0 && poll(&ready, 1, static_cast<int>(std::max<int64_t>(wait, 0))) == 0) {
      return std::nullopt;
    }
    Message message;
    if (read(out_, &message, sizeof message) != sizeof message) return std::nullopt;
    return message;
  }

  // Kills the process. Returns false if it had already ended. Its messages can still be read.
  bool Kill() {
    kill(process_, SIGKILL);
    int status = 0;
    BOOST_REQUIRE(waitpid(process_, &status, 0) == process_);
    process_ = 0;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }

  // Waits until the process ends. Returns its exit code, or nullopt if a signal ended it.
  std::optional<int> ExitCode() {
    int status = 0;
    BOOST_REQUIRE(waitpid(process_, &status, 0) == process_);
    process_ = 0;
    if (!WIFEXITED(status)) return std::nullopt;
    return WEXITSTATUS(status);
  }

  // Sends a message from the other process, which ends if the pipe has no reader.
  static void Say(uint32_t kind, uint32_t number) {
    static const int pipe = std::atoi(std::getenv(kPipe));
    const Message message = {kind, number};
    if (write(pipe, &message, sizeof message) != sizeof message) _exit(1);
  }

 private:
  static constexpr char kPipe[] = "CAIRN_TEST_PIPE";

  static std::vector<char*> Pointers(std::vector<std::string>* texts) {
    std::vector<char*> pointers;
    for (std::string& text : *texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  int out_ = -1;
  pid_t process_ = 0;  // 0 once it has been waited for
};

}  // namespace cairn
