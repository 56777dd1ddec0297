#pragma once

#include "absl/base/config.h"

// Types of Abseil that declarations name. A header that includes this instead of theirs
// preprocesses to a third; a caller that uses such a value includes what it uses, as
// "absl/status/statusor.h", or cairn/cairn.h.

namespace absl {
ABSL_NAMESPACE_BEGIN
class Duration;
class Status;
template <typename T>
class Span;
template <typename T>
class StatusOr;
ABSL_NAMESPACE_END
}  // namespace absl
