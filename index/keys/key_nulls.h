#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"

namespace cairn {

// Whether key i has a null in any part: nothing is equal to it, not even the same key of another
// row. Errors: DataLoss if it is not a key of the codec. Throws std::bad_alloc.
absl::StatusOr<bool> HasNull(const KeyCodec& codec, const EncodedKeys& keys, size_t i);

}  // namespace cairn
