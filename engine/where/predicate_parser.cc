// Predicate::Parse: a recursive-descent parser of the grammar in cairn/predicate.h.
#include <algorithm>
#include <charconv>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cairn/predicate.h"
#include "engine/where/predicate_names.h"
#include "index/keys/escaped_text.h"
#include "index/keys/key_number.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr std::string_view kKeywords[] = {"and",  "or",     "not",  "in",   "between", "is",
                                          "null", "starts", "with", "like", "true",    "false"};
// Numbers without digits, after an optional sign. They are keywords only in place of a value.
constexpr std::pair<std::string_view, double> kNamedNumbers[] = {
    {"nan", std::numeric_limits<double>::quiet_NaN()},
    {"inf", std::numeric_limits<double>::infinity()},
    {"infinity", std::numeric_limits<double>::infinity()}};
constexpr int kMaxNesting = 200;

// Returns whether `text` equals this lower-case word, ignoring case.
bool IsWord(std::string_view text, std::string_view word) {
  return text.size() == word.size() &&
         std::equal(text.begin(), text.end(), word.begin(), [](char a, char b) {
           return absl::ascii_tolower(static_cast<unsigned char>(a)) == b;
         });
}

// Returns the value of the next '?', for this part of the key in a comparison of `index`.
using NextParameter =
    std::function<absl::StatusOr<DataValue>(const std::string& index, size_t part)>;

class PredicateParser {
 public:
  PredicateParser(std::string_view text, NextParameter next_parameter)
      : text_(text), next_parameter_(std::move(next_parameter)) {}

  absl::StatusOr<Predicate> Whole() {
    ASSIGN_OR_RETURN(Predicate predicate, Either());
    SkipBlanks();
    if (at_ < text_.size()) return Expected("AND, OR or the end");
    return predicate;
  }

 private:
  absl::StatusOr<Predicate> Either() {
    std::vector<Predicate> parts;
    do {
      ASSIGN_OR_RETURN(Predicate part, Both());
      parts.push_back(std::move(part));
    } while (TakeWord("or"));
    return parts.size() == 1 ? std::move(parts[0]) : Predicate::Any(std::move(parts));
  }

  absl::StatusOr<Predicate> Both() {
    std::vector<Predicate> parts;
    do {
      ASSIGN_OR_RETURN(Predicate part, Unary());
      parts.push_back(std::move(part));
    } while (TakeWord("and"));
    return parts.size() == 1 ? std::move(parts[0]) : Predicate::All(std::move(parts));
  }

  absl::StatusOr<Predicate> Unary() {
    if (++nesting_ > kMaxNesting) {
      return Error(at_, absl::StrFormat("nested deeper than %d", kMaxNesting));
    }
    absl::StatusOr<Predicate> predicate = Nested();
    --nesting_;
    return predicate;
  }

  absl::StatusOr<Predicate> Nested() {
    if (TakeWord("not")) {
      ASSIGN_OR_RETURN(const Predicate negated, Unary());
      return !negated;
    }
    if (Take('(')) {
      ASSIGN_OR_RETURN(Predicate inner, Either());
      if (!Take(')')) return Expected("')', AND or OR");
      return inner;
    }
    if (TakeWord("true")) return Predicate::All({});
    if (TakeWord("false")) return Predicate::Any({});
    return ComparisonOfIndex();
  }

  absl::StatusOr<Predicate> ComparisonOfIndex() {
    index_.clear();
    RETURN_IF_ERROR(TakeIndex(&index_));
    const std::string& index = index_;
    bytes_.clear();
    if (TakeWord("is")) {
      const bool negated = TakeWord("not");
      if (!TakeWord("null")) return Expected(negated ? "NULL" : "NULL or NOT NULL");
      return NegatedIf(negated, Predicate::IsNull(index));
    }
    const bool negated = TakeWord("not");
    if (TakeWord("in")) return ListOrRange(index, negated);
    if (TakeWord("between")) return Between(index, negated);
    if (TakeWord("starts")) {
      if (!TakeWord("with")) return Expected("WITH");
      ASSIGN_OR_RETURN(const LogicalKey prefix, Key());
      return NegatedIf(negated, Predicate(index, KeyQuery::BytePrefix(prefix)));
    }
    if (TakeWord("like")) return Like(index, negated);
    if (negated) return Expected("IN, BETWEEN, LIKE or STARTS WITH");
    return Order(index);
  }

  absl::StatusOr<Predicate> Order(const std::string& index) {
    if (TakeSymbol("<>") || TakeSymbol("!=")) {
      ASSIGN_OR_RETURN(const LogicalKey key, Key());
      return !Predicate(index, KeyQuery(std::vector<LogicalKey>{key}));
    }
    using Compared = KeyQuery (*)(LogicalKey);
    for (const auto& [symbol, compared] :
         std::initializer_list<std::pair<const char*, Compared>>{{"<=", KeyQuery::AtMost},
                                                                 {">=", KeyQuery::AtLeast},
                                                                 {"<", KeyQuery::LessThan},
                                                                 {">", KeyQuery::GreaterThan}}) {
      if (!TakeSymbol(symbol)) continue;
      ASSIGN_OR_RETURN(const LogicalKey key, Key());
      return Predicate(index, compared(key));
    }
    if (!TakeSymbol("=")) {
      return Expected("=, <>, <, <=, >, >=, IN, BETWEEN, LIKE, STARTS WITH or IS");
    }
    ASSIGN_OR_RETURN(const LogicalKey key, Key());
    return Predicate(index, KeyQuery(std::vector<LogicalKey>{key}));
  }

  absl::StatusOr<Predicate> ListOrRange(const std::string& index, bool negated) {
    if (Take('[')) {
      ASSIGN_OR_RETURN(const LogicalKey lower, Key());
      if (!Take(',')) return Expected("','");
      ASSIGN_OR_RETURN(const LogicalKey upper, Key());
      if (!Take(')')) return Expected("')'");
      return NegatedIf(negated, Predicate(index, KeyQuery::Range(lower, upper)));
    }
    if (!Take('(')) return Expected("'('");
    std::vector<LogicalKey> keys;
    if (!Take(')')) {
      do {
        ASSIGN_OR_RETURN(LogicalKey key, Key());
        keys.push_back(std::move(key));
      } while (Take(','));
      if (!Take(')')) return Expected("',' or ')'");
    }
    return NegatedIf(negated, Predicate(index, KeyQuery(std::move(keys))));
  }

  absl::StatusOr<Predicate> Between(const std::string& index, bool negated) {
    ASSIGN_OR_RETURN(const LogicalKey lower, Key());
    if (!TakeWord("and")) return Expected("AND");
    ASSIGN_OR_RETURN(const LogicalKey upper, Key());
    return NegatedIf(negated, Predicate(index, KeyQuery::Between(lower, upper)));
  }

  absl::StatusOr<Predicate> Like(const std::string& index, bool negated) {
    SkipBlanks();
    const size_t begin = at_;
    std::vector<DataValue> value;
    RETURN_IF_ERROR(TakeValue(&value));
    if (std::holds_alternative<std::monostate>(value[0])) {
      return NegatedIf(negated, Predicate(index, KeyQuery(nullptr)));
    }
    const auto* const text = std::get_if<std::string_view>(&value[0]);
    if (text == nullptr) {
      return Error(begin, absl::StrCat("LIKE: expected 'text', found ", Described(value[0])));
    }
    std::string pattern(*text);
    const bool prefix = !pattern.empty() && pattern.back() == '%';
    if (prefix) pattern.pop_back();
    if (pattern.find_first_of("%_") != std::string::npos) {
      return Error(begin, "LIKE supports one wildcard, a '%' at the pattern's end");
    }
    return NegatedIf(negated, prefix ? Predicate(index, KeyQuery::BytePrefix(pattern))
                                     : Predicate(index, KeyQuery(pattern)));
  }

  static Predicate NegatedIf(bool negated, const Predicate& predicate) {
    return negated ? !predicate : predicate;
  }

  // Reads a key whose parts are views into bytes_.
  absl::StatusOr<LogicalKey> Key() {
    std::vector<DataValue> parts;
    if (!Take('(')) {
      RETURN_IF_ERROR(TakeValue(&parts));
      return LogicalKey::OfParts(parts);
    }
    do {
      RETURN_IF_ERROR(TakeValue(&parts));
    } while (Take(','));
    if (!Take(')')) return Expected("',' or ')'");
    return LogicalKey::OfParts(parts);
  }

  absl::Status TakeValue(std::vector<DataValue>* parts) {
    if (TakeWord("null")) return parts->emplace_back(), absl::OkStatus();
    const size_t begin = at_;
    if (Take('?')) {
      absl::StatusOr<DataValue> value = next_parameter_(index_, parts->size());
      if (!value.ok()) return Error(begin, std::string(value.status().message()));
      return parts->push_back(*value), absl::OkStatus();
    }
    if (at_ < text_.size() && text_[at_] == '\'') {
      std::string text;
      RETURN_IF_ERROR(TakeText(&text));
      parts->emplace_back(std::string_view(bytes_.emplace_back(std::move(text))));
      return absl::OkStatus();
    }
    return TakeNumber(parts);
  }

  absl::Status TakeNumber(std::vector<DataValue>* parts) {
    SkipBlanks();
    const bool negative = at_ < text_.size() && text_[at_] == '-';
    for (const auto& [name, number] : kNamedNumbers) {
      if (!IsWord(Word(at_ + negative), name)) continue;
      at_ += negative + name.size();
      return parts->emplace_back(negative ? -number : number), absl::OkStatus();
    }
    size_t end = at_;
    const auto is_number_byte = [&](size_t i) {
      const char c = text_[i];
      const bool after_exponent = i > at_ && (text_[i - 1] == 'e' || text_[i - 1] == 'E');
      return (c >= '0' && c <= '9') || c == '.' || ((c == 'e' || c == 'E') && i > at_) ||
             (c == '-' && (i == at_ || after_exponent)) || (c == '+' && after_exponent);
    };
    while (end < text_.size() && is_number_byte(end)) ++end;
    const char* const first = text_.data() + at_;
    const char* const last = text_.data() + end;
    const std::string_view digits = text_.substr(at_, end - at_);
    bool out_of_range = false;
    const auto read = [&](auto number) {
      const std::from_chars_result result = std::from_chars(first, last, number);
      if (first == last || result.ptr != last) return false;
      if (result.ec == std::errc()) return parts->emplace_back(number), true;
      out_of_range = out_of_range || result.ec == std::errc::result_out_of_range;
      return false;
    };
    const bool is_real = digits.find_first_of(".eE") != std::string_view::npos;
    if (is_real ? read(double{}) : read(uint64_t{}) || read(int64_t{})) {
      // Integers have no -0, which in an index of floats is another key than 0.
      const auto* const integer = std::get_if<int64_t>(&parts->back());
      if (integer != nullptr && *integer == 0) parts->back() = -0.0;
      at_ = end;
      return absl::OkStatus();
    }
    if (!out_of_range) return Expected("a number, 'text', NULL, ? or (a, b)");
    return Expected(is_real ? "a number that fits in a 64-bit float"
                            : "an integer from -9223372036854775808 to 18446744073709551615, or a "
                              "float, which has a '.'");
  }

  absl::Status TakeText(std::string* text) {
    SkipBlanks();
    const size_t begin = at_;
    if (at_ == text_.size() || text_[at_] != '\'') return Expected("'text'");
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\'') {
        ++at_;
        if (at_ == text_.size() || text_[at_] != '\'') return absl::OkStatus();
        text->push_back('\'');
      } else if (text_[at_] == '\\') {
        char byte = 0;
        if (at_ + 1 == text_.size() || text_[at_ + 1] != 'x' ||
            !ReadHexEscape(text_.substr(at_ + 2), &byte)) {
          return Error(at_, "expected \\xHH after a backslash; a backslash itself is \\x5c");
        }
        text->push_back(byte);
        at_ += 3;
      } else {
        text->push_back(text_[at_]);
      }
    }
    return Error(begin, "unterminated text: expected a single quote");
  }

  absl::Status TakeIndex(std::string* index) {
    SkipBlanks();
    const size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '"') {
      for (++at_; at_ < text_.size(); ++at_) {
        if (text_[at_] != '"') {
          index->push_back(text_[at_]);
        } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
          index->push_back(text_[at_++]);
        } else {
          return ++at_, absl::OkStatus();
        }
      }
      return Error(begin, "unterminated name: expected a double quote");
    }
    if (at_ == text_.size() || !StartsIndexName(text_[at_]) || IsPredicateKeyword(Word())) {
      return Expected("an index's name, NOT or '('");
    }
    *index = std::string(Word());
    at_ += index->size();
    return absl::OkStatus();
  }

  // Returns the word that begins here. Does not advance.
  std::string_view Word() const { return Word(at_); }
  std::string_view Word(size_t begin) const {
    size_t end = begin;
    while (end < text_.size() && IsIndexNameByte(text_[end])) ++end;
    return text_.substr(begin, end - begin);
  }
  bool TakeWord(std::string_view word) {
    SkipBlanks();
    if (!IsWord(Word(), word)) return false;
    at_ += word.size();
    return true;
  }
  bool TakeSymbol(std::string_view symbol) {
    SkipBlanks();
    if (text_.substr(at_, symbol.size()) != symbol) return false;
    at_ += symbol.size();
    return true;
  }
  bool Take(char c) { return TakeSymbol(std::string_view(&c, 1)); }
  void SkipBlanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  static absl::Status Error(size_t offset, std::string_view what) {
    return absl::InvalidArgumentError(absl::StrFormat("predicate, at offset %d: %s", offset, what));
  }
  absl::Status Expected(std::string_view expected) const {
    const std::string_view rest = text_.substr(at_);
    return Error(at_, absl::StrFormat("expected %s, found %s", expected,
                                      rest.empty() ? "the end" : Quoted(rest, 20)));
  }

  const std::string_view text_;
  const NextParameter next_parameter_;
  size_t at_ = 0;
  int nesting_ = 0;
  std::string index_;              // of the current comparison
  std::deque<std::string> bytes_;  // of the current comparison
};

}  // namespace

bool IsPredicateKeyword(std::string_view word) {
  for (const std::string_view keyword : kKeywords) {
    if (IsWord(word, keyword)) return true;
  }
  return false;
}

absl::StatusOr<Predicate> Predicate::Parse(std::string_view text,
                                           absl::Span<const PartValue> parameters) {
  return Guarded("reading a predicate", [&]() -> absl::StatusOr<Predicate> {
    size_t used = 0;
    const auto next = [&](const std::string&, size_t) -> absl::StatusOr<DataValue> {
      if (used == parameters.size()) {
        return absl::InvalidArgumentError(
            absl::StrFormat("expected a value of parameter %d, found %d value%s", used + 1,
                            parameters.size(), parameters.size() == 1 ? "" : "s"));
      }
      return parameters[used++].value();
    };
    ASSIGN_OR_RETURN(Predicate predicate, PredicateParser(text, next).Whole());
    if (used != parameters.size()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("predicate: expected %d parameter%s, one for each ?, found %d values",
                          used, used == 1 ? "" : "s", parameters.size()));
    }
    return predicate;
  });
}

absl::StatusOr<std::vector<Predicate::Parameter>> Predicate::ParametersOf(std::string_view text) {
  return Guarded("reading a predicate", [&]() -> absl::StatusOr<std::vector<Parameter>> {
    std::vector<Parameter> parameters;
    const auto next = [&](const std::string& index, size_t part) -> absl::StatusOr<DataValue> {
      parameters.push_back({index, part});
      return DataValue();
    };
    RETURN_IF_ERROR(PredicateParser(text, next).Whole().status());
    return parameters;
  });
}

}  // namespace cairn
