#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"

namespace cairn {

// Makes items on up to `threads` threads, of which the caller's is one, and takes them in their
// order, some items ahead: item i lives in slot i % slots from its claim until it is taken, so that
// there are at most `slots` (at least one) at a time.
//
//   claim(slot)  says what the next item is; false: there is none. Called in order, one at a time.
//   make(slot)   does the work; any number at a time.
//   take(slot)   is called in order, one at a time, by whichever thread has made the next item.
//
// Returns once all items that were claimed have been taken. An exception of one of the three stops
// the claiming, leaves items untaken, and is rethrown here.
void RunOrderedPipeline(int threads, size_t slots, absl::FunctionRef<bool(size_t)> claim,
                        absl::FunctionRef<void(size_t)> make, absl::FunctionRef<void(size_t)> take);

}  // namespace cairn
