#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/sharding.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/shards/sharded_pair.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"

namespace cairn {

// Several databases, and indexes over all of them with one shard for each.
class ShardedSources {
 public:
  explicit ShardedSources(size_t count) : databases_(count) {}

  size_t size() const { return databases_.size(); }
  TestDatabase& operator[](size_t i) { return databases_[i]; }
  std::string Path(const std::string& name) const { return databases_[0].Beside(name); }

  // Builds an index of the databases' current rows, and opens it.
  std::unique_ptr<SecondaryIndex> Build(std::string_view spec,
                                        const std::string& name = "sources") {
    const std::string path = Path(name);
    std::filesystem::remove_all(path);
    std::filesystem::create_directory(path);
    Strings names;
    for (size_t i = 0; i < databases_.size(); ++i) {
      names.push_back(ShardDirectoryName(static_cast<uint32_t>(i)));
      RequireOk(
          SecondaryIndex::Build(*databases_[i].Source(), Spec(spec), path + "/" + names.back())
              .status());
    }
    RequireOk(PublishSources(names, path, {}));
    return RequireOk(SecondaryIndex::Open(path, ForTests()));
  }
  // Brings each shard up to date with its database.
  void CatchUp(SecondaryIndex* index) {
    for (TestDatabase& db : databases_) RequireOk(index->CatchUp(*db.Source()).status());
  }

 private:
  std::vector<TestDatabase> databases_;
};

}  // namespace cairn
