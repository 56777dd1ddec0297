// A manifest of shards, or a plan, of any bytes either is refused or is one that formats and parses
// to itself again. Bytes are tried as they are and as the lines before a right checksum.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/shard_build/shard_plan.h"
#include "engine/shards/shard_manifest.h"
#include "engine/shards/shard_routing.h"
#include "index/files/manifest_text.h"

namespace cairn {
namespace {

void TryManifest(std::string_view text) {
  const auto manifest = ParseShardManifest(text, "fuzz");
  if (!manifest.ok()) return;
  const auto again = FormatShardManifest(*manifest);
  if (!again.ok()) std::abort();
  const auto back = ParseShardManifest(*again, "fuzz");
  if (!back.ok() || !(*back == *manifest)) std::abort();
  for (const PhysicalType kind : {PhysicalType::kU32, PhysicalType::kU64, PhysicalType::kBytes}) {
    ShardRouting routing;
    if (!ShardRouting::Create(*manifest, kind, &routing)) continue;
    ShardInterval interval;
    routing.RouteRanges(RangeBatch::Everything(kind), absl::MakeSpan(&interval, 1));
    if (interval.first != 0 || interval.last + 1 != manifest->shards.size()) std::abort();
  }
}

void TryPlan(std::string_view text) {
  const auto plan = ParseShardPlan(text, "fuzz");
  if (plan.ok() && FormatShardPlan(*plan) != text) std::abort();
}

void Try(std::string_view text) {
  TryManifest(text);
  TryPlan(text);
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  cairn::Try(text);
  std::string sealed(text.substr(0, std::min(text.size(), text.rfind("checksum "))));
  cairn::AppendChecksumLine(&sealed);
  cairn::Try(sealed);
  return 0;
}
