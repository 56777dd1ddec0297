// The manual page and the shells' completions have the contents of --help, and are valid for their
// readers.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "test/tools/run_tool.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(cli_generate_test)
namespace {

using Words = std::vector<std::string>;

// The names of options in a help text of CLI11.
std::set<std::string> OptionsIn(const std::string& help) {
  std::set<std::string> options;
  for (size_t at = 0; (at = help.find("\n  -", at)) != std::string::npos; ++at) {
    size_t begin = at + 3;
    while (help[begin] == '-') {
      const size_t end = help.find_first_of(" ,\n", begin);
      options.insert(help.substr(begin, end - begin));
      begin = help[end] == ',' ? end + 1 : end;
    }
  }
  return options;
}

// The commands that `cairn --help` shows.
Words Commands() {
  const std::string help = MustRun({"--help"}).out;
  Words commands;
  size_t at = help.find("Subcommands:");
  BOOST_REQUIRE(at != std::string::npos);
  while ((at = help.find('\n', at)) != std::string::npos && help.compare(at, 3, "\n  ") == 0) {
    at += 3;
    commands.push_back(help.substr(at, help.find(' ', at) - at));
  }
  BOOST_REQUIRE(commands.size() == 16u);
  return commands;
}

bool Has(const char* program) {
  return std::system(("command -v " + std::string(program) + " >/dev/null").c_str()) == 0;
}

// Runs a command, which must succeed, and returns its output and errors.
std::string Shell(const std::string& command) {
  TemporaryDirectory directory;
  const int status = std::system((command + " >" + directory / "out" + " 2>&1").c_str());
  const std::string out = ReadFile(directory / "out");
  BOOST_TEST(status == 0, command << ": " << out);
  return out;
}

// The text of `page` from one headline to the next.
std::string SectionOf(const std::string& page, const std::string& headline) {
  const size_t begin = page.find(headline + "\n");
  BOOST_REQUIRE_MESSAGE(begin != std::string::npos, headline);
  return page.substr(begin, page.find("\n.S", begin) - begin);
}

BOOST_AUTO_TEST_CASE(the_manual_page_has_every_command_and_option) {
  std::string page = MustRun({"generate", "man"}).out;
  for (size_t at = 0; (at = page.find("\\-", at)) != std::string::npos;) page.erase(at, 1);
  for (const std::string& option : OptionsIn(MustRun({"--help"}).out)) {
    BOOST_TEST(SectionOf(page, ".SH OPTIONS").find("\\fB" + option + "\\fR") != std::string::npos);
  }
  for (const std::string& command : Commands()) {
    const std::string section = SectionOf(page, ".SS cairn " + command);
    const std::set<std::string> options = OptionsIn(MustRun({command, "--help"}).out);
    BOOST_TEST(options.size() >= 2u, command);
    for (const std::string& option : options) {
      BOOST_TEST(section.find("\\fB" + option + "\\fR") != std::string::npos,
                 command << " " << option);
    }
  }
  BOOST_TEST(page.find("generate") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_manual_page_formats_without_a_warning) {
  TemporaryDirectory directory;
  WriteFile(directory / "cairn.1", MustRun({"generate", "man"}).out);
  if (Has("groff")) {
    BOOST_TEST(Shell("groff -man -Tutf8 -ww -z " + directory / "cairn.1") == "");
    const std::string text = Shell("groff -man -Tutf8 -P-cbou " + directory / "cairn.1");
    for (const char* part :
         {"value.field('|',4):text", "\\xHH", "{\"key\":…,", "--max-bytes-per-second=N"}) {
      BOOST_TEST(text.find(part) != std::string::npos, part << " in " << text);
    }
  } else {
    BOOST_TEST_MESSAGE("no groff here");
  }
  if (Has("mandoc")) Shell("mandoc -T lint -W error " + directory / "cairn.1");
}

// The words that bash would suggest for the last of `words`.
Words Complete(const std::string& script, const Words& words, const std::string& directory) {
  std::string line = "cd '" + directory + "'; source '" + script + "'; COMP_WORDS=(";
  for (const std::string& word : words) line += "'" + word + "' ";
  line += "); COMP_CWORD=" + std::to_string(words.size() - 1) +
          "; _cairn; printf \"%s\\n\" \"${COMPREPLY[@]}\"";
  WriteFile(directory + "/../run.bash", line);
  std::istringstream found(Shell("bash '" + directory + "/../run.bash'"));
  Words offered;
  for (std::string word; std::getline(found, word);) {
    if (!word.empty()) offered.push_back(word);
  }
  std::sort(offered.begin(), offered.end());
  return offered;
}

BOOST_AUTO_TEST_CASE(bash_completes_commands_options_and_values) {
  TemporaryDirectory directory;
  const std::string script = directory / "cairn.bash";
  WriteFile(script, MustRun({"generate", "bash"}).out);
  const std::string here = directory / "here";
  std::filesystem::create_directories(here + "/an index");
  WriteFile(here + "/a.sst", "");
  const auto complete = [&](const Words& words) { return Complete(script, words, here); };
  const auto all = [&](const Words& words) {
    const Words offered = complete(words);
    return std::set<std::string>(offered.begin(), offered.end());
  };

  Words commands = Commands();
  BOOST_TEST(all({"cairn", ""}) == std::set<std::string>(commands.begin(), commands.end()),
             boost::test_tools::per_element());
  BOOST_TEST(all({"cairn", "-"}) == OptionsIn(MustRun({"--help"}).out),
             boost::test_tools::per_element());
  for (const std::string& command : commands) {
    BOOST_TEST(all({"cairn", command, "-"}) == OptionsIn(MustRun({command, "--help"}).out),
               boost::test_tools::per_element());
  }
  BOOST_TEST((complete({"cairn", "ca"}) == Words{"catch-up"}));
  BOOST_TEST((complete({"cairn", "query", "x", "--format", ""}) == Words{"json", "text", "tsv"}));
  BOOST_TEST((complete({"cairn", "query", "x", "--format", "=", "t"}) == Words{"text", "tsv"}));
  BOOST_TEST((complete({"cairn", "query", "x", "--format", "="}) == Words{"json", "text", "tsv"}));
  BOOST_TEST((complete({"cairn", "build", "--nulls", "=", "s"}) == Words{"skip"}));
  BOOST_TEST((complete({"cairn", "query", ""}) == Words{"an index"}));
  BOOST_TEST((complete({"cairn", "query", "x", "--keys", ""}) == Words{"a.sst", "an index"}));
  BOOST_TEST((complete({"cairn", "query", "x", "--limit", ""}) == Words{}));
  BOOST_TEST((complete({"cairn", "build", "--db", "=", "a"}) == Words{"an index"}));
  BOOST_TEST((complete({"cairn", "build", "--sst", "b.sst", "a.s"}) == Words{"a.sst"}));
  BOOST_TEST((complete({"cairn", "build", "--sst", "b.sst", "--uni"}) == Words{"--unique"}));
}

BOOST_AUTO_TEST_CASE(zsh_and_fish_complete_every_command_and_option) {
  TemporaryDirectory directory;
  for (const std::string shell : {"zsh", "fish"}) {
    const std::string script = MustRun({"generate", shell}).out;
    WriteFile(directory / shell, script);
    for (const std::string& command : Commands()) {
      const std::string begin =
          shell == "zsh" ? "        " + command + ")\n"
                         : "complete -c cairn -n '__fish_seen_subcommand_from " + command + "'";
      const std::string end = shell == "zsh" ? ";;" : "__fish_use_subcommand";
      const size_t at = script.find(begin);
      BOOST_REQUIRE_MESSAGE(at != std::string::npos, begin);
      const std::string part = script.substr(at, script.find(end, at) - at);
      for (const std::string& option : OptionsIn(MustRun({command, "--help"}).out)) {
        const std::string name = shell == "zsh"       ? "'*" + option
                                 : option.size() == 2 ? " -s " + option.substr(1) + " "
                                                      : " -l " + option.substr(2) + " ";
        BOOST_TEST(part.find(name) != std::string::npos, name << " in " << part);
      }
    }
    if (Has(shell.c_str())) BOOST_TEST(Shell(shell + " -n " + directory / shell) == "");
  }
  if (!Has("fish")) return;
  // fish prints its suggestions.
  const auto offers = [&](const std::string& line) {
    return Shell("HOME=" + directory / "home" + " fish -N -c 'source " + directory / "fish" +
                 "; complete -C\"" + line + "\"'");
  };
  BOOST_TEST(offers("cairn ca").find("catch-up\t") == 0u);
  BOOST_TEST(offers("cairn query x --format=t").find("--format=tsv") != std::string::npos);
  BOOST_TEST(offers("cairn build --uni").find("--unique\t") == 0u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
