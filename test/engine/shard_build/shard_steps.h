#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "cairn/options.h"
#include "cairn/sharding.h"
#include "cairn/snapshot_source.h"
#include "index/files/file_system.h"
#include "test/engine/shards/sharded_pair.h"
#include "test/test_random.h"

namespace cairn {

inline constexpr char kShardSpec[] = "value:text";

inline bool Says(const absl::Status& status, const std::string& text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

inline std::string ReadAll(const std::string& path) {
  return RequireOk(ReadSmallFile(FileSystem::Posix(), path, uint64_t{1} << 30));
}

inline void WriteAll(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// A database and a directory for the steps' files.
class Steps {
 public:
  explicit Steps(int rows) {
    std::mt19937_64 random = TestRandom();
    for (int i = 0; i < rows; ++i) {
      db_.Put("row" + std::to_string(i),
              random() % 3 == 0 ? "heavy" : std::to_string(random() % 50));
    }
    std::filesystem::create_directory(index());
    std::filesystem::create_directory(work());
  }

  TestDatabase& db() { return db_; }
  std::string index() const { return db_.Beside("steps"); }
  std::string work() const { return db_.Beside("work"); }
  std::string plan() const { return work() + "/plan"; }
  const Strings& segments() const { return segments_; }

  // Extracts segments of up to `parts` ranges, which the source estimates.
  void Extract(int parts, const char* spec = kShardSpec) {
    Extract(RequireOk(db_.Source()->Split(parts)), spec);
  }
  void Extract(const std::vector<PrimaryKeyRange>& ranges, const char* spec = kShardSpec) {
    segments_.clear();
    const auto source = db_.Source();
    for (size_t i = 0; i < ranges.size(); ++i) {
      segments_.push_back(work() + "/" + SegmentDirectoryName(static_cast<uint32_t>(i)));
      RequireOk(ExtractSegment(*source, ranges[i], Spec(spec), segments_.back(), {}).status());
    }
  }
  uint32_t Split(uint32_t shards) {
    RequireOk(SplitSegments(segments_, shards, plan(), {}));
    return RequireOk(ShardsOfPlan(plan(), {}));
  }
  std::string BuildOne(uint32_t shard) {
    const std::string name = ShardDirectoryName(shard);
    RequireOk(BuildShard(plan(), shard, index() + "/" + name, {}).status());
    return name;
  }
  void BuildAll(uint32_t shards) {
    for (uint32_t shard = 0; shard < shards; ++shard) BuildOne(shard);
  }
  absl::Status Publish() { return PublishShards(plan(), index(), {}); }
  std::unique_ptr<SecondaryIndex> Open() {
    return RequireOk(SecondaryIndex::Open(index(), ForTests()));
  }
  Strings Names() const {
    Strings names;
    for (const auto& entry : std::filesystem::directory_iterator(index())) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  TestDatabase db_;
  Strings segments_;
};

}  // namespace cairn
