#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/types/span.h"
#include "index/sort/sort_entry.h"

namespace cairn {

// Sorts entries by (key, row id) on the caller's thread and in place. Their partial keys must have
// been taken at `depth`, in bytes, before which all keys are equal except those marked kBelowDepth
// or kAboveDepth. Leaves the partial keys in an unspecified state.
//
// A multikey sort: entries are sorted by their partial keys; those that are still equal get the
// next bytes of their keys or, if they are few, are compared directly. Bytes that a whole group has
// in common are skipped. The work is linear in the bytes that distinguish keys, plus that of
// sorting n words; the stack does not grow with the length of keys.
void SortRecords(absl::Span<BytesEntry> entries, size_t depth);

// The length of the common prefix of the keys of `entries` from `depth` on; requires an entry.
size_t CommonPrefix(absl::Span<const BytesEntry> entries, size_t depth);

// Sets the partial keys of entries whose keys are equal before `depth`: they start after the keys'
// common prefix. Returns their depth. Requires an entry.
size_t TakePartialKeys(absl::Span<BytesEntry> entries, size_t depth);

// The partial key of `key` at the depth of `prefix`'s size, marked if it has another prefix.
uint64_t PartialKeyBehind(std::string_view prefix, std::string_view key);

}  // namespace cairn
