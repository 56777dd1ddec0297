#include "index/keys/text_scanner.h"

#include <charconv>
#include <system_error>

#include "absl/strings/str_format.h"
#include "index/keys/escaped_text.h"

namespace cairn {

void TextScanner::SkipBlanks() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
    ++at_;
  }
}

bool TextScanner::Error(size_t offset, std::string_view what) {
  status_ =
      absl::InvalidArgumentError(absl::StrFormat("%s, at offset %d: %s", name_, offset, what));
  return false;
}

bool TextScanner::Expected(size_t offset, std::string_view expected) {
  const std::string_view rest = text_.substr(offset);
  return Error(offset, absl::StrFormat("expected %s, found %s", expected,
                                       rest.empty() ? "the end" : Quoted(rest, 20)));
}

char TextScanner::Peek() {
  SkipBlanks();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool TextScanner::Take(char c, std::string_view expected) {
  if (Peek() != c || at_ == text_.size()) return Expected(at_, expected);
  ++at_;
  return true;
}

std::string_view TextScanner::TakeWhile(bool (*belongs)(char)) {
  SkipBlanks();
  const size_t start = at_;
  while (at_ < text_.size() && belongs(text_[at_])) ++at_;
  return text_.substr(start, at_ - start);
}

bool TextScanner::TakeString(size_t max, std::string* value, std::string_view expected) {
  if (!Take('\'', expected)) return false;
  const size_t start = at_ - 1;
  value->clear();
  while (at_ < text_.size() && text_[at_] != '\'') {
    char c = text_[at_++];
    if (c == '\\') {
      const char next = at_ < text_.size() ? text_[at_] : '\0';
      if (next == '\'' || next == '\\') {
        c = next;
        ++at_;
      } else if (next == 'x' && ReadHexEscape(text_.substr(at_ + 1), &c)) {
        at_ += 3;
      } else {
        return Expected(at_ - 1, "\\', \\\\ or \\xHH after a backslash");
      }
    }
    value->push_back(c);
  }
  if (at_ == text_.size()) return Expected(at_, "a single quote at the end of the string");
  ++at_;
  if (value->size() > max) {
    return Error(start, absl::StrFormat("expected a string of at most %d bytes, found %d", max,
                                        value->size()));
  }
  return true;
}

bool TextScanner::TakeNumber(uint64_t max, uint64_t* value, std::string_view expected) {
  SkipBlanks();
  const char* const begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), *value);
  if (error == std::errc::invalid_argument) return Expected(at_, expected);
  if (error != std::errc() || *value > max) {
    return Expected(at_, absl::StrFormat("%s of at most %d", expected, max));
  }
  at_ += static_cast<size_t>(end - begin);
  return true;
}

}  // namespace cairn
