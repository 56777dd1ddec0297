#include "tools/print/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_format.h"

namespace cairn::tools {
absl::Status Output::Flush() {
  std::string_view rest = buffer_;
  while (status_.ok() && !rest.empty()) {
    const ssize_t written = write(STDOUT_FILENO, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      status_ = absl::UnavailableError(
          absl::StrFormat("cannot write to standard output: %s", std::strerror(errno)));
    }
  }
  buffer_.clear();
  return status_;
}

}  // namespace cairn::tools
