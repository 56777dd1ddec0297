#pragma once

#include <cstddef>
#include <string>

#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "cairn/sorted_run.h"

// Single keys of a run, for code that checks or reports them.
namespace cairn {

// Appends entry `i`'s key to `keys`, which are of the run's kind.
void AppendKey(const SortedRun& run, size_t i, EncodedKeys* keys);

// Returns a key as text for a message. Invalid encodings are marked as such or escaped.
std::string KeyText(const KeyCodec& codec, const EncodedKeys& keys, size_t i);

}  // namespace cairn
