#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace cairn {

// The instruction sets that searches are compiled for: kScalar, plain C++, everywhere; kNeon on
// 64-bit ARM; the others on x86-64.
enum class SimdLevel : uint8_t { kScalar, kSse4, kAvx2, kAvx512, kNeon };

// "scalar", "sse4", "avx2", "avx512", "neon".
std::string_view SimdLevelName(SimdLevel level);
// The level of that name; InvalidArgument, listing the names.
absl::StatusOr<SimdLevel> ParseSimdLevel(std::string_view name);

// The levels that this library is compiled for, ascending; kScalar is always there.
std::vector<SimdLevel> CompiledSimdLevels();

// Those of them that this processor and operating system have.
std::vector<SimdLevel> SupportedSimdLevels();

// OK if this processor has the level; else Unavailable, listing those it has.
absl::Status CheckSupported(SimdLevel level);

// The level to use where none is asked for: what the environment variable CAIRN_SIMD names, or the
// highest that is supported. A name that is unknown (InvalidArgument) or a level that the processor
// lacks (Unavailable) is refused rather than replaced, so that a measurement or a test runs what it
// says.
absl::StatusOr<SimdLevel> DefaultSimdLevel();

// The level that a structure is built for: `wanted`, or DefaultSimdLevel() where none is.
// Unavailable where the processor lacks it, and DefaultSimdLevel's errors.
absl::StatusOr<SimdLevel> ChooseSimdLevel(std::optional<SimdLevel> wanted);

}  // namespace cairn
