// cairn: builds, queries, inspects and verifies secondary indexes of RocksDB databases.
#include <CLI/Error.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "tools/cli/command.h"

namespace cairn::tools {
namespace {

constexpr char kFooter[] = R"(
Examples:
  cairn demo /tmp/db --rows=1000000
  cairn build --db=/tmp/db --cf=customer --spec="phone=value.field('|',4):text" --out=/tmp/phone
  cairn query /tmp/phone --prefix=25- --limit=10 --db=/tmp/db
  cairn count /tmp/phone --range=20-..30-
  cairn catch-up /tmp/phone --db=/tmp/db --compact=auto
  cairn verify /tmp/phone --db=/tmp/db
  cairn report /tmp/phone --db=/tmp/db --out=phone.html

Exit status: 0 success; 1 failure, or verify found differences; 2 wrong usage; 130 interrupted.
See 'cairn COMMAND --help' for each command.)";

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void Interrupt(int) {
  // The second signal ends the process at once.
  if (interrupted.exchange(true)) std::_Exit(kInterrupted);
}

int Complain(std::string_view message, int exit_status) {
  // One line, even if the message quotes several.
  std::string line(message.substr(0, message.find_last_not_of('\n') + 1));
  for (char& c : line) c = c == '\n' ? ' ' : c;
  std::fprintf(stderr, "cairn: %s\n", line.c_str());
  return exit_status;
}

// The arguments in the form that CLI11 requires, last one first. For CLI11, "--option=" is an
// option without a value; here its value is empty.
std::vector<std::string> Arguments(int argc, char** argv) {
  std::vector<std::string> reversed;
  for (int i = argc - 1; i > 0; --i) {
    const std::string argument = argv[i];
    if (argument.size() > 3 && argument.compare(0, 2, "--") == 0 &&
        argument.find('=') == argument.size() - 1) {
      reversed.push_back("");
      reversed.push_back(argument.substr(0, argument.size() - 1));
    } else {
      reversed.push_back(argument);
    }
  }
  return reversed;
}

// The message for arguments that are neither a command nor its options. CLI11's own lists them in
// reverse.
std::string Unexpected(const CLI::App& app) {
  const std::vector<std::string> arguments = app.remaining(/*recurse=*/true);
  if (app.get_subcommands().empty() && arguments[0][0] != '-') {
    return "unknown command '" + arguments[0] + "'";
  }
  std::string text = "unexpected arguments:";
  for (const std::string& argument : arguments) text += " '" + argument + "'";
  return text;
}

int Run(int argc, char** argv) {
  CLI::App app("Secondary indexes for RocksDB that answer batches of queries.", "cairn");
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", VersionText,
                       "Prints the versions of Cairn, RocksDB and CUDA and the instruction sets, "
                       "and exits");
  app.footer(kFooter);
  Action action;
  AddBuildCommand(&app, &action);
  AddCatchUpCommand(&app, &action);
  AddCompactCommand(&app, &action);
  AddQueryCommand(&app, &action);
  AddCountCommand(&app, &action);
  AddJoinCommand(&app, &action);
  AddAggregateCommand(&app, &action);
  AddInspectCommand(&app, &action);
  AddVerifyCommand(&app, &action);
  AddShardCommands(&app, &action);
  AddReportCommand(&app, &action);
  AddDemoCommand(&app, &action);
  AddGenerateCommand(&app, &action);
  try {
    app.parse(Arguments(argc, argv));
  } catch (const CLI::ExtrasError&) {
    return Complain(Unexpected(app) + ": see 'cairn --help'", kUsage);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(e);
    return Complain(std::string(e.what()) + " (see 'cairn --help')", kUsage);
  }

  if (!action) return Complain("no command: see 'cairn --help'", kUsage);

  std::signal(SIGINT, Interrupt);
  std::signal(SIGTERM, Interrupt);
  const absl::StatusOr<int> exit_status = action();
  if (exit_status.ok()) return *exit_status;
  const absl::Status& status = exit_status.status();
  if (absl::IsCancelled(status) && interrupted) return Complain("interrupted", kInterrupted);
  return Complain({status.message().data(), status.message().size()},
                  IsUsageError(status) ? kUsage : kFailed);
}

}  // namespace

const std::atomic<bool>& Interrupted() {
  return interrupted;
}

}  // namespace cairn::tools

int main(int argc, char** argv) {
  try {
    return cairn::tools::Run(argc, argv);
  } catch (const std::bad_alloc&) {
    return cairn::tools::Complain("out of memory", cairn::tools::kFailed);
  } catch (const std::exception& e) {
    return cairn::tools::Complain(e.what(), cairn::tools::kFailed);
  }
}
