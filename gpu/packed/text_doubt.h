#pragma once

#include "cairn/sorted_run.h"
#include "gpu/text/text_code.h"

namespace cairn::gpu {

// How many separators a lookup of a key would read on average in the lowest level of a K-ary
// directory over the numbers of keys, of which there must be some: hardly any where numbers are
// spread evenly, or are so between ever other ends; up to five where they crowd about few of what
// there could be, as those of words and names do. Reads a sample of the keys.
double SeparatorsInDoubt(const TextCode& code, const BytesColumn& keys);

// From so many on, a tree of partial keys is the faster.
inline constexpr double kMostSeparatorsInDoubt = 1;

}  // namespace cairn::gpu
