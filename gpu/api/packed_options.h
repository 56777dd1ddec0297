#pragma once

#include "absl/status/statusor.h"
#include "gpu/packed/packed_index.h"
#include "index/query/factory_string.h"

namespace cairn::gpu {

// The options directory, bits and rows of gpu:packed.
absl::StatusOr<PackedIndexOptions> TakePackedOptions(FactoryString* factory);

}  // namespace cairn::gpu
