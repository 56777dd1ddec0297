#include "tools/documents/command_text.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_split.h"

namespace cairn::tools {
namespace {

// The values of a type such as "WHERE:{skip,first,last}", which CLI::IsMember makes.
std::vector<std::string> Choices(const std::string& type) {
  const size_t begin = type.find('{');
  const size_t end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return absl::StrSplit(type.substr(begin + 1, end - begin - 1), ',');
}

ValueKind KindOf(const OptionText& option) {
  if (!option.choices.empty()) return ValueKind::kChoice;
  if (option.value.empty()) return ValueKind::kNone;
  if (option.value == "DIR" || option.value == "INDEX") return ValueKind::kDirectory;
  return option.value == "FILE" ? ValueKind::kFile : ValueKind::kText;
}

OptionText DescribeOption(const CLI::Option& option) {
  OptionText text;
  text.positional = option.get_positional();
  text.required = option.get_required();
  text.group = option.get_group();
  text.description = option.get_description();
  text.default_value = option.get_default_str();
  text.takes_several = option.get_expected_max() > 1 && option.get_allow_extra_args();
  const std::string type = option.get_type_name();
  if (text.positional) {
    text.names = {option.get_name(/*positional=*/true)};
    text.value = text.names[0];
  } else {
    for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
    if (option.get_items_expected_max() > 0) text.value = type.substr(0, type.find(':'));
  }
  text.choices = Choices(type);
  text.kind = KindOf(text);
  return text;
}

CommandText DescribeCommand(const CLI::App& command) {
  CommandText text;
  text.name = command.get_name();
  text.description = command.get_description();
  text.footer = command.get_footer();
  for (const std::string& group : command.get_groups()) {
    for (const CLI::Option* option : command.get_options()) {
      if (!group.empty() && option->get_group() == group)
        text.options.push_back(DescribeOption(*option));
    }
  }
  return text;
}

}  // namespace

std::vector<OptionText> CommandText::positionals() const {
  std::vector<OptionText> found;
  std::copy_if(options.begin(), options.end(), std::back_inserter(found),
               [](const OptionText& option) { return option.positional; });
  return found;
}

CommandLineText Describe(const CLI::App& app) {
  CommandLineText text;
  text.program = DescribeCommand(app);
  const auto shown = [](const CLI::App* command) { return !command->get_group().empty(); };
  for (const CLI::App* command : app.get_subcommands(shown)) {
    text.commands.push_back(DescribeCommand(*command));
    // A command without one inherits the program's in CLI11.
    if (text.commands.back().footer == text.program.footer) text.commands.back().footer.clear();
  }
  return text;
}

}  // namespace cairn::tools
