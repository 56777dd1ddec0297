#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace cairn {

// A cursor that begins with a checksum of the question that it belongs to.
std::string TagCursor(std::string_view question, std::string_view cursor);
// Returns the cursor without the checksum; it points into `tagged`. Errors: InvalidArgument, which
// begins with `option`, if it is the cursor of another question or none.
absl::StatusOr<std::string_view> UntagCursor(std::string_view question, std::string_view tagged,
                                             std::string_view option);

}  // namespace cairn
