// Gathers the facts of a report, except those about keys (key_facts.h) and times (speed.h).
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "cairn/version.h"
#include "index/machine/status_macros.h"
#include "tools/report/key_facts.h"
#include "tools/report/report.h"
#include "tools/report/speed.h"

namespace cairn::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kLogTime(5);

// The processor's name and its number of hardware threads.
std::string Machine() {
  std::string name;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; name.empty() && std::getline(file, line);) {
    if (absl::StartsWith(line, "model name")) name = line.substr(line.find(':') + 1);
  }
  const std::string stripped(absl::StripLeadingAsciiWhitespace(name));
  return absl::StrCat(stripped, stripped.empty() ? "" : ", ", std::thread::hardware_concurrency(),
                      " hardware threads");
}

// Lists the files in the index's directory, without those that are removed concurrently.
std::vector<FileSize> Files(const std::string& directory) {
  std::vector<FileSize> files;
  std::error_code error;
  for (auto file = fs::directory_iterator(directory, error);
       !error && file != fs::directory_iterator(); file.increment(error)) {
    std::error_code gone;
    const uint64_t bytes = file->is_regular_file(gone) ? file->file_size(gone) : 0;
    if (!gone && bytes != 0) files.push_back({file->path().filename().string(), bytes});
  }
  std::sort(files.begin(), files.end(), [](const FileSize& a, const FileSize& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
  });
  return files;
}

// The time at which the base's entries were written.
std::optional<absl::Time> Built(const std::string& directory, const IndexStats& stats) {
  for (const IndexStats::Section& section : stats.sections) {
    if (!absl::EndsWith(section.file, ".run")) continue;
    std::error_code error;
    const auto written = fs::last_write_time(fs::path(directory) / section.file, error);
    if (error) continue;
    const auto time = std::chrono::file_clock::to_sys(written);
    return absl::FromChrono(
        std::chrono::time_point_cast<std::chrono::system_clock::duration>(time));
  }
  return std::nullopt;
}

// Sets a flag after a time, or when another flag is set, unless it is destroyed earlier.
class TimeLimit {
 public:
  TimeLimit(std::chrono::seconds time, const std::atomic<bool>* cancelled)
      : thread_([this, time, cancelled] {
          const auto end = std::chrono::steady_clock::now() + time;
          std::unique_lock lock(mutex_);
          while (!done_ && std::chrono::steady_clock::now() < end &&
                 (cancelled == nullptr || !*cancelled)) {
            changed_.wait_for(lock, std::chrono::milliseconds(50));
          }
          if (!done_) passed_ = true;
        }) {}
  ~TimeLimit() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  const std::atomic<bool>& passed() const { return passed_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::atomic<bool> passed_ = false;
  std::thread thread_;
};

// Catches up only in memory, in a separate object; the index's files do not change.
void TryToCatchUp(const std::string& directory, const SnapshotSource& source,
                  const std::atomic<bool>* cancelled, FreshnessFacts* facts) {
  using State = FreshnessFacts::State;
  const auto fail = [&](const absl::Status& status) {
    facts->state = State::kCannot;
    facts->message = std::string(status.message());
  };
  OpenOptions few;
  few.ordered_indexes = {"cpu:sorted_array"};
  few.calibration = Calibration::kNone;
  absl::StatusOr<std::unique_ptr<SecondaryIndex>> index = SecondaryIndex::Open(directory, few);
  if (!index.ok()) return fail(index.status());
  const TimeLimit limit(kLogTime, cancelled);
  CatchUpOptions options;
  options.durable = false;
  options.cancelled = &limit.passed();
  const auto start = std::chrono::steady_clock::now();
  const SequenceNumber before = (*index)->sequence();
  const absl::StatusOr<CatchUpReport> report = (*index)->CatchUp(source, options);
  facts->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (absl::IsCancelled(report.status())) {
    facts->state = State::kTooLong;
    return;
  }
  if (!report.ok()) return fail(report.status());
  facts->changes = report->changes;
  facts->rows = report->rows;
  facts->log_bytes = report->log_bytes;
  facts->merge_would_pay = (*index)->ShouldCompact();
  facts->state = source.sequence() == before ? State::kCurrent : State::kCanCatchUp;
}

FreshnessFacts LookAtDatabase(const std::string& directory, const std::string& column_family,
                              const ReportOptions& options) {
  FreshnessFacts facts;
  if (options.database.empty()) return facts;
  facts.database = options.database;
  const auto source = SnapshotSource::FromDirectory(options.database, column_family);
  if (!source.ok()) {
    facts.state = FreshnessFacts::State::kUnreadable;
    facts.message = std::string(source.status().message());
    return facts;
  }
  facts.sequence = (*source)->sequence();
  TryToCatchUp(directory, **source, options.cancelled, &facts);
  return facts;
}

bool IsCancelled(const ReportOptions& options) {
  return options.cancelled != nullptr && *options.cancelled;
}

// The last component of a path, without trailing slashes.
std::string NameOf(const std::string& directory) {
  const std::string_view stripped = directory;
  const size_t end = stripped.find_last_not_of('/');
  const std::string_view path = stripped.substr(0, end == std::string_view::npos ? 0 : end + 1);
  const size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  return std::string(name.empty() || name == "." ? std::string_view("index") : name);
}

}  // namespace

absl::StatusOr<Report> GatherReport(const std::string& directory, const ReportOptions& options) {
  OpenOptions open;
  open.device = options.device;
  open.devices = options.devices;
  if (!options.trials) {
    open.devices.clear();
    open.ordered_indexes = {"cpu:sorted_array"};
    open.calibration = Calibration::kNone;
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<SecondaryIndex> index,
                   SecondaryIndex::Open(directory, open));
  Report report;
  report.directory = directory;
  report.spec = index->spec();
  report.kind = index->kind();
  report.title = options.title;
  if (report.title.empty()) report.title = report.spec.name;
  if (report.title.empty()) report.title = NameOf(directory);
  ASSIGN_OR_RETURN(report.stats, index->Stats());
  report.should_compact = index->ShouldCompact();
  report.files = Files(directory);
  report.built = Built(directory, report.stats);
  report.machine = Machine();
  report.version = Version();
  report.made = absl::Now();
  if (report.stats.entries != 0) {
    ASSIGN_OR_RETURN(KeysRead read, ReadKeyFacts(*index, report.stats.entries, options));
    report.keys = std::move(read.facts);
    if (IsCancelled(options)) return absl::CancelledError("interrupted");
    if (options.trials && options.seconds > 0) {
      ASSIGN_OR_RETURN(report.speed,
                       MeasureSpeed(*index, &read.queries, options.seconds, options.cancelled));
    }
  }
  report.freshness = LookAtDatabase(directory, report.spec.column_family, options);
  if (IsCancelled(options)) return absl::CancelledError("interrupted");
  return report;
}

}  // namespace cairn::tools
