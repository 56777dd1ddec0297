// cairn report: writes a human-readable page about an index.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cairn/options.h"
#include "index/machine/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/route_options.h"
#include "tools/print/output.h"
#include "tools/report/report.h"

namespace cairn::tools {
namespace {

struct ReportOptionsGiven {
  std::string index;
  std::string out;
  DeviceOptions device;
  bool no_trials = false;
  ReportOptions options;
};

absl::Status Failed(std::string_view what, const std::string& path) {
  return absl::UnavailableError(
      absl::StrFormat("cannot %s '%s': %s", what, path, std::strerror(errno)));
}

absl::Status WriteAll(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      return Failed("write", path);
    }
  }
  return absl::OkStatus();
}

absl::Status RefuseDirectory(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return UsageError(absl::StrFormat("--out=%s: expected a file, got a directory", path));
  }
  return absl::OkStatus();
}

// The permissions of a new file, as open(2) would make it.
mode_t NewFileMode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

// Writes to an existing file, or to the target of a dangling link.
absl::Status WriteInto(const std::string& path, std::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return Failed("write", path);
  absl::Status status = WriteAll(fd, text, path);
  if (close(fd) != 0) status.Update(Failed("write", path));
  return status;
}

// Writes a file atomically: writes a temporary file in the same directory, and renames it. A
// replaced file keeps its permissions.
absl::Status ReplaceFile(const std::string& path, mode_t mode, std::string_view text) {
  std::string temporary = path + ".XXXXXX";
  const int fd = mkstemp(temporary.data());
  if (fd < 0) return Failed("write", path);
  absl::Cleanup remove = [&] { unlink(temporary.c_str()); };
  absl::Status status = WriteAll(fd, text, path);
  // mkstemp creates a file that only its owner can read.
  if (status.ok() && fchmod(fd, mode) != 0) status = Failed("write", path);
  if (status.ok() && fsync(fd) != 0) status = Failed("write", path);
  if (close(fd) != 0) status.Update(Failed("write", path));
  RETURN_IF_ERROR(status);
  if (rename(temporary.c_str(), path.c_str()) != 0) return Failed("write", path);
  std::move(remove).Cancel();
  return absl::OkStatus();
}

// Replaces a regular file, following symbolic links. Writes directly to a device or a pipe.
absl::Status WriteFile(const std::string& path, std::string_view text) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0) return ReplaceFile(path, NewFileMode(), text);
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return WriteInto(path, text);
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path, error);
  if (error)
    return absl::UnavailableError(absl::StrCat("cannot write '", path, "': ", error.message()));
  return ReplaceFile(file, status.st_mode & 07777, text);
}

absl::StatusOr<int> RunReport(ReportOptionsGiven given) {
  const bool to_output = given.out == "-";
  if (given.out.empty()) return UsageError("--out: expected the name of a file or -, got nothing");
  if (!to_output) RETURN_IF_ERROR(RefuseDirectory(given.out));
  // CLI11's range check accepts NaN.
  if (std::isnan(given.options.seconds)) return UsageError("--seconds: expected a number, got nan");
  OpenOptions open;
  given.device.SetIn(&open);
  given.options.device = open.device;
  given.options.devices = std::move(open.devices);
  given.options.trials = !given.no_trials;
  given.options.cancelled = &Interrupted();
  ASSIGN_OR_RETURN(const Report report, GatherReport(given.index, given.options));
  const std::string page = RenderReport(report);
  if (!to_output) {
    RETURN_IF_ERROR(WriteFile(given.out, page));
    return kGood;
  }
  Output output;
  output.Write(page);
  RETURN_IF_ERROR(output.Flush());
  return kGood;
}

}  // namespace

void AddReportCommand(CLI::App* app, Action* action) {
  auto given = std::make_shared<ReportOptionsGiven>();
  CLI::App* command = app->add_subcommand(
      "report", "Writes a page about an index: its sizes, keys, speed and freshness");
  command->add_option("INDEX", given->index, "The index's directory")->required();
  command->add_option("--out", given->out, "The page to write, in HTML; - for standard output")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--db", given->options.database,
                   "The index's database, opened read-only, to report the index's lag")
      ->type_name("DIR");
  AddComparatorOption(command);
  command
      ->add_option("--title", given->options.title,
                   "The page's headline (default: the index's name)")
      ->type_name("TEXT");
  given->device.AddTo(command);
  command
      ->add_option("--seconds", given->options.seconds,
                   "The approximate time for timing batches; 0: none (default: 2)")
      ->type_name("N")
      ->check(CLI::Range(0.0, 600.0));
  command->add_flag("--no-trials", given->no_trials,
                    "Builds no search structures and times nothing, which is fastest");
  command->footer(R"(
The page is one file that needs no other files and no network. Its times are measured on this
machine under its current load: batches of existing and absent keys, of ranges and of scans, on each
route of the index. In an index of up to 4 million entries, all keys are read. A larger one is
sampled, and the page says so. The page contains keys of the index.

With --db, the log is read like by 'cairn catch-up', for 5 seconds at most, and nothing is stored.

Examples:
  cairn report /tmp/phone --out=phone.html
  cairn report /tmp/phone --out=phone.html --db=/tmp/db --seconds=10)");
  command->callback([given, action] { *action = [given] { return RunReport(*given); }; });
}

}  // namespace cairn::tools
