#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/snapshot_source.h"

namespace cairn::tools {

// A parsed command. Returns the exit status of the process: kGood, or kDifferent if a check found a
// difference.
using Action = std::function<absl::StatusOr<int>()>;

inline constexpr int kGood = 0;
inline constexpr int kFailed = 1;
inline constexpr int kDifferent = 1;
inline constexpr int kUsage = 2;
inline constexpr int kInterrupted = 130;  // as in a shell: 128 + SIGINT

// Each adds one command to `app`. If that command is on the command line, *action is set to its
// implementation. There is one file per command, <name>_command.cc.
void AddBuildCommand(CLI::App* app, Action* action);
void AddCatchUpCommand(CLI::App* app, Action* action);
void AddCompactCommand(CLI::App* app, Action* action);
void AddQueryCommand(CLI::App* app, Action* action);
void AddAggregateCommand(CLI::App* app, Action* action);
void AddCountCommand(CLI::App* app, Action* action);
void AddJoinCommand(CLI::App* app, Action* action);
void AddInspectCommand(CLI::App* app, Action* action);
void AddVerifyCommand(CLI::App* app, Action* action);
// shard-cut, shard-extract, shard-split, shard-build and shard-publish.
void AddShardCommands(CLI::App* app, Action* action);
void AddReportCommand(CLI::App* app, Action* action);
void AddDemoCommand(CLI::App* app, Action* action);
// Generates documents of all that `app` has; not shown in --help.
void AddGenerateCommand(CLI::App* app, Action* action);

// An error in the command line. The exit status is kUsage instead of kFailed.
absl::Status UsageError(std::string_view message);
bool IsUsageError(const absl::Status& status);
// Converts InvalidArgument, an error in a query, to a usage error. Returns other statuses
// unchanged.
absl::Status AsUsageError(const absl::Status& status);

// The versions of Cairn (after its name in the first line), RocksDB and CUDA, and the instruction
// sets.
std::string VersionText();

// Set after the user's request to stop (SIGINT, SIGTERM).
const std::atomic<bool>& Interrupted();

// An option that may be repeated, with one value each time. A value may have any form: it may be
// empty or start with a dash.
CLI::Option* AddValues(CLI::App* app, const std::string& name, const std::string& type,
                       const std::string& description);

// A number of at least `least`, for options that are counts.
CLI::Validator Count(uint64_t least = 0);
// Converts a size such as 512M to bytes.
CLI::Validator Bytes();

// The source of rows: --db, --checkpoint or --sst.
struct SourceOptions {
  std::string db;
  std::string checkpoint;
  std::vector<std::string> sst;

  bool given() const { return !db.empty() || !checkpoint.empty() || !sst.empty(); }
};

// Adds --comparator, which declares the order of a comparator, for commands that open a database.
void AddComparatorOption(CLI::App* app);

// Adds the three options and --comparator. A command line has at most one of the three.
void AddSourceOptions(CLI::App* app, SourceOptions* options);

// Opens the given source; requires that there be one.
absl::StatusOr<std::unique_ptr<SnapshotSource>> OpenSource(const SourceOptions& options,
                                                           const std::string& column_family);

}  // namespace cairn::tools
