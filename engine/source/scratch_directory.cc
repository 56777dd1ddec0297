#include "engine/source/scratch_directory.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"

namespace cairn {

absl::StatusOr<std::unique_ptr<ScratchDirectory>> ScratchDirectory::Make(
    const std::string& parent) {
  std::string path = (std::filesystem::path(parent) / ".cairn-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) {
    const int error = errno;
    const std::string message = absl::StrFormat("cannot make a scratch directory in '%s': %s",
                                                parent, std::strerror(error));
    if (error == ENOENT) return absl::NotFoundError(message);
    if (error == EACCES || error == EPERM || error == EROFS) {
      return absl::PermissionDeniedError(message);
    }
    if (error == ENOSPC) return absl::ResourceExhaustedError(message);
    return absl::InternalError(message);
  }
  return std::unique_ptr<ScratchDirectory>(new ScratchDirectory(std::move(path)));
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code error;  // a leftover harms nobody
  std::filesystem::remove_all(path_, error);
}

}  // namespace cairn
