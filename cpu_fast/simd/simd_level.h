#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace cairn {

// The instruction sets that searches are compiled for: kScalar is plain C++ and exists everywhere,
// kNeon is for 64-bit ARM, the others are for x86-64.
enum class SimdLevel : uint8_t { kScalar, kSse4, kAvx2, kAvx512, kNeon };

// "scalar", "sse4", "avx2", "avx512", "neon".
std::string_view SimdLevelName(SimdLevel level);
// Returns the level of that name. Errors: InvalidArgument, listing the names, if there is none.
absl::StatusOr<SimdLevel> ParseSimdLevel(std::string_view name);

// The levels that this library is compiled for, ascending; always includes kScalar.
std::vector<SimdLevel> CompiledSimdLevels();

// Those of the compiled levels that this processor and operating system support.
const std::vector<SimdLevel>& SupportedSimdLevels();

// Returns OK if this processor has the level. Otherwise Unavailable, listing the levels it has.
absl::Status CheckSupported(SimdLevel level);

// The level to use if the caller specifies none: the level named by the environment variable
// CAIRN_SIMD, or the highest supported level if it is unset. Errors: InvalidArgument if CAIRN_SIMD
// names no level; Unavailable if the processor lacks the level. There is no fallback, so that a
// benchmark or test never runs another level than it names.
absl::StatusOr<SimdLevel> DefaultSimdLevel();

// The level to build a structure for: `wanted`, or DefaultSimdLevel() if it is empty. Errors:
// Unavailable if the processor lacks the level; those of DefaultSimdLevel.
absl::StatusOr<SimdLevel> ChooseSimdLevel(std::optional<SimdLevel> wanted);

}  // namespace cairn
