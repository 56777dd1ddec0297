#include "engine/shards/shard_manifest.h"

#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "index/files/manifest_text.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr uint64_t kMajorVersion = 1;
constexpr uint64_t kMinorVersion = 0;
constexpr std::string_view kFirstKey = "cairn-shards";

// Hexadecimal digits, two per byte.
bool ParseHex(std::string_view text, std::string* bytes) {
  bytes->resize(text.size() / 2);
  for (size_t i = 0; i < bytes->size(); ++i) {
    if (!ReadHexEscape(text.substr(2 * i), &(*bytes)[i])) return false;
  }
  return text.size() % 2 == 0;
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

// Whether a path stays within its starting directory, and is in canonical form.
bool IsDirectoryWithin(std::string_view path) {
  if (path.empty() || path.size() > 4096) return false;
  size_t begin = 0;
  while (true) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, end - begin);
    if (name.find_first_not_of('.') == std::string_view::npos) return false;
    for (const char c : name) {
      if (!IsNameCharacter(c)) return false;
    }
    if (end == path.size()) return true;
    begin = end + 1;
  }
}

absl::Status Refused(const ShardManifest& manifest, size_t shard, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrFormat(
      "shard %d, '%s': %s", shard, EscapeLine(manifest.shards[shard].directory), why));
}

absl::Status CheckBounds(const ShardManifest& manifest) {
  const size_t shards = manifest.shards.size();
  for (size_t i = 0; i < shards; ++i) {
    const ShardRecord& shard = manifest.shards[i];
    if (manifest.mode == ShardMode::kSource) {
      if (!shard.lower && !shard.upper) continue;
      return Refused(manifest, i, "it has bounds, though the index is sharded by source");
    }
    if (i == 0 && shard.lower) {
      return Refused(manifest, i, "it does not begin with the first key: a shard is missing");
    }
    if (i + 1 == shards && shard.upper) {
      return Refused(manifest, i, "it does not end with the last key: a shard is missing");
    }
    if ((i > 0 && !shard.lower) || (i + 1 < shards && !shard.upper)) {
      return Refused(manifest, i, "it lacks a bound between others: shards overlap");
    }
    if (shard.lower && shard.upper && !(*shard.lower < *shard.upper)) {
      return Refused(manifest, i, "its lower bound is not below its upper one");
    }
    if (i == 0) continue;
    const ShardBound& before = *manifest.shards[i - 1].upper;
    if (*shard.lower < before) {
      return Refused(manifest, i, "it begins before the shard before it ends: they overlap");
    }
    if (before < *shard.lower) {
      return Refused(manifest, i, "it begins after the end of the shard before it: one is missing");
    }
  }
  return absl::OkStatus();
}

// Reads lines; those after a "shard" line belong to that shard.
class ManifestReader {
 public:
  explicit ManifestReader(ShardManifest* manifest) : manifest_(manifest) {}

  ManifestLine ReadLine(std::string_view key, std::string_view value) {
    if (key == "shard") return Check(BeginShard(value));
    if (manifest_->shards.empty()) return ReadHead(key, value);
    ShardRecord* const shard = &manifest_->shards.back();
    if (key == "version") return Number(key, value, &shard->version);
    if (key == "manifest_checksum") {
      return Check(Once(key) && ParseHex16(value, &shard->manifest_checksum));
    }
    if (key == "database_id") return Check(Once(key) && UnescapeLine(value, &shard->database_id));
    if (key == "sequence") return Number(key, value, &shard->sequence);
    if (key == "rows") return Number(key, value, &shard->rows);
    if (key == "entries") return Number(key, value, &shard->entries);
    if (key == "lower") return Check(Once(key) && ParseBound(value, &shard->lower));
    if (key == "upper") return Check(Once(key) && ParseBound(value, &shard->upper));
    return ManifestLine::kUnknownKey;
  }

  absl::Status CheckComplete() const {
    return manifest_->shards.empty() || seen_.size() != kShardLines
               ? absl::DataLossError("lines are missing")
               : CheckShards(*manifest_);
  }

 private:
  static constexpr size_t kHeadLines = 3, kShardLines = 8;

  static ManifestLine Check(bool good) {
    return good ? ManifestLine::kRead : ManifestLine::kMalformed;
  }
  bool Once(std::string_view key) { return seen_.insert(key).second; }
  ManifestLine Number(std::string_view key, std::string_view value, uint64_t* number) {
    return Check(Once(key) && ParseDecimal(value, number));
  }

  ManifestLine ReadHead(std::string_view key, std::string_view value) {
    if (key == "generation") return Number(key, value, &manifest_->generation);
    if (key == "spec") return Check(Once(key) && UnescapeLine(value, &manifest_->spec));
    if (key != "mode") return ManifestLine::kUnknownKey;
    manifest_->mode =
        value == ShardModeName(ShardMode::kSource) ? ShardMode::kSource : ShardMode::kKeyRange;
    return Check(Once(key) && value == ShardModeName(manifest_->mode));
  }

  bool BeginShard(std::string_view directory) {
    if (seen_.size() != (manifest_->shards.empty() ? kHeadLines : kShardLines)) return false;
    if (manifest_->shards.size() == kMaxShards) return false;
    seen_.clear();
    manifest_->shards.emplace_back();
    return UnescapeLine(directory, &manifest_->shards.back().directory);
  }

  ShardManifest* const manifest_;
  std::set<std::string_view> seen_;  // of the head, or of the current shard
};

}  // namespace

std::string_view ShardModeName(ShardMode mode) {
  return mode == ShardMode::kSource ? "source" : "key_range";
}

void AppendBoundLine(std::string_view name, const std::optional<ShardBound>& bound,
                     std::string* text) {
  if (!bound) {
    absl::StrAppendFormat(text, "%s open\n", name);
    return;
  }
  absl::StrAppendFormat(text, "%s at %s %s\n", name, absl::BytesToHexString(bound->key),
                        absl::BytesToHexString(bound->primary_key));
}

bool ParseBound(std::string_view value, std::optional<ShardBound>* bound) {
  bound->reset();
  if (value == "open") return true;
  if (TakeWord(&value) != "at") return false;
  ShardBound at;
  const std::string_view key = TakeWord(&value);
  if (!ParseHex(key, &at.key) || !ParseHex(value, &at.primary_key)) return false;
  *bound = std::move(at);
  return true;
}

absl::Status CheckShards(const ShardManifest& manifest) {
  if (manifest.shards.empty() || manifest.shards.size() > kMaxShards) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d shards, expected 1 to %d", manifest.shards.size(), kMaxShards));
  }
  std::set<std::string_view> directories;
  for (size_t i = 0; i < manifest.shards.size(); ++i) {
    const std::string& directory = manifest.shards[i].directory;
    if (!IsDirectoryWithin(directory)) {
      return Refused(manifest, i, "its directory is not within the index's directory");
    }
    if (!directories.insert(directory).second) {
      return Refused(manifest, i, "another shard has the same directory");
    }
  }
  return CheckBounds(manifest);
}

absl::StatusOr<std::string> FormatShardManifest(const ShardManifest& manifest) {
  RETURN_IF_ERROR(CheckShards(manifest));
  std::string text = absl::StrFormat("%s %d.%d\n", kFirstKey, kMajorVersion, kMinorVersion);
  absl::StrAppendFormat(&text, "generation %d\n", manifest.generation);
  absl::StrAppendFormat(&text, "mode %s\n", ShardModeName(manifest.mode));
  absl::StrAppendFormat(&text, "spec %s\n", EscapeLine(manifest.spec));
  for (const ShardRecord& shard : manifest.shards) {
    absl::StrAppendFormat(&text, "shard %s\n", shard.directory);
    absl::StrAppendFormat(&text, "version %d\n", shard.version);
    absl::StrAppendFormat(&text, "manifest_checksum %016x\n", shard.manifest_checksum);
    absl::StrAppendFormat(&text, "database_id %s\n", EscapeLine(shard.database_id));
    absl::StrAppendFormat(&text, "sequence %d\n", shard.sequence);
    absl::StrAppendFormat(&text, "rows %d\n", shard.rows);
    absl::StrAppendFormat(&text, "entries %d\n", shard.entries);
    AppendBoundLine("lower", shard.lower, &text);
    AppendBoundLine("upper", shard.upper, &text);
  }
  AppendChecksumLine(&text);
  if (text.size() > kMaxShardManifestBytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the manifest has %d bytes for %d shards, expected at most %d: keys are too long",
        text.size(), manifest.shards.size(), kMaxShardManifestBytes));
  }
  return text;
}

absl::StatusOr<ShardManifest> ParseShardManifest(std::string_view text, std::string_view path) {
  ShardManifest manifest;
  ManifestReader reader(&manifest);
  RETURN_IF_ERROR(ReadManifest(
      text, path, {kFirstKey, kMajorVersion, kMinorVersion, kMaxShardManifestBytes},
      [&](std::string_view key, std::string_view value) { return reader.ReadLine(key, value); },
      [&] { return reader.CheckComplete(); }, [&] { return FormatShardManifest(manifest); }));
  return manifest;
}

}  // namespace cairn
