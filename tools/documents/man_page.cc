// The manual page, in the macros of man(7).
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "index/machine/utf8.h"
#include "tools/documents/command_text.h"

namespace cairn::tools {
namespace {

// The code point of a UTF-8 character.
uint32_t CodePoint(std::string_view character) {
  const auto lead = static_cast<uint8_t>(character[0]);
  uint32_t code = character.size() == 1 ? lead : lead & (0x7fu >> character.size());
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<uint8_t>(c) & 0x3f);
  return code;
}

// Escapes text for roff, so that nothing in it is a request or an escape.
std::string Escaped(std::string_view text) {
  std::string escaped;
  if (!text.empty() && (text[0] == '.' || text[0] == '\'')) escaped = "\\&";
  while (!text.empty()) {
    const size_t length = std::max<size_t>(Utf8Length(text), 1);
    switch (text[0]) {
      case '\\':
        escaped += "\\e";
        break;
      case '-':
        escaped += "\\-";
        break;
      case '\'':
        escaped += "\\(aq";
        break;
      case '"':
        escaped += "\\(dq";
        break;
      default:
        if (length == 1) {
          escaped += text[0];
        } else {
          absl::StrAppendFormat(&escaped, "\\[u%04X]", CodePoint(text.substr(0, length)));
        }
    }
    text.remove_prefix(length);
  }
  return escaped;
}

std::string Bold(std::string_view text) {
  return absl::StrCat("\\fB", Escaped(text), "\\fR");
}

std::string Italic(std::string_view text) {
  return absl::StrCat("\\fI", Escaped(text), "\\fR");
}

// Whether a paragraph's line breaks must be kept, as in examples and tables.
bool KeepsLines(const std::string& paragraph) {
  return absl::StrContains(paragraph, "\n ") || absl::StrContains(paragraph, "  ");
}

// The paragraphs of a footer in roff; if KeepsLines, between .nf and .fi.
std::string Paragraphs(const std::string& footer) {
  std::string page;
  const std::vector<std::string> paragraphs =
      absl::StrSplit(footer, "\n\n", absl::SkipWhitespace());
  for (const std::string& paragraph : paragraphs) {
    const bool keeps_lines = KeepsLines(paragraph);
    absl::StrAppend(&page, ".PP\n", keeps_lines ? ".nf\n" : "");
    const std::vector<std::string> lines = absl::StrSplit(paragraph, '\n', absl::SkipEmpty());
    for (const std::string& line : lines) absl::StrAppend(&page, Escaped(line), "\n");
    if (keeps_lines) page += ".fi\n";
  }
  return page;
}

std::string Option(const OptionText& option) {
  std::string head;
  for (const std::string& name : option.names) {
    absl::StrAppend(&head, head.empty() ? "" : ", ", option.positional ? Italic(name) : Bold(name));
  }
  if (!option.positional && !option.value.empty()) {
    absl::StrAppend(&head, "=", Italic(option.value));
    if (option.takes_several) head += " \\[u2026]";
  }
  std::string text = Escaped(option.description);
  if (!option.default_value.empty()) {
    absl::StrAppend(&text, " (default: ", Escaped(option.default_value), ")");
  }
  return absl::StrCat(".TP\n", head, "\n", text, ".\n");
}

std::string Options(const CommandText& command) {
  std::string page;
  std::string group;
  for (const OptionText& option : command.options) {
    if (option.group != group && option.group != "Options" && option.group != "Positionals") {
      absl::StrAppend(&page, ".PP\n", Italic(option.group), "\n");
    }
    group = option.group;
    page += Option(option);
  }
  return page;
}

std::string Synopsis(const CommandText& program, const CommandText& command) {
  std::string line = absl::StrCat(Bold(absl::StrCat(program.name, " ", command.name)));
  for (const OptionText& positional : command.positionals()) {
    absl::StrAppend(&line, " ", Italic(positional.names[0]));
  }
  return absl::StrCat(line, " [", Italic("options"), "]\n");
}

}  // namespace

std::string ManPage(const CommandLineText& text, const std::string& version) {
  const CommandText& program = text.program;
  std::string page = absl::StrFormat(".TH %s 1 \"\" \"%s %s\" \"User Commands\"\n",
                                     absl::AsciiStrToUpper(program.name), program.name, version);
  std::string description = program.description;
  description[0] = absl::ascii_tolower(static_cast<unsigned char>(description[0]));
  if (description.back() == '.') description.pop_back();
  absl::StrAppend(&page, ".SH NAME\n", program.name, " \\- ", Escaped(description),
                  "\n.SH SYNOPSIS\n.nf\n");
  for (const CommandText& command : text.commands) page += Synopsis(program, command);
  absl::StrAppend(&page, ".fi\n.SH OPTIONS\n", Options(program), ".SH COMMANDS\n");
  for (const CommandText& command : text.commands) {
    absl::StrAppend(&page, ".SS ", program.name, " ", Escaped(command.name), "\n",
                    Escaped(command.description), ".\n", Options(command),
                    Paragraphs(command.footer));
  }
  absl::StrAppend(&page, ".SH NOTES\n", Paragraphs(program.footer));
  return page;
}

}  // namespace cairn::tools
