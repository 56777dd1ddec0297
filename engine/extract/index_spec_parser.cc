// IndexSpec::Parse: a recursive-descent parser of the grammar in cairn/index_spec.h.
#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cairn/index_spec.h"
#include "engine/extract/key_part.h"
#include "index/keys/escaped_text.h"
#include "index/keys/key_number.h"
#include "index/keys/text_scanner.h"
#include "index/machine/guard.h"

namespace cairn {
namespace {

constexpr std::string_view kOptions[] = {"cf",       "unique",       "nulls",
                                         "on_error", "dropped_rows", "include"};

// Returns whether the word and '=' begin an option, so that no index can have that name. `include`
// is followed by a parenthesis. An index may be named dropped_rows, since specs are older than that
// option.
bool IsAssignedOption(std::string_view word) {
  for (const std::string_view option : kOptions) {
    if (word == option) return option != "include" && option != "dropped_rows";
  }
  return false;
}

bool IsWordByte(char c) {
  return IsNameByte(c) && c != '.' && c != '-';
}

// Reads one spec. A method that returns false has set status().
class Parser : private TextScanner {
 public:
  explicit Parser(std::string_view text) : TextScanner("index spec", text) {}

  bool Spec(IndexSpec* spec);
  using TextScanner::status;

 private:
  bool Name(IndexSpec* spec);
  bool Part(KeyPart* part);
  bool Source(KeySource* source);
  bool Range(KeySource* source);
  bool FieldOrJson(KeySource* source);
  bool Type(KeyPart* part);
  bool Option(IndexSpec* spec);
  bool Include(IndexSpec* spec);
  bool Column(IndexSpec* spec);

  bool TakeNamed(std::string* name, std::string_view expected);

  // Returns the word before '=', if the next tokens are an option or a name; otherwise an empty
  // string. Does not advance.
  std::string_view PeekAssigned();
  // Returns the option that the next tokens begin, or an empty string. Does not advance.
  std::string_view PeekOption();

  bool has_parts_ = false;  // options may follow
};

bool Parser::TakeNamed(std::string* name, std::string_view expected) {
  return Take('(', "'('") && TakeString(kMaxSpecString, name, expected) && Take(')', "')'");
}

std::string_view Parser::PeekAssigned() {
  const size_t start = offset();
  const std::string_view word = TakeWhile(IsNameByte);
  const bool assigned = Peek() == '=';
  GoTo(start);
  return assigned ? word : std::string_view();
}

std::string_view Parser::PeekOption() {
  const size_t start = offset();
  std::string_view word = TakeWhile(IsNameByte);
  if (Peek() != (word == "include" ? '(' : '=')) word = {};
  GoTo(start);
  return word;
}

bool Parser::Name(IndexSpec* spec) {
  const std::string_view name = PeekAssigned();
  if (name.empty()) return true;
  SkipBlanks();
  if (IsAssignedOption(name)) {
    return Error(offset(),
                 absl::StrFormat("expected a name or a part, found the option '%s': options "
                                 "follow the parts, and no index has such a name",
                                 name));
  }
  if (name.size() > kMaxSpecName) {
    return Error(offset(), absl::StrFormat("expected a name of at most %d bytes, found %d",
                                           kMaxSpecName, name.size()));
  }
  spec->name = std::string(name);
  TakeWhile(IsNameByte);
  return Take('=', "'='");
}

bool Parser::Range(KeySource* source) {
  if (Peek() != '[') return true;
  GoTo(offset() + 1);
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  if (!TakeNumber(kMax, &source->offset, "the range's offset in bytes") ||
      !Take(':', "':' and the range's length, or only ':', after the offset")) {
    return false;
  }
  if (Peek() != ']') {
    uint64_t length = 0;
    if (!TakeNumber(kMax, &length, "the range's length in bytes, or ']'")) return false;
    source->length = length;
  }
  return Take(']', "']'");
}

bool Parser::FieldOrJson(KeySource* source) {
  GoTo(offset() + 1);  // the dot
  SkipBlanks();
  const size_t start = offset();
  const std::string_view word = TakeWhile(IsWordByte);
  if (word == "json") {
    source->kind = KeySource::Kind::kJson;
    return TakeNamed(&source->name, "a JSON pointer between single quotes");
  }
  if (word != "field") return Expected(start, "field or json after 'value.'");
  source->kind = KeySource::Kind::kField;
  std::string delimiter;
  uint64_t field = 0;
  if (!Take('(', "'('")) return false;
  const size_t string_start = offset();
  if (!TakeString(kMaxSpecString, &delimiter, "a delimiter between single quotes")) return false;
  if (delimiter.size() != 1) return Expected(string_start, "a delimiter of one byte");
  source->delimiter = delimiter[0];
  if (!Take(',', "',' and the field's number") ||
      !TakeNumber(std::numeric_limits<uint32_t>::max(), &field, "the field's number") ||
      !Take(')', "')'")) {
    return false;
  }
  source->field = static_cast<uint32_t>(field);
  return true;
}

bool Parser::Source(KeySource* source) {
  SkipBlanks();
  const size_t start = offset();
  const std::string_view word = TakeWhile(IsWordByte);
  if (word == "key") {
    source->kind = KeySource::Kind::kKey;
    return Range(source);
  }
  if (word == "value") {
    source->kind = KeySource::Kind::kValue;
    return Peek() == '.' ? FieldOrJson(source) : Range(source);
  }
  if (word == "column") {
    source->kind = KeySource::Kind::kColumn;
    return TakeNamed(&source->name, "a column's name between single quotes");
  }
  if (word == "custom") {
    source->kind = KeySource::Kind::kCustom;
    return TakeNamed(&source->name, "an extractor's name between single quotes");
  }
  return Expected(
      start, absl::StrCat(
                 "a source (key, value, value.field, value.json, column, custom)",
                 has_parts_ ? " or an option (cf=, unique=true, nulls=, on_error=, dropped_rows=, "
                              "include(…))"
                            : ""));
}

bool Parser::Type(KeyPart* part) {
  SkipBlanks();
  const size_t start = offset();
  std::string_view word = TakeWhile(IsWordByte);
  std::string_view order;
  for (const std::string_view suffix : {"le", "be"}) {
    if (word.size() > 2 && word.substr(word.size() - 2) == suffix) {
      order = suffix;
      word.remove_suffix(2);
    }
  }
  int type = 0;
  const int last = static_cast<int>(DataType::kBytes);
  while (type <= last && DataTypeName(static_cast<DataType>(type)) != word) ++type;
  if (type > last) {
    return Expected(start, "a type (u8 to u64, i8 to i64, f32, f64, text, bytes)");
  }
  part->type = static_cast<DataType>(type);
  if (SaysByteOrder(*part)) {
    if (order.empty()) {
      return Error(start, absl::StrFormat("expected a byte order, %sle or %sbe, for a number from "
                                          "raw bytes, found '%s'",
                                          word, word, word));
    }
    part->endian = order == "le" ? Endian::kLittle : Endian::kBig;
  } else if (!order.empty()) {
    return Error(start, absl::StrFormat("expected '%s': a byte order (le, be) is for numbers of "
                                        "more than one byte from raw bytes, found '%s%s'",
                                        word, word, order));
  }
  return true;
}

bool Parser::Part(KeyPart* part) {
  SkipBlanks();
  const size_t start = offset();
  if (!Source(&part->source) || !Take(':', "':' and a type after the source") || !Type(part)) {
    return false;
  }
  const absl::Status sound = CheckPart(*part);
  return sound.ok() || Error(start, std::string(sound.message()));
}

bool Parser::Column(IndexSpec* spec) {
  SkipBlanks();
  const size_t start = offset();
  if (spec->include.size() == kMaxIncludedColumns) {
    return Expected(start, absl::StrFormat("at most %d columns", kMaxIncludedColumns));
  }
  IncludedColumn column;
  column.name = std::string(TakeWhile(IsNameByte));
  if (column.name.empty() || column.name.size() > kMaxSpecName) {
    return Expected(start, absl::StrFormat("a column's name of 1 to %d bytes", kMaxSpecName));
  }
  for (const IncludedColumn& other : spec->include) {
    if (other.name != column.name) continue;
    return Error(start, absl::StrFormat("expected columns of different names, found '%s' again",
                                        column.name));
  }
  if (!Take('=', "'=' after the column's name") || !Part(&column.value)) return false;
  spec->include.push_back(std::move(column));
  return true;
}

bool Parser::Include(IndexSpec* spec) {
  if (!Take('(', "'('")) return false;
  do {
    if (!Column(spec)) return false;
  } while (Peek() == ',' && Take(',', "','"));
  return Take(')', "',' or ')' after a column");
}

bool Parser::Option(IndexSpec* spec) {
  SkipBlanks();
  const size_t start = offset();
  const std::string_view option = TakeWhile(IsNameByte);
  if (option == "include") return Include(spec);
  if (!Take('=', "'='")) return false;
  if (option == "cf" && Peek() == '\'') {
    return TakeString(kMaxSpecString, &spec->column_family, "a column family's name");
  }
  SkipBlanks();
  const size_t value_start = offset();
  const std::string_view value = TakeWhile(IsNameByte);
  if (option == "cf") {
    if (value.empty() || value.size() > kMaxSpecString) {
      return Expected(value_start, absl::StrFormat("a column family's name of at most %d bytes",
                                                   kMaxSpecString));
    }
    spec->column_family = std::string(value);
  } else if (option == "unique") {
    if (value != "true" && value != "false") return Expected(value_start, "true or false");
    spec->unique = value == "true";
  } else if (option == "nulls") {
    if (value == "skip") {
      spec->nulls = NullPolicy::kSkip;
    } else if (value == "first" || value == "last") {
      spec->nulls = value == "first" ? NullPolicy::kFirst : NullPolicy::kLast;
    } else {
      return Expected(value_start, "skip, first or last");
    }
  } else if (option == "on_error") {
    if (value != "fail" && value != "skip") return Expected(value_start, "fail or skip");
    spec->on_error = value == "skip" ? ErrorPolicy::kSkip : ErrorPolicy::kFail;
  } else if (option == "dropped_rows") {
    if (value != "refuse" && value != "ignore") return Expected(value_start, "refuse or ignore");
    spec->dropped_rows = value == "ignore" ? DroppedRows::kIgnore : DroppedRows::kRefuse;
  } else {
    return Expected(start, "an option (cf, unique, nulls, on_error, dropped_rows, include)");
  }
  return true;
}

bool Parser::Spec(IndexSpec* spec) {
  if (!Name(spec)) return false;
  std::array<bool, std::size(kOptions)> seen = {};
  bool options_began = false;
  while (true) {
    SkipBlanks();
    const size_t start = offset();
    const std::string_view assigned = PeekOption();
    if (!assigned.empty() && !spec->parts.empty()) {
      options_began = true;
      for (size_t i = 0; i < seen.size(); ++i) {
        if (assigned != kOptions[i]) continue;
        if (seen[i]) {
          return Error(start,
                       absl::StrFormat("expected each option once, found '%s' again", assigned));
        }
        seen[i] = true;
      }
      if (!Option(spec)) return false;
    } else if (options_began) {
      return Expected(start, "an option, since parts precede the options");
    } else if (spec->parts.size() == kMaxSpecParts) {
      return Expected(start, absl::StrFormat("at most %d parts", kMaxSpecParts));
    } else {
      spec->parts.emplace_back();
      if (!Part(&spec->parts.back())) return false;
      has_parts_ = true;
    }
    if (Peek() == '\0' && at_end()) return true;
    if (!Take(',', "',' or the end")) return false;
  }
}

}  // namespace

absl::StatusOr<IndexSpec> IndexSpec::Parse(std::string_view text) try {
  if (text.size() > kMaxSpecBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("index spec, at offset 0: expected at most %d bytes, found %d",
                        kMaxSpecBytes, text.size()));
  }
  IndexSpec spec;
  Parser parser(text);
  if (!parser.Spec(&spec)) return parser.status();
  return spec;
} catch (...) {
  return StatusOfException("reading an index specification");
}

}  // namespace cairn
