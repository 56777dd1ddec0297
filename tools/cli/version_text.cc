// The output of `cairn --version`.
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cairn/version.h"
#include "cpu_fast/simd/simd_level.h"
#include "rocksdb/version.h"
#include "tools/cli/command.h"

namespace cairn::tools {
namespace {

// The version of the linked library, and that of the headers if it differs.
std::string RocksDbVersion() {
  const std::string library = rocksdb::GetRocksVersionAsString();
  const std::string headers = absl::StrCat(ROCKSDB_MAJOR, ".", ROCKSDB_MINOR, ".", ROCKSDB_PATCH);
  return library == headers
             ? absl::StrCat("RocksDB ", library)
             : absl::StrCat("RocksDB ", library, ", compiled with the headers of ", headers);
}

std::string InstructionSets() {
  const auto append_name = [](std::string* out, SimdLevel level) {
    out->append(SimdLevelName(level));
  };
  const absl::StatusOr<SimdLevel> chosen = DefaultSimdLevel();
  return absl::StrCat(
      "instruction sets ", absl::StrJoin(CompiledSimdLevels(), ", ", append_name), "; here ",
      chosen.ok() ? std::string(SimdLevelName(*chosen)) : std::string(chosen.status().message()));
}

}  // namespace

std::string VersionText() {
  return absl::StrCat("cairn ", Version(), "\n", RocksDbVersion(), "\n", CAIRN_CUDA_TEXT, "\n",
                      InstructionSets());
}

}  // namespace cairn::tools
