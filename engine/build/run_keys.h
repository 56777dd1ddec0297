#pragma once

#include <cstddef>
#include <string>

#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "cairn/sorted_run.h"

// Keys of a run, one at a time, for those who check or report them.
namespace cairn {

// Appends entry `i`'s key to a column of the run's kind.
void AppendKey(const SortedRun& run, size_t i, EncodedKeys* keys);

// A key for a message; bytes that are no encoding are shown as such.
std::string KeyText(const KeyCodec& codec, const EncodedKeys& keys, size_t i);

}  // namespace cairn
