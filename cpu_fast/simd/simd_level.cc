#include "cpu_fast/simd/simd_level.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "absl/strings/str_format.h"
#include "cpu_fast/simd/simd_targets.h"
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

// Highway's bit for a level; 0 for kScalar.
int64_t Target(SimdLevel level) {
  switch (level) {
    case SimdLevel::kScalar:
      return 0;
    case SimdLevel::kSse4:
      return HWY_SSE4;
    case SimdLevel::kAvx2:
      return HWY_AVX2;
    case SimdLevel::kAvx512:
      return HWY_AVX3;
    case SimdLevel::kNeon:
      return HWY_NEON;
  }
  return 0;
}

std::vector<SimdLevel> LevelsAmong(int64_t targets) {
  std::vector<SimdLevel> levels = {SimdLevel::kScalar};
  for (SimdLevel level : kLevels) {
    if ((targets & Target(level)) != 0) levels.push_back(level);
  }
  return levels;
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
  return absl::InvalidArgumentError(absl::StrFormat("SIMD level '%s': expected one of %s", name,
                                                    Names({kLevels, std::end(kLevels)})));
}

std::vector<SimdLevel> CompiledSimdLevels() {
  return LevelsAmong(HWY_TARGETS);
}

const std::vector<SimdLevel>& SupportedSimdLevels() {
  // Highway executes CPUID, which takes microseconds in a virtual machine. Structures of a few
  // entries are built in that time.
  static const auto* const levels =  // never freed
      new std::vector<SimdLevel>(LevelsAmong(hwy::SupportedTargets() & HWY_TARGETS));
  return *levels;
}

absl::Status CheckSupported(SimdLevel level) {
  const std::vector<SimdLevel>& supported = SupportedSimdLevels();
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
