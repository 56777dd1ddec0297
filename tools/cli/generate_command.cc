// cairn generate: generates the manual page and the shells' completions from the definitions of the
// commands. For the installation; not shown in --help.
#include <memory>
#include <string>

#include "cairn/version.h"
#include "index/machine/status_macros.h"
#include "tools/cli/command.h"
#include "tools/documents/command_text.h"
#include "tools/print/output.h"

namespace cairn::tools {
namespace {

absl::StatusOr<int> RunGenerate(const CLI::App& app, const std::string& what) {
  const CommandLineText text = Describe(app);
  Output output;
  output.Write(what == "man"    ? ManPage(text, Version())
               : what == "bash" ? BashCompletion(text)
               : what == "zsh"  ? ZshCompletion(text)
                                : FishCompletion(text));
  RETURN_IF_ERROR(output.Flush());
  return kGood;
}

}  // namespace

void AddGenerateCommand(CLI::App* app, Action* action) {
  auto what = std::make_shared<std::string>();
  CLI::App* command =
      app->add_subcommand("generate", "Prints the manual page, or a shell's completions");
  command->group("");
  command->add_option("WHAT", *what, "man, bash, zsh or fish")
      ->check(CLI::IsMember({"man", "bash", "zsh", "fish"}))
      ->required();
  command->callback(
      [app, what, action] { *action = [app, what] { return RunGenerate(*app, *what); }; });
}

}  // namespace cairn::tools
