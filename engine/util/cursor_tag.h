#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace cairn {

// Prefixes a cursor with a checksum of the query that it belongs to.
std::string TagCursor(std::string_view question, std::string_view cursor);
// Returns the cursor without the checksum; it points into `tagged`. InvalidArgument, with a message
// that begins with `option`: it is not a cursor, or it belongs to another query.
absl::StatusOr<std::string_view> UntagCursor(std::string_view question, std::string_view tagged,
                                             std::string_view option);

}  // namespace cairn
