#include "cpu_fast/simd/simd_level.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "absl/strings/str_format.h"
#include "hwy/targets.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr SimdLevel kLevels[] = {SimdLevel::kScalar, SimdLevel::kSse4, SimdLevel::kAvx2,
                                 SimdLevel::kAvx512, SimdLevel::kNeon};

std::string Names(const std::vector<SimdLevel>& levels) {
  std::string names;
  for (SimdLevel level : levels) {
    absl::StrAppendFormat(&names, "%s%s", names.empty() ? "" : ", ", SimdLevelName(level));
  }
  return names;
}

}  // namespace

std::string_view SimdLevelName(SimdLevel level) {
  switch (level) {
    case SimdLevel::kScalar:
      return "scalar";
    case SimdLevel::kSse4:
      return "sse4";
    case SimdLevel::kAvx2:
      return "avx2";
    case SimdLevel::kAvx512:
      return "avx512";
    case SimdLevel::kNeon:
      return "neon";
  }
  return "unknown";
}

absl::StatusOr<SimdLevel> ParseSimdLevel(std::string_view name) {
  for (SimdLevel level : kLevels) {
    if (SimdLevelName(level) == name) return level;
  }
  return absl::InvalidArgumentError(absl::StrFormat("'%s' is no SIMD level; there are %s", name,
                                                    Names({kLevels, std::end(kLevels)})));
}

std::vector<SimdLevel> SupportedSimdLevels() {
  std::vector<SimdLevel> levels = {SimdLevel::kScalar};
  [[maybe_unused]] const auto targets = hwy::SupportedTargets();
#if HWY_ARCH_X86_64
  if ((targets & HWY_SSE4) != 0) levels.push_back(SimdLevel::kSse4);
  if ((targets & HWY_AVX2) != 0) levels.push_back(SimdLevel::kAvx2);
  if ((targets & HWY_AVX3) != 0) levels.push_back(SimdLevel::kAvx512);
#elif HWY_ARCH_ARM_A64
  if ((targets & HWY_NEON) != 0) levels.push_back(SimdLevel::kNeon);
#endif
  return levels;
}

absl::Status CheckSupported(SimdLevel level) {
  const std::vector<SimdLevel> supported = SupportedSimdLevels();
  if (std::find(supported.begin(), supported.end(), level) != supported.end()) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrFormat("this processor lacks SIMD level '%s'; it has %s",
                                                SimdLevelName(level), Names(supported)));
}

absl::StatusOr<SimdLevel> DefaultSimdLevel() {
  const char* wanted = std::getenv("CAIRN_SIMD");
  if (wanted == nullptr || *wanted == '\0') return SupportedSimdLevels().back();
  absl::StatusOr<SimdLevel> level = ParseSimdLevel(wanted);
  absl::Status status = level.ok() ? CheckSupported(*level) : level.status();
  if (status.ok()) return level;
  return absl::Status(status.code(),
                      absl::StrFormat("CAIRN_SIMD: %s", std::string(status.message())));
}

absl::StatusOr<SimdLevel> ChooseSimdLevel(std::optional<SimdLevel> wanted) {
  if (!wanted.has_value()) return DefaultSimdLevel();
  RETURN_IF_ERROR(CheckSupported(*wanted));
  return *wanted;
}

}  // namespace cairn
