#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace cairn {

// Reads the tokens of a text from its beginning on, for parsers of small languages. A method that
// takes something skips the blanks before it. A method that returns false has set status():
// InvalidArgument, with the offset in the text and the expected token.
class TextScanner {
 public:
  // Messages use `name` for the text, which must outlive this.
  TextScanner(std::string_view name, std::string_view text) : name_(name), text_(text) {}

  const absl::Status& status() const { return status_; }
  size_t offset() const { return at_; }
  bool at_end() const { return at_ == text_.size(); }
  void GoTo(size_t offset) { at_ = offset; }
  void SkipBlanks();

  // The next byte after blanks, or '\0' at the end; takes nothing.
  char Peek();
  bool Take(char c, std::string_view expected);
  // Takes the rest up to the first byte that does not belong; may be empty.
  std::string_view TakeWhile(bool (*belongs)(char));
  // A single-quoted string of at most `max` bytes, in which \' \\ and \xHH are escapes.
  bool TakeString(size_t max, std::string* value, std::string_view expected);
  // Decimal digits of a number of at most `max`.
  bool TakeNumber(uint64_t max, uint64_t* value, std::string_view expected);

  // Each returns false and sets the status.
  bool Expected(size_t offset, std::string_view expected);  // adds the text found there
  bool Error(size_t offset, std::string_view what);

 private:
  const std::string_view name_;
  const std::string_view text_;
  size_t at_ = 0;
  absl::Status status_;
};

}  // namespace cairn
