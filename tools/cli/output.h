#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace cairn::tools {

// Standard output, buffered. The first write that fails (a full disk, a closed pipe where SIGPIPE
// is ignored) is kept and nothing is written after it: look at status() now and then, and at
// Flush().
class Output {
 public:
  Output() = default;
  ~Output() { Flush().IgnoreError(); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void Write(std::string_view text) {
    buffer_.append(text);
    if (buffer_.size() >= kBufferBytes) Flush().IgnoreError();
  }
  absl::Status Flush();
  const absl::Status& status() const { return status_; }

 private:
  static constexpr size_t kBufferBytes = size_t{1} << 16;

  std::string buffer_;
  absl::Status status_;
};

// Bytes as the formats for machines show them: every byte outside '!' … '~', and the backslash, as
// lower-case \xHH.
void AppendEscaped(std::string_view bytes, std::string* text);

// Bytes as people read them: UTF-8 and blanks as they are, what is not text or could command a
// terminal as \xHH, and the backslash too.
void AppendReadable(std::string_view bytes, std::string* text);

// The length of the UTF-8 character at the start of `bytes`, or 0 if there is none: overlong forms,
// surrogates and numbers above 10FFFF are none.
size_t Utf8Length(std::string_view bytes);

// 1234567 as "1,234,567".
std::string WithCommas(uint64_t number);
// 3650722201 as "3.4 GiB".
std::string WithUnit(uint64_t bytes);

}  // namespace cairn::tools
