// Where/<answer>/<strategy>/percent:<p>: three ranges over three indexes of one build. Each is
// satisfied by p % of the rows, independently of the others. Answers are counted, listed, or the
// first 100 in the order of one index. "keys" are 2^32 distinct keys; "few" are 100, so the entries
// of each key are in the order of rows.
#include <benchmark/benchmark.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cairn/index_group.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "tools/bench/database.h"
#include "tools/bench/or_throw.h"

namespace cairn::bench::where {
namespace {

constexpr uint64_t kRows = uint64_t{1} << 24;
constexpr uint32_t kFew = 100;

void AppendBigEndian(uint32_t number, std::string* bytes) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes->push_back(static_cast<char>(number >> shift));
}

// A database of rows of three random numbers and three small ones, and six indexes of one build.
class WhereDatabase {
 public:
  static const IndexGroup& Group() {
    static const WhereDatabase* const database = new WhereDatabase;
    return *database->group_;
  }

 private:
  WhereDatabase() {
    directory_ = std::filesystem::temp_directory_path() / "cairn_bench_where";
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    rocksdb::Options options;
    options.create_if_missing = true;
    std::unique_ptr<rocksdb::DB> db;
    OrThrow(rocksdb::DB::Open(options, directory_ + "/db", Into(&db)));
    std::mt19937_64 random(1);
    rocksdb::WriteOptions without_log;
    without_log.disableWAL = true;
    for (uint32_t row = 0; row < BenchRows(kRows);) {
      rocksdb::WriteBatch batch;
      for (int i = 0; i < 10000 && row < BenchRows(kRows); ++i, ++row) {
        std::string key, value;
        AppendBigEndian(row, &key);
        for (int part = 0; part < 3; ++part) {
          AppendBigEndian(static_cast<uint32_t>(random()), &value);
        }
        for (int part = 0; part < 3; ++part) {
          AppendBigEndian(static_cast<uint32_t>(random() % kFew), &value);
        }
        OrThrow(batch.Put(key, value));
      }
      OrThrow(db->Write(without_log, &batch));
    }
    OrThrow(db->Flush({}));
    std::vector<BuildTarget> targets;
    for (int i = 0; i < 6; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      targets.push_back(
          {*IndexSpec::Parse(name + " = value[" + std::to_string(4 * i) + ":4]:u32be"),
           directory_ + "/" + name});
    }
    OrThrow(SecondaryIndex::BuildAll(*OrThrow(SnapshotSource::FromDb(db.get())), targets, {}));
    std::vector<IndexGroup::Member> members;
    for (const BuildTarget& target : targets) {
      members.push_back({OrThrow(SecondaryIndex::Open(target.directory))});
    }
    group_ = OrThrow(IndexGroup::Create(std::move(members)));
    std::filesystem::remove_all(directory_);  // mappings stay valid
  }

  std::string directory_;
  std::shared_ptr<const IndexGroup> group_;
};

Predicate Where(bool few, int64_t percent) {
  std::vector<Predicate> all;
  for (int i = 0; i < 3; ++i) {
    const std::string name(1, static_cast<char>('a' + i + (few ? 3 : 0)));
    const auto bound = few ? static_cast<uint64_t>(percent) : (uint64_t{1} << 32) / 100 * percent;
    all.emplace_back(name, KeyQuery::LessThan(bound));
  }
  return Predicate::All(all);
}

void Count(benchmark::State& state, bool few, WhereStrategy strategy) {
  const IndexGroup& group = WhereDatabase::Group();
  const Predicate where = Where(few, state.range(0));
  WhereOptions options;
  options.strategy = strategy;
  WherePlan plan;
  uint64_t count =
      OrThrow(group.Count(where, options, &plan));  // builds structures that are built once
  for (auto _ : state) count = OrThrow(group.Count(where, options, &plan));
  state.SetLabel(std::string(WhereStrategyName(plan.strategy)));
  state.counters["rows"] = static_cast<double>(count);
  for (const auto& candidate : plan.candidates) {
    if (candidate.strategy == plan.strategy) {
      state.counters["predicted_ms"] = absl::ToDoubleMilliseconds(candidate.predicted);
    }
  }
}

void Find(benchmark::State& state, bool first, WhereStrategy strategy) {
  const IndexGroup& group = WhereDatabase::Group();
  const Predicate where = Where(false, state.range(0));
  WhereOptions options;
  options.strategy = strategy;
  if (first) {
    options.order_by = "a";
    options.limit = 100;
  }
  WhereResult matches;
  OrThrow(group.Find(where, options, &matches));
  for (auto _ : state) OrThrow(group.Find(where, options, &matches));
  state.SetLabel(std::string(WhereStrategyName(matches.plan.strategy)));
  state.counters["rows"] = static_cast<double>(matches.row_ids.size());
}

const bool kRegistered = [] {
  for (const WhereStrategy strategy :
       {WhereStrategy::kAuto, WhereStrategy::kGather, WhereStrategy::kBitmap, WhereStrategy::kScan,
        WhereStrategy::kWalk}) {
    const std::string name(WhereStrategyName(strategy));
    const auto add = [](const std::string& called, auto body) {
      benchmark::RegisterBenchmark(called.c_str(), body)
          ->ArgName("percent")
          ->Arg(1)
          ->Arg(10)
          ->Arg(50)
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    };
    if (strategy != WhereStrategy::kWalk) {
      add("Where/count/keys/" + name, [=](benchmark::State& s) { Count(s, false, strategy); });
      add("Where/count/few/" + name, [=](benchmark::State& s) { Count(s, true, strategy); });
      add("Where/rows/keys/" + name, [=](benchmark::State& s) { Find(s, false, strategy); });
    }
    add("Where/first_100/keys/" + name, [=](benchmark::State& s) { Find(s, true, strategy); });
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench::where
