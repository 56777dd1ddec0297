#include "engine/shard_build/shard_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/build/run_keys.h"
#include "engine/shards/shard_directory.h"
#include "index/files/checksum.h"
#include "index/files/manifest_text.h"
#include "index/keys/escaped_text.h"
#include "index/keys/key_nulls.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr std::string_view kPlanKey = "cairn-shard-plan";
constexpr std::string_view kPlanVersion = "1.0";

// Reads the lines of a plan, which have a fixed order.
class PlanReader {
 public:
  PlanReader(std::string_view body, std::string_view path) : body_(body), path_(path) {}

  bool at_end() const { return body_.empty(); }
  // Returns whether the next line has this key.
  bool Next(std::string_view key) const {
    return body_.substr(0, key.size()) == key && body_.substr(key.size(), 1) == " ";
  }
  // Reads the line; `take(value)` returns whether the value is valid.
  template <typename Take>
  absl::Status Line(std::string_view key, Take take) {
    ++line_;
    std::string_view value;
    if (!TakeLine(&body_, &value)) return DamagedLine(path_, line_, "it has no end");
    const std::string_view whole = value;
    if (TakeWord(&value) != key || !take(value)) return DamagedLine(path_, line_, whole, "");
    return absl::OkStatus();
  }

 private:
  std::string_view body_;
  const std::string_view path_;
  size_t line_ = 0;
};

absl::Status CheckOneRow(const Segments& segments, const ShardBound& bound) {
  if (!segments.spec.unique || bound.primary_key.empty()) return absl::OkStatus();
  EncodedKeys key(segments.kind);
  AppendOrderedKey(bound.key, &key);
  ASSIGN_OR_RETURN(const KeyCodec codec, segments.spec.Codec());
  ASSIGN_OR_RETURN(const bool has_null, HasNull(codec, key, 0));
  if (has_null) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrFormat("the index is unique, but several rows, one of them '%s', have the key %s",
                      EscapeBytes(bound.primary_key), KeyText(codec, key, 0)));
}

}  // namespace

absl::StatusOr<ShardPlan> MakeShardPlan(const Segments& segments, uint32_t shards) {
  if (shards == 0 || shards > kMaxShards) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d shards, expected 1 to %d", shards, kMaxShards));
  }
  ShardPlan plan;
  const Manifest& first = segments[0].manifest;
  plan.spec = first.spec;
  plan.database_id = first.database_id;
  plan.sequence = first.sequence;
  for (const Segment& segment : segments.all) {
    plan.segments.push_back({segment.directory, ManifestChecksum(segment.manifest)});
  }
  const uint64_t parts = std::clamp<uint64_t>(segments.entries, 1, shards);
  plan.shards.resize(parts);
  uint64_t begin = 0;
  for (uint64_t i = 0; i < parts; ++i) {
    // The remainder is distributed over the first shards, one entry each.
    const uint64_t end = begin + segments.entries / parts + (i < segments.entries % parts ? 1 : 0);
    plan.shards[i].entries = end - begin;
    begin = end;
    if (i + 1 == parts) break;
    ASSIGN_OR_RETURN(const ShardBound bound, BoundAt(segments, PositionsOfRank(segments, end)));
    RETURN_IF_ERROR(CheckOneRow(segments, bound));
    plan.shards[i].upper = bound;
    plan.shards[i + 1].lower = bound;
  }
  return plan;
}

std::string FormatShardPlan(const ShardPlan& plan) {
  std::string text = absl::StrFormat("%s %s\n", kPlanKey, kPlanVersion);
  absl::StrAppendFormat(&text, "spec %s\n", EscapeLine(plan.spec));
  absl::StrAppendFormat(&text, "database_id %s\n", EscapeLine(plan.database_id));
  absl::StrAppendFormat(&text, "sequence %d\n", plan.sequence);
  for (const ShardPlan::Input& segment : plan.segments) {
    absl::StrAppendFormat(&text, "segment %016x %s\n", segment.manifest_checksum,
                          EscapeLine(segment.directory));
  }
  for (const ShardPlan::Shard& shard : plan.shards) {
    absl::StrAppendFormat(&text, "entries %d\n", shard.entries);
    AppendBoundLine("lower", shard.lower, &text);
    AppendBoundLine("upper", shard.upper, &text);
  }
  AppendChecksumLine(&text);
  return text;
}

absl::StatusOr<ShardPlan> ParseShardPlan(std::string_view text, std::string_view path) {
  std::string_view body;
  RETURN_IF_ERROR(TakeChecksumLine(text, path, kMaxShardManifestBytes, &body));
  PlanReader reader(body, path);
  ShardPlan plan;
  std::string_view version;
  RETURN_IF_ERROR(reader.Line(kPlanKey, [&](std::string_view value) {
    version = value;
    return true;
  }));
  if (version != kPlanVersion) {
    return absl::FailedPreconditionError(
        absl::StrFormat("plan '%s' has format version %s; this build reads version %s", path,
                        EscapeLine(version), kPlanVersion));
  }
  RETURN_IF_ERROR(
      reader.Line("spec", [&](std::string_view value) { return UnescapeLine(value, &plan.spec); }));
  RETURN_IF_ERROR(reader.Line("database_id", [&](std::string_view value) {
    return UnescapeLine(value, &plan.database_id);
  }));
  RETURN_IF_ERROR(reader.Line(
      "sequence", [&](std::string_view value) { return ParseDecimal(value, &plan.sequence); }));
  while (reader.Next("segment")) {
    ShardPlan::Input& segment = plan.segments.emplace_back();
    RETURN_IF_ERROR(reader.Line("segment", [&](std::string_view value) {
      return ParseHex16(TakeWord(&value), &segment.manifest_checksum) &&
             UnescapeLine(value, &segment.directory);
    }));
  }
  while (!reader.at_end()) {
    ShardPlan::Shard& shard = plan.shards.emplace_back();
    RETURN_IF_ERROR(reader.Line(
        "entries", [&](std::string_view value) { return ParseDecimal(value, &shard.entries); }));
    RETURN_IF_ERROR(reader.Line(
        "lower", [&](std::string_view value) { return ParseBound(value, &shard.lower); }));
    RETURN_IF_ERROR(reader.Line(
        "upper", [&](std::string_view value) { return ParseBound(value, &shard.upper); }));
  }
  if (plan.segments.empty() || plan.shards.empty() || plan.shards.size() > kMaxShards ||
      FormatShardPlan(plan) != text) {
    return absl::DataLossError(
        absl::StrFormat("plan '%s' is damaged: its lines differ from the format", path));
  }
  return plan;
}

uint64_t PlanChecksum(const ShardPlan& plan) {
  const std::string text = FormatShardPlan(plan);
  return Checksum(text.data(), text.size());
}

}  // namespace cairn
