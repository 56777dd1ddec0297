#include "tools/cli/build_progress.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

constexpr std::chrono::seconds kBetweenLines(5);
constexpr size_t kBarCharacters = 30;

const char* Doing(Progress::Phase phase) {
  switch (phase) {
    case Progress::Phase::kScan:
      return "scanning rows";
    case Progress::Phase::kSort:
      return "sorting entries";
    case Progress::Phase::kWrite:
      return "writing entries";
  }
  return "building";
}

// Whether standard error and standard output are the same pipe, so that lines of progress would be
// read as results.
bool SharesPipeWithResults() {
  struct stat results, progress;
  return fstat(STDOUT_FILENO, &results) == 0 && fstat(STDERR_FILENO, &progress) == 0 &&
         S_ISFIFO(progress.st_mode) && results.st_dev == progress.st_dev &&
         results.st_ino == progress.st_ino;
}

}  // namespace

BuildProgress::BuildProgress()
    : terminal_(isatty(STDERR_FILENO) == 1), hidden_(!terminal_ && SharesPipeWithResults()) {}

BuildProgress::~BuildProgress() {
  if (drawn_ != 0) std::fprintf(stderr, "\r%*s\r", static_cast<int>(drawn_), "");
}

void BuildProgress::Show(const Progress& progress) {
  if (hidden_) return;
  const Clock::time_point now = Clock::now();
  const bool begins = phase_ != progress.phase;
  if (begins) {
    phase_ = progress.phase;
    phase_start_ = last_line_ = now;
  } else if (!terminal_ && now - last_line_ < kBetweenLines) {
    return;
  }
  last_line_ = now;

  // The total of a scan is an estimate, and may be too small.
  const uint64_t total = std::max(progress.done, progress.total);
  const double share =
      total == 0 ? 0 : static_cast<double>(progress.done) / static_cast<double>(total);
  std::string text = absl::StrFormat("%-15s %3.0f%%  %s", Doing(progress.phase), share * 100,
                                     WithCommas(progress.done));
  const double seconds = std::chrono::duration<double>(now - phase_start_).count();
  if (seconds > 0.5) {
    text += absl::StrFormat("  %.2f M/s", static_cast<double>(progress.done) / seconds * 1e-6);
  }
  if (!terminal_) {
    std::fprintf(stderr, "cairn: %s\n", text.c_str());
    return;
  }
  const auto filled = static_cast<size_t>(share * kBarCharacters);
  text = absl::StrFormat("[%s%s] %s", std::string(filled, '#'),
                         std::string(kBarCharacters - filled, ' '), text);
  const size_t length = text.size();
  if (length < drawn_) text.append(drawn_ - length, ' ');
  std::fprintf(stderr, "\r%s", text.c_str());
  std::fflush(stderr);
  drawn_ = length;
}

}  // namespace cairn::tools
