#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace cairn::tools {

// Buffered standard output. The error of the first write that fails is kept, and nothing is written
// after it: a full disk, or a closed pipe if SIGPIPE is ignored. Check status() from time to time,
// and the result of Flush().
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

}  // namespace cairn::tools
