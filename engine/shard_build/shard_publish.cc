#include "engine/shard_build/shard_publish.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "engine/rows/row_table_file.h"
#include "engine/shards/shard_set.h"
#include "index/files/index_directory.h"
#include "index/files/run_file.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

absl::Status Refuse(std::string_view name, const absl::Status& status) {
  // An error of one shard is the reason why the index cannot be published.
  const bool of_shard = absl::IsDataLoss(status) || absl::IsNotFound(status);
  return absl::Status(
      of_shard ? absl::StatusCode::kFailedPrecondition : status.code(),
      absl::StrFormat("shard '%s' cannot be published: %s", name, std::string(status.message())));
}

// Reads all of an index's files completely, and checks its first and last entry against the shard's
// bounds.
absl::Status CheckFiles(const std::string& path, const Manifest& manifest,
                        const ShardManifest& next, size_t shard, int threads, FileSystem* files) {
  ASSIGN_OR_RETURN(const ShardContents contents,
                   OpenShardContents(path, manifest, VerifyLevel::kFull, threads, files));
  RETURN_IF_ERROR(CheckShardIndex(manifest, next, shard));
  return CheckShardEntries(contents, next.shards[shard]);
}

absl::Status CheckOfPlan(const Manifest& manifest, const ShardPlan& plan, uint64_t checksum,
                         size_t shard) {
  const auto count = [&](const char* name) {
    const auto at = manifest.counts.find(name);
    return at == manifest.counts.end() ? UINT64_MAX : at->second;
  };
  if (count("shard_plan") != checksum) {
    return absl::FailedPreconditionError("it was not built from this plan");
  }
  if (count("shard") != shard) {
    return absl::FailedPreconditionError(
        absl::StrFormat("it is shard %d of the plan, not %d", count("shard"), shard));
  }
  const bool as_planned = manifest.spec == plan.spec && manifest.database_id == plan.database_id &&
                          manifest.sequence == plan.sequence &&
                          manifest.entries == plan.shards[shard].entries;
  if (as_planned) return absl::OkStatus();
  return absl::FailedPreconditionError("its spec, database, state or size differs from the plan");
}

absl::Status PublishNext(ShardManifest next, ShardDirectory* directory) {
  RETURN_IF_ERROR(directory->Publish(std::move(next)));
  directory->RemoveLeftovers();
  return absl::OkStatus();
}

}  // namespace

absl::Status PublishNamed(const ShardPlan& plan, absl::Span<const std::string> names, int threads,
                          ShardDirectory* directory) {
  ShardManifest next;
  next.mode = ShardMode::kKeyRange;
  next.spec = plan.spec;
  const uint64_t checksum = PlanChecksum(plan);
  std::vector<Manifest> manifests;
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StatusOr<Manifest> manifest =
        ReadManifest(directory->PathOf(names[i]), directory->files());
    if (!manifest.ok()) return Refuse(names[i], manifest.status());
    const absl::Status of_plan = CheckOfPlan(*manifest, plan, checksum, i);
    if (!of_plan.ok()) return Refuse(names[i], of_plan);
    next.shards.push_back(RecordOf(names[i], *manifest));
    next.shards.back().lower = plan.shards[i].lower;
    next.shards.back().upper = plan.shards[i].upper;
    manifests.push_back(*std::move(manifest));
  }
  RETURN_IF_ERROR(CheckShards(next));
  for (size_t i = 0; i < names.size(); ++i) {
    const absl::Status files =
        CheckFiles(directory->PathOf(names[i]), manifests[i], next, i, threads, directory->files());
    if (!files.ok()) return Refuse(names[i], files);
  }
  return PublishNext(std::move(next), directory);
}

absl::Status PublishPlan(const ShardPlan& plan, const std::string& path, int threads,
                         FileSystem* files) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ShardDirectory> directory,
                   ShardDirectory::OpenForWrite(path, files));
  ASSIGN_OR_RETURN(std::vector<std::string> there, files->List(path));
  std::sort(there.begin(), there.end());
  const uint64_t checksum = PlanChecksum(plan);
  std::vector<std::string> names;
  for (size_t i = 0; i < plan.shards.size(); ++i) {
    // Incomplete attempts have no manifest. Shards of other plans are skipped.
    const std::string prefix = absl::StrFormat("shard-%d.", i);
    absl::Status last =
        absl::NotFoundError(absl::StrFormat("there is no directory '%s…' in '%s'", prefix, path));
    std::string found;
    for (const std::string& name : there) {
      if (!found.empty() || !absl::StartsWith(name, prefix)) continue;
      const absl::StatusOr<Manifest> manifest = ReadManifest(directory->PathOf(name), files);
      last = manifest.ok() ? CheckOfPlan(*manifest, plan, checksum, i) : manifest.status();
      if (last.ok()) found = name;
    }
    if (found.empty()) return Refuse(absl::StrFormat("shard-%d", i), last);
    names.push_back(std::move(found));
  }
  return PublishNamed(plan, names, threads, directory.get());
}

absl::Status PublishIndexes(absl::Span<const std::string> names, const std::string& path,
                            int threads, FileSystem* files) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ShardDirectory> directory,
                   ShardDirectory::OpenForWrite(path, files));
  ShardManifest next;
  next.mode = ShardMode::kSource;
  std::vector<Manifest> manifests;
  std::map<std::string, std::string> databases;  // database id -> name of its shard
  for (const std::string& name : names) {
    absl::StatusOr<Manifest> manifest = ReadManifest(directory->PathOf(name), files);
    if (!manifest.ok()) return Refuse(name, manifest.status());
    if (next.shards.empty()) next.spec = manifest->spec;
    if (manifest->spec != next.spec) {
      return Refuse(name, absl::FailedPreconditionError(absl::StrFormat(
                              "its spec is '%s', expected '%s' as in the first shard",
                              manifest->spec, next.spec)));
    }
    const auto [other, fresh] = databases.emplace(manifest->database_id, name);
    if (!fresh && !manifest->database_id.empty()) {
      return Refuse(name, absl::FailedPreconditionError(
                              absl::StrFormat("it has the same database %s as shard '%s'",
                                              manifest->database_id, other->second)));
    }
    next.shards.push_back(RecordOf(name, *manifest));
    manifests.push_back(*std::move(manifest));
  }
  RETURN_IF_ERROR(CheckShards(next));
  for (size_t i = 0; i < names.size(); ++i) {
    const absl::Status checked =
        CheckFiles(directory->PathOf(names[i]), manifests[i], next, i, threads, files);
    if (!checked.ok()) return Refuse(names[i], checked);
  }
  return PublishNext(std::move(next), directory.get());
}

}  // namespace cairn
