#pragma once

// Databases, their indexes and a model of both, and checks of a group's results against it.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/index_group.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/sharding.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/test_database.h"
#include "test/engine/where/where_model.h"
#include "test/require_ok.h"

namespace cairn {

inline constexpr WhereStrategy kStrategies[] = {WhereStrategy::kAuto, WhereStrategy::kGather,
                                                WhereStrategy::kBitmap, WhereStrategy::kScan,
                                                WhereStrategy::kWalk};

inline ModelKey Number(int64_t number) {
  return {ModelPart(number)};
}
inline ModelKey Text(std::string text) {
  return {ModelPart(std::move(text))};
}

// Databases, indexes over all of them and a model of both. With several databases, rows of the
// model are named by primary key and source.
class World {
 public:
  struct Row {
    std::string value;
    ModelRow keys;
  };
  using MakeRow = std::function<Row(std::mt19937_64&)>;

  World(std::vector<std::string> specs, std::vector<ModelMember> models, MakeRow make,
        std::mt19937_64* random, size_t sources = 1)
      : specs_(std::move(specs)),
        models_(std::move(models)),
        make_(std::move(make)),
        random_(*random),
        databases_(sources) {}

  const std::vector<ModelMember>& models() const { return models_; }
  const ModelTable& rows() const { return rows_; }

  void Change(size_t times, size_t keys) {
    for (size_t i = 0; i < times; ++i) {
      const std::string key = absl::StrFormat("k%05d", random_() % keys);
      const size_t source = random_() % databases_.size();
      const std::string name = NameOf(key, source);
      if (random_() % 4 == 0) {
        databases_[source].Delete(key);
        rows_.erase(name);
        continue;
      }
      const Row row = make_(random_);
      databases_[source].Put(key, row.value);
      rows_[name] = row.keys;
    }
  }
  void BuildTogether() {
    std::vector<BuildTarget> targets;
    for (size_t i = 0; i < specs_.size(); ++i) targets.push_back({Spec(specs_[i]), Directory(i)});
    RequireOk(SecondaryIndex::BuildAll(*db().Source(), targets));
    for (size_t i = 0; i < specs_.size(); ++i) {
      indexes_.push_back(RequireOk(SecondaryIndex::Open(Directory(i))));
    }
  }
  // Sharded by key range, up to `most` shards each.
  void BuildInShards(uint32_t most) {
    for (size_t i = 0; i < specs_.size(); ++i) {
      ShardedBuildOptions options;
      options.shards = 1 + static_cast<uint32_t>(random_() % most);
      options.build.threads = 1;
      RequireOk(BuildSharded(*db().Source(), Spec(specs_[i]), Directory(i), options).status());
      indexes_.push_back(RequireOk(SecondaryIndex::Open(Directory(i), Opening())));
    }
  }
  // Sharded by source.
  void BuildBySource() {
    Strings names;
    for (size_t s = 0; s < databases_.size(); ++s) {
      names.push_back(ShardDirectoryName(static_cast<uint32_t>(s)));
      std::vector<BuildTarget> targets;
      for (size_t i = 0; i < specs_.size(); ++i) {
        std::filesystem::create_directories(Directory(i));
        targets.push_back({Spec(specs_[i]), Directory(i) + "/" + names.back()});
      }
      RequireOk(SecondaryIndex::BuildAll(*databases_[s].Source(), targets));
    }
    for (size_t i = 0; i < specs_.size(); ++i) {
      RequireOk(PublishSources(names, Directory(i), {}));
      indexes_.push_back(RequireOk(SecondaryIndex::Open(Directory(i), Opening())));
    }
  }
  // Each at a different state, then caught up.
  void BuildApart(size_t changes, size_t keys) {
    for (size_t i = 0; i < specs_.size(); ++i) {
      indexes_.push_back(
          RequireOk(SecondaryIndex::Build(*db().Source(), Spec(specs_[i]), Directory(i))));
      Change(changes, keys);
    }
    CatchUp();
  }
  void CatchUp() {
    for (auto& index : indexes_) {
      for (TestDatabase& of : databases_) RequireOk(index->CatchUp(*of.Source()));
    }
  }
  void Merge(size_t i) { RequireOk(indexes_[i]->Compact()); }

  std::shared_ptr<const IndexGroup> Group() {
    std::vector<IndexGroup::Member> members;
    for (auto& index : indexes_) members.push_back({index});
    return RequireOk(IndexGroup::Create(std::move(members)));
  }
  SecondaryIndex& index(size_t i) { return *indexes_[i]; }
  TestDatabase& db() { return databases_[0]; }
  // The name of a row in the model.
  std::string NameOf(const std::string& key, size_t source) const {
    return databases_.size() == 1 ? key : key + absl::StrFormat("/%d", source);
  }
  Strings NamesOf(const IndexGroup& group, const WhereResult& matches) const {
    StringList keys;
    RequireOk(group.PrimaryKeys(matches, &keys));
    Strings names;
    for (size_t i = 0; i < keys.size(); ++i) {
      names.push_back(NameOf(std::string(keys[i]), matches.shards.empty() ? 0 : matches.shards[i]));
    }
    return names;
  }

 private:
  std::string Directory(size_t i) { return db().Beside(absl::StrFormat("index%d", i)); }
  static OpenOptions Opening() {
    OpenOptions options;
    options.calibration = Calibration::kNone;
    return options;
  }

  const std::vector<std::string> specs_;
  const std::vector<ModelMember> models_;
  const MakeRow make_;
  std::mt19937_64& random_;
  std::vector<TestDatabase> databases_;
  ModelTable rows_;
  std::vector<std::shared_ptr<SecondaryIndex>> indexes_;
};

// Returns false if the strategy cannot execute the query.
inline bool Find(const IndexGroup& group, const Predicate& where, const WhereOptions& options,
                 WhereResult* matches) {
  const absl::Status s = group.Find(where, options, matches);
  if (options.strategy == WhereStrategy::kScan || options.strategy == WhereStrategy::kWalk) {
    if (absl::IsInvalidArgument(s)) return false;
  }
  RequireOk(s);
  return true;
}

// Checks one predicate with each strategy, counted and listed, and in the order of an index by
// pages.
inline void CheckPredicate(const World& world, const IndexGroup& group, const ModelPredicate& where,
                           std::mt19937_64& random, std::map<WhereStrategy, size_t>* answered) {
  BOOST_TEST_CONTEXT("where " << where.predicate.ToString()) {
    const Strings expected = ModelAnswer(world.rows(), where);
    const Predicate reread = RequireOk(Predicate::Parse(where.predicate.ToString()));
    BOOST_TEST(RequireOk(Predicate::Parse(reread.ToString())).ToString() == reread.ToString());
    const size_t by = random() % world.models().size();
    for (const WhereStrategy strategy : kStrategies) {
      BOOST_TEST_CONTEXT("strategy " << WhereStrategyName(strategy)) {
        WhereOptions options;
        options.strategy = strategy;
        WhereResult matches;
        if (strategy != WhereStrategy::kWalk && Find(group, reread, options, &matches)) {
          ++(*answered)[matches.plan.strategy];
          BOOST_TEST(world.NamesOf(group, matches) == expected, boost::test_tools::per_element());
          BOOST_TEST(matches.cursor.empty());
          BOOST_TEST(RequireOk(group.Count(where.predicate, options)) == expected.size());
        }
        // In an order, by pages.
        const bool descending = random() % 2 == 0;
        const Strings ordered =
            ModelOrder(world.rows(), expected, by, world.models()[by].nulls_last, descending);
        options.order_by = world.models()[by].name;
        options.order = descending ? Order::kDescending : Order::kAscending;
        options.limit = random() % 3 == 0 ? 1 + random() % 3 : 1 + random() % (expected.size() + 2);
        if (expected.size() > 40 * options.limit) options.limit = expected.size() / 10;
        Strings found;
        bool can = true;
        do {
          can = Find(group, where.predicate, options, &matches);
          if (!can) break;
          const Strings page = world.NamesOf(group, matches);
          BOOST_REQUIRE(page.size() <= options.limit);
          BOOST_TEST((page.size() == options.limit || matches.cursor.empty()));
          found.insert(found.end(), page.begin(), page.end());
          options.after = matches.cursor;
        } while (!options.after.empty());
        if (can) {
          BOOST_TEST_CONTEXT("by " << options.order_by << " descending " << descending) {
            BOOST_TEST(found == ordered, boost::test_tools::per_element());
          }
          ++(*answered)[matches.plan.strategy];
        }
      }
    }
  }
}

inline void CheckMany(World& world, size_t predicates, std::mt19937_64& random,
                      std::map<WhereStrategy, size_t>* answered) {
  const auto group = world.Group();
  PredicateMaker maker(world.models(), &random);
  for (size_t i = 0; i < predicates; ++i) {
    CheckPredicate(world, *group, maker.Make(static_cast<int>(random() % 4)), random, answered);
  }
}

// Rows with fields; the last ones may be missing. One key per row in each index.
inline World FieldWorld(std::mt19937_64* random, size_t sources = 1) {
  std::vector<ModelKey> ages, cities, places, trios;
  for (int i = 0; i < 30; ++i) ages.push_back(Number(i));
  for (const char* city : {"", "Lis", "Lisbon", "Oslo", "Porto", "it''s", "x"}) {
    cities.push_back(Text(city));
    for (const char* status : {"open", "shut"}) {
      places.push_back({ModelPart(std::string(city)), ModelPart(std::string(status))});
      for (int age : {0, 1, 7}) {
        trios.push_back({ModelPart(std::string(status)), ModelPart(int64_t{age}),
                         ModelPart(std::string(city))});
      }
    }
  }
  return World(
      {"age = value.field('|',0):i32", "city = value.field('|',1):text, nulls=first",
       "status = value.field('|',2):text", "late = value.field('|',2):text, nulls=last",
       "place = value.field('|',1):text, value.field('|',2):text",
       "pair = value.field('|',1):text, value.field('|',2):text, nulls=first",
       "trio = value.field('|',2):text, value.field('|',0):i32, value.field('|',1):text, "
       "nulls=last"},
      {{"age", false, false, ages},
       {"city", true, false, cities},
       {"status", false, false, {Text("open"), Text("shut"), Text("closed")}},
       {"late", true, true, {Text("open"), Text("shut"), Text("closed")}},
       {"place", false, false, places, 2},
       {"pair", true, false, places, 2},
       {"trio", true, true, trios, 3}},
      [ages, cities](std::mt19937_64& rng) {
        World::Row row;
        const ModelKey& age = ages[rng() % (rng() % 2 == 0 ? ages.size() : 3)];
        row.value = std::to_string(std::get<int64_t>(*age[0]));
        row.keys = {{age}, {}, {}, {}, {}, {}, {}};
        const uint64_t fields = rng() % 4;
        row.keys[5] = {{std::nullopt, std::nullopt}};
        row.keys[6] = {{std::nullopt, age[0], std::nullopt}};
        if (fields == 0) {
          row.keys[1] = {{std::nullopt}};
          row.keys[3] = {{std::nullopt}};
          return row;
        }
        const ModelKey& city = cities[rng() % cities.size()];
        row.value += "|" + std::get<std::string>(*city[0]);
        row.keys[1] = {city};
        row.keys[3] = {{std::nullopt}};
        row.keys[5][0][0] = row.keys[6][0][2] = city[0];
        if (fields == 1) return row;
        const char* const status = std::vector<const char*>{"open", "shut", "closed"}[rng() % 3];
        row.value += std::string("|") + status;
        row.keys[2] = row.keys[3] = {Text(status)};
        row.keys[4] = {{city[0], ModelPart(std::string(status))}};
        row.keys[5][0][1] = row.keys[6][0][0] = ModelPart(std::string(status));
        return row;
      },
      random, sources);
}

// Arrays: several keys per row, some of them null, or none.
inline World ArrayWorld(std::mt19937_64* random, size_t sources = 1) {
  std::vector<ModelKey> tags;
  std::vector<ModelKey> pairs;
  for (int i = 0; i < 12; ++i) tags.push_back(Number(i));
  for (int i = 0; i < 20; ++i) pairs.push_back({ModelPart(i % 11), ModelPart(i % 5)});
  return World(
      {"tags = value.json('/tags'):u32", "marks = value.json('/marks'):u32, nulls=first",
       "n = value.json('/n'):u32",
       "both = value.json('/marks'):u32, value.json('/n'):u32, nulls=last",
       "twice = value.json('/tags'):u32, value.json('/n'):u32"},
      {{"tags", false, false, tags},
       {"marks", true, false, tags},
       {"n", false, false, tags},
       {"both", true, true, pairs, 2},
       {"twice", false, false, pairs, 2}},
      [tags](std::mt19937_64& rng) {
        World::Row row;
        row.keys.resize(5);
        std::string json[2];
        for (size_t i = 0; i < 2; ++i) {
          for (uint64_t n = (i == 1) + rng() % 4; n > 0; --n) {
            if (!json[i].empty()) json[i] += ",";
            if (rng() % 8 == 0) {
              json[i] += "null";
              if (i == 1) row.keys[i].push_back({std::nullopt});
            } else {
              row.keys[i].push_back(tags[rng() % tags.size()]);
              json[i] += std::to_string(std::get<int64_t>(*row.keys[i].back()[0]));
            }
          }
        }
        const uint64_t n = rng() % 15;
        row.value = "{\"tags\": [" + json[0] + "], \"marks\": [" + json[1] + "]";
        if (n < tags.size()) {
          row.value += ", \"n\": " + std::to_string(n);
          row.keys[2] = {Number(static_cast<int64_t>(n))};
        }
        row.value += "}";
        const ModelPart last = row.keys[2].empty() ? std::nullopt : row.keys[2][0][0];
        for (const ModelKey& mark : row.keys[1]) row.keys[3].push_back({mark[0], last});
        for (const ModelKey& tag : row.keys[0]) {
          if (last) row.keys[4].push_back({tag[0], last});
        }
        return row;
      },
      random, sources);
}

}  // namespace cairn
