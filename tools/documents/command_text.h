#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace cairn::tools {

// The kind of an option's value or of a positional argument; shells complete each differently.
enum class ValueKind : uint8_t { kNone, kText, kChoice, kFile, kDirectory };

// The declaration of one option or positional argument.
struct OptionText {
  std::vector<std::string> names;    // with their dashes, long ones last; or a positional's name
  std::string group;                 // its headline in --help
  std::string value;                 // the placeholder of its value, such as DIR; empty for a flag
  std::vector<std::string> choices;  // the permitted values if kind is kChoice
  std::string description;
  std::string default_value;  // empty if none is shown
  ValueKind kind = ValueKind::kNone;
  bool positional = false;
  bool required = false;
  bool takes_several = false;  // values after one name
};

// The declaration of a command.
struct CommandText {
  std::string name;
  std::string description;
  std::string footer;  // paragraphs, separated by empty lines
  std::vector<OptionText> options;

  std::vector<OptionText> positionals() const;
};

// A whole command line: the program's own options, and the commands.
struct CommandLineText {
  CommandText program;
  std::vector<CommandText> commands;
};

// Reads the declarations, without hidden commands.
CommandLineText Describe(const CLI::App& app);

// The manual page, in the macros of man(7).
std::string ManPage(const CommandLineText& text, const std::string& version);

// Scripts that complete the command line in a shell.
std::string BashCompletion(const CommandLineText& text);
std::string ZshCompletion(const CommandLineText& text);
std::string FishCompletion(const CommandLineText& text);

}  // namespace cairn::tools
