#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace cairn::tools {

// What an option's value, or a positional argument, names: a shell completes each in its own way.
enum class ValueKind : uint8_t { kNone, kText, kChoice, kFile, kDirectory };

// One option or positional argument, as it was declared.
struct OptionText {
  std::vector<std::string> names;    // with their dashes, the long ones last; a positional's name
  std::string group;                 // the headline above it in --help
  std::string value;                 // what stands for its value, such as DIR; empty for a flag
  std::vector<std::string> choices;  // the only values, where kind is kChoice
  std::string description;
  std::string default_value;  // empty: none is shown
  ValueKind kind = ValueKind::kNone;
  bool positional = false;
  bool required = false;
  bool takes_several = false;  // values after one name
};

// A command with all that it takes, as it was declared.
struct CommandText {
  std::string name;
  std::string description;
  std::string footer;  // paragraphs, apart by empty lines
  std::vector<OptionText> options;

  std::vector<OptionText> positionals() const;
};

// A whole command line: what stands before a command, and the commands.
struct CommandLineText {
  CommandText program;
  std::vector<CommandText> commands;
};

// Reads the definitions, hidden commands left out.
CommandLineText Describe(const CLI::App& app);

// The manual page, in man(7)'s macros.
std::string ManPage(const CommandLineText& text, const std::string& version);

// What completes command lines in a shell.
std::string BashCompletion(const CommandLineText& text);
std::string ZshCompletion(const CommandLineText& text);
std::string FishCompletion(const CommandLineText& text);

}  // namespace cairn::tools
