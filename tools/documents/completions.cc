// Scripts that complete the command line in bash, zsh and fish.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tools/documents/command_text.h"

namespace cairn::tools {
namespace {

std::string Names(const CommandText& command) {
  std::vector<std::string> names;
  for (const OptionText& option : command.options) {
    if (!option.positional) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return absl::StrJoin(names, " ");
}

std::string Names(const std::vector<CommandText>& commands) {
  return absl::StrJoin(commands, " ", [](std::string* out, const CommandText& command) {
    absl::StrAppend(out, command.name);
  });
}

// In single quotes, as all three shells parse them; in fish a backslash escapes a quote inside.
std::string Quoted(const std::string& text, const char* escaped_quote) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", escaped_quote}}), "'");
}

// bash: the call that completes a value.
std::string BashValue(const OptionText& option) {
  switch (option.kind) {
    case ValueKind::kChoice:
      return absl::StrCat("_cairn_words '", absl::StrJoin(option.choices, " "), "'");
    case ValueKind::kFile:
      return "_cairn_paths -f";
    case ValueKind::kDirectory:
      return "_cairn_paths -d";
    case ValueKind::kText:
    case ValueKind::kNone:
      break;
  }
  return ":";
}

constexpr char kBashStart[] =
    R"(# bash completion for cairn; made by 'cairn generate bash'.
_cairn_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")
}

_cairn_paths() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$current")
}

_cairn() {
  local current=${COMP_WORDS[COMP_CWORD]} command='' option='' last='' i
  COMPREPLY=()
  # '=' is a word of its own: --option = value.
  if [[ $current == '=' ]]; then
    current=''
    option=${COMP_WORDS[COMP_CWORD - 1]}
  elif ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[COMP_CWORD - 1]} == '=' ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  else
    option=${COMP_WORDS[COMP_CWORD - 1]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == -* ]] && last=${COMP_WORDS[i]}
    [[ -z $command && ${COMP_WORDS[i]} != -* ]] && command=${COMP_WORDS[i]}
  done
)";

// zsh: the text after the description of an option or positional.
std::string ZshValue(const OptionText& option) {
  switch (option.kind) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kChoice:
      return absl::StrCat(":", option.value, ":(", absl::StrJoin(option.choices, " "), ")");
    case ValueKind::kFile:
      return absl::StrCat(":", option.value, ":_files");
    case ValueKind::kDirectory:
      return absl::StrCat(":", option.value, ":_files -/");
    case ValueKind::kText:
      break;
  }
  return absl::StrCat(":", option.value, ": ");
}

std::string ZshArguments(const CommandText& command, const char* indent) {
  std::string arguments;
  const auto add = [&](const std::string& argument) {
    absl::StrAppend(&arguments, " \\\n", indent, Quoted(argument, "'\\''"));
  };
  for (const OptionText& option : command.options) {
    if (option.positional) {
      add(ZshValue(option));
      continue;
    }
    const std::string description = absl::StrReplaceAll(
        option.description, {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
    for (const std::string& name : option.names) {
      const bool with_equals = !option.value.empty() && name.size() > 2;
      add(absl::StrCat("*", name, with_equals ? "=" : "", "[", description, "]", ZshValue(option)));
    }
  }
  return arguments;
}

// fish: the arguments that complete an option's value or a positional.
std::string FishValue(const OptionText& option) {
  switch (option.kind) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kChoice:
      return absl::StrCat(" -x -a '", absl::StrJoin(option.choices, " "), "'");
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kDirectory:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kText:
      break;
  }
  return " -x";
}

std::string FishOptions(const CommandText& command, const std::string& condition) {
  std::string lines;
  for (const OptionText& option : command.options) {
    absl::StrAppend(&lines, "complete -c cairn -n ", condition);
    if (!option.positional) {
      for (const std::string& name : option.names) {
        absl::StrAppend(&lines, name.size() == 2 ? " -s " : " -l ",
                        name.substr(name.size() == 2 ? 1 : 2));
      }
    }
    absl::StrAppend(&lines, FishValue(option), " -d ", Quoted(option.description, "\\'"), "\n");
  }
  return lines;
}

}  // namespace

std::string BashCompletion(const CommandLineText& text) {
  std::string script(kBashStart);
  // A value: of the previous word's option, or another value of the last option.
  std::string values, more_values, words;
  for (const CommandText& command : text.commands) {
    std::string positional = ":";
    for (const OptionText& option : command.options) {
      if (option.positional) positional = BashValue(option);
      if (option.positional || option.kind == ValueKind::kNone) continue;
      for (const std::string& name : option.names) {
        const std::string line =
            absl::StrCat("    ", command.name, ":", name, ") ", BashValue(option), "; return ;;\n");
        values += line;
        if (option.takes_several) more_values += line;
      }
    }
    absl::StrAppend(&words, "    ", command.name, ":-*) _cairn_words '", Names(command), "' ;;\n",
                    "    ", command.name, ":*) ", positional, " ;;\n");
  }
  absl::StrAppend(&script, "  case $command:$option in\n", values, "  esac\n");
  absl::StrAppend(&script, "  [[ $current == -* ]] || case $command:$last in\n", more_values,
                  "  esac\n");
  absl::StrAppend(&script, "  case $command:$current in\n    :-*) _cairn_words '",
                  Names(text.program), "' ;;\n    :*) _cairn_words '", Names(text.commands),
                  "' ;;\n", words, "  esac\n}\n\ncomplete -F _cairn cairn\n");
  return script;
}

std::string ZshCompletion(const CommandLineText& text) {
  std::string script =
      "#compdef cairn\n"
      "# zsh completion for cairn; made by 'cairn generate zsh'.\n"
      "_cairn() {\n"
      "  local curcontext=$curcontext state line\n"
      "  typeset -A opt_args\n"
      "  local -a commands=(\n";
  for (const CommandText& command : text.commands) {
    const std::string description =
        absl::StrReplaceAll(command.description, {{"\\", "\\\\"}, {":", "\\:"}});
    absl::StrAppend(&script, "    ", Quoted(command.name + ":" + description, "'\\''"), "\n");
  }
  absl::StrAppend(&script, "  )\n  _arguments -C", ZshArguments(text.program, "    "),
                  " \\\n    '1:command:->command' \\\n    '*::argument:->argument'\n"
                  "  case $state in\n"
                  "    command) _describe command commands ;;\n"
                  "    argument)\n"
                  "      case $words[1] in\n");
  for (const CommandText& command : text.commands) {
    absl::StrAppend(&script, "        ", command.name, ")\n          _arguments",
                    ZshArguments(command, "            "), "\n          ;;\n");
  }
  absl::StrAppend(&script, "      esac\n      ;;\n  esac\n}\n\n_cairn \"$@\"\n");
  return script;
}

std::string FishCompletion(const CommandLineText& text) {
  std::string script =
      "# fish completion for cairn; made by 'cairn generate fish'.\n"
      "complete -c cairn -f\n";
  script += FishOptions(text.program, "__fish_use_subcommand");
  for (const CommandText& command : text.commands) {
    absl::StrAppend(
        &script, "complete -c cairn -n __fish_use_subcommand -a ", command.name, " -d ",
        Quoted(command.description, "\\'"), "\n",
        FishOptions(command, absl::StrCat("'__fish_seen_subcommand_from ", command.name, "'")));
  }
  return script;
}

}  // namespace cairn::tools
