// Indexes that are opened on a list of GPUs (GroupDevices): replicas of a plain index, shards of
// one in shards. Their answers are those of the same directory on the CPU, to the row and the
// shard.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cairn/indexed_db.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/sharding.h"
#include "gpu/runtime/injected_failure.h"
#include "test/engine/shards/sharded_pair.h"
#include "test/engine/shards/sharded_sources.h"
#include "test/gpu/group/group_check.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(open_devices_test, NeedsDevice)
namespace {

// More queries than the minimum for a group to split a batch.
constexpr size_t kMany = (size_t{1} << 18) + 177;

OpenOptions On(std::vector<int> devices) {
  OpenOptions options = ForTests();
  options.device = SearchDevice::kGpu;
  options.devices = std::move(devices);
  return options;
}

std::unique_ptr<SecondaryIndex> OpenOn(const std::string& path, std::vector<int> devices) {
  return RequireOk(SecondaryIndex::Open(path, On(std::move(devices))));
}

// `size` keys: keys of the index, adjacent ones and both ends, unordered.
EncodedKeys KeysOf(const SecondaryIndex& index, size_t size, std::mt19937_64* random) {
  FindResult matches;
  QueryOptions options;
  options.with_keys = true;
  RequireOk(index.Scan(RangeBatch::Everything(index.kind()), &matches, options));
  const EncodedKeys& there = matches.keys;
  EncodedKeys keys(index.kind());
  for (size_t i = 0; i < size; ++i) {
    const size_t at = there.empty() ? 0 : (*random)() % there.size();
    const uint64_t step = (*random)() % 3 - 1;
    const bool end = there.empty() || i % 50 == 0;
    if (index.kind() == PhysicalType::kU32) {
      keys.AppendU32(end ? static_cast<uint32_t>(0 - i % 2)
                         : static_cast<uint32_t>(there.u32(at) + step));
    } else if (index.kind() == PhysicalType::kU64) {
      keys.AppendU64(end ? uint64_t{0} - i % 2 : there.u64(at) + step);
    } else {
      std::string key = end ? std::string(i % 4, '\xff') : std::string(there.bytes(at));
      if (step == 0 && !key.empty()) key.pop_back();
      if (step == 1) key += '\0';
      keys.AppendBytes(key);
    }
  }
  return keys;
}

// How a description ends.
std::string OnDevices(size_t count) {
  return " on devices " + absl::StrJoin(GroupDevices(count), ", ");
}

struct Answers {
  std::vector<GlobalRowId> first;
  std::vector<uint8_t> contained;
  std::vector<uint64_t> counts;
  FindResult found, scanned;
};

// The answers of an index for the keys and the ranges between them; its routes.
Answers Ask(const SecondaryIndex& index, EncodedKeys& keys, RangeColumnsOf& ranges,
            std::vector<std::string>* routes) {
  const KeyBatch batch = keys.Batch();
  const size_t size = batch.size();
  Answers answers;
  const auto answer = [&](Batch asked) {
    Explain explain;
    asked.explain = &explain;
    RequireOk(index.Execute(asked));
    if (routes != nullptr && size > 0) routes->push_back(explain.route + "; " + explain.index);
  };
  answers.first.resize(size);
  answer(Batch::FindFirst(batch, absl::MakeSpan(answers.first)));
  const auto contained = std::make_unique<bool[]>(size);
  answer(Batch::Contains(batch, absl::MakeSpan(contained.get(), size)));
  answers.contained.assign(contained.get(), contained.get() + size);
  answer(Batch::Find(batch, &answers.found));
  const RangeBatch between = ranges.Batch();
  answers.counts.resize(between.size());
  answer(Batch::Count(between, absl::MakeSpan(answers.counts)));
  QueryOptions options;
  options.with_keys = true;
  options.limit = 3;
  answer(Batch::Scan(between, &answers.scanned, options));
  return answers;
}

void CheckSame(const FindResult& some, const FindResult& others) {
  BOOST_TEST((some.offsets == others.offsets));
  BOOST_TEST((some.row_ids == others.row_ids));
  BOOST_TEST((some.shards == others.shards));
  BOOST_TEST((some.cursors == others.cursors));
}

// Checks that two indexes over one directory give the same answers. The first must answer all by
// routes that begin with `route`, and by ordered indexes that end with `devices`.
void CheckSameAnswers(const SecondaryIndex& on_gpu, const SecondaryIndex& on_cpu,
                      const std::string& route = "gpu:", const std::string& devices = "") {
  std::mt19937_64 random = TestRandom(7);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{300}, size_t{9000}, kMany}) {
    EncodedKeys keys = KeysOf(on_cpu, size, &random);
    RangeColumnsOf ranges(keys, size == kMany ? 2000 : size, &random);
    std::vector<std::string> routes;
    const Answers found = Ask(on_gpu, keys, ranges, &routes);
    const Answers expected = Ask(on_cpu, keys, ranges, nullptr);
    BOOST_TEST((found.first == expected.first), size);
    BOOST_TEST((found.contained == expected.contained), size);
    BOOST_TEST((found.counts == expected.counts), size);
    CheckSame(found.found, expected.found);
    CheckSame(found.scanned, expected.scanned);
    for (const std::string& text : routes) {
      BOOST_TEST(absl::StartsWith(text, route), text);
      BOOST_TEST(absl::EndsWith(text, devices), text);
    }
  }
}

// A spec, and a value of it for row i.
struct Kind {
  const char* name;
  const char* spec;
  std::string (*value)(uint64_t);
};
const Kind kKinds[] = {
    {"numbers", "value.field(',', 0):u64",
     [](uint64_t i) { return std::to_string(i / 3 * 7919 % 1000003); }},
    {"short numbers", "value.field(',', 0):u32",
     [](uint64_t i) { return std::to_string(i % 700); }},
    {"short text", "value.field(',', 0):text", [](uint64_t i) { return absl::StrCat("k", i / 2); }},
    {"any bytes", "value:bytes",
     [](uint64_t i) {
       std::string value = absl::StrCat(i / 2, std::string(i % 40, static_cast<char>(i)));
       return value;
     }},
    {"all equal", "value.field(',', 0):u32", [](uint64_t) { return std::string("5"); }},
};
constexpr uint64_t kRows = 2500;

void Fill(const Kind& kind, uint64_t begin, uint64_t end, TestDatabase* db) {
  for (uint64_t i = begin; i < end; ++i) db->Put(absl::StrCat("row", i), kind.value(i));
}

IndexStats::OrderedIndex OnGpu(const SecondaryIndex& index) {
  return RequireOk(index.Stats()).ordered_indexes.at(0);
}

struct FailsNoMore {
  ~FailsNoMore() {
    FailGroupMemberAfter(-1, -1);
    FailDeviceCallsAfter(-1);
  }
};

BOOST_AUTO_TEST_CASE(a_plain_index_is_replicated) {
  for (const Kind& kind : kKinds) {
    BOOST_TEST_CONTEXT(kind.name) {
      TestDatabase db;
      Fill(kind, 0, kRows, &db);
      Build(db, kind.spec);
      const auto on_cpu = RequireOk(SecondaryIndex::Open(db.Beside("index"), ForTests()));
      const auto one = OpenOn(db.Beside("index"), {0});
      const auto three = OpenOn(db.Beside("index"), GroupDevices(3));
      CheckSameAnswers(*one, *on_cpu, "gpu:", " on device 0");
      CheckSameAnswers(*three, *on_cpu, "gpu:", OnDevices(3));
      BOOST_TEST(absl::EndsWith(OnGpu(*three).description, OnDevices(3)));
      BOOST_TEST(OnGpu(*three).bytes == 3 * OnGpu(*one).bytes);
      BOOST_TEST(RequireOk(three->Stats()).fallback == "");
      RequireOk(three->Verify());
    }
  }
}

BOOST_AUTO_TEST_CASE(shards_by_key_range_are_on_the_devices_in_turn) {
  for (const Kind& kind : kKinds) {
    BOOST_TEST_CONTEXT(kind.name) {
      TestDatabase db;
      Fill(kind, 0, kRows, &db);
      const auto on_cpu = BuildInShards(db, kind.spec, 5);
      const auto on_gpu = OpenOn(db.Beside("sharded"), GroupDevices(3));
      CheckSameAnswers(*on_gpu, *on_cpu, "gpu:");
      const IndexStats stats = RequireOk(on_gpu->Stats());
      for (const auto& index : stats.ordered_indexes) {
        const bool on_cpu_too = index.description == "cpu:sorted_array";
        BOOST_TEST((on_cpu_too || absl::StrContains(index.description, " on device ")),
                   index.description);
      }
      RequireOk(on_gpu->Verify());
      // A single shard is a plain index, which has replicas.
      const auto map = RequireOk(ShardMap::Open(db.Beside("sharded")));
      const auto shard = RequireOk(map->OpenShard(1, On(GroupDevices(2))));
      CheckSameAnswers(*shard, *RequireOk(map->OpenShard(1, ForTests())), "gpu:", OnDevices(2));
    }
  }
}

BOOST_AUTO_TEST_CASE(what_comes_later_is_found_and_merged_onto_the_same_devices) {
  const Kind& kind = kKinds[0];
  TestDatabase db;
  Fill(kind, 0, kRows, &db);
  Build(db, kind.spec);
  const auto index = OpenOn(db.Beside("index"), GroupDevices(3));
  const auto check = [&] {
    const auto on_cpu = RequireOk(SecondaryIndex::Open(db.Beside("index"), ForTests()));
    CheckSameAnswers(*index, *on_cpu, "gpu:", OnDevices(3));
  };
  for (int round = 0; round < 2; ++round) {
    const uint64_t begin = kRows + 200 * static_cast<uint64_t>(round);
    Fill(kind, begin, begin + 200, &db);
    for (uint64_t i = 0; i < 100; ++i) db.Delete(absl::StrCat("row", begin / 9 + i * 3));
    RequireOk(index->CatchUp(*db.Source()).status());
    BOOST_TEST(RequireOk(index->Stats()).delta.added_entries > 0u);
    check();
    RequireOk(index->Compact());
    BOOST_TEST(RequireOk(index->Stats()).delta.added_entries == 0u);
    BOOST_TEST(absl::EndsWith(OnGpu(*index).description, OnDevices(3)));
    check();
  }
}

BOOST_AUTO_TEST_CASE(shards_by_source_catch_up_and_merge_on_their_devices) {
  const Kind& kind = kKinds[1];
  ShardedSources sources(3);
  for (size_t s = 0; s < 3; ++s) Fill(kind, 900 * s, 900 * (s + 1), &sources[s]);
  sources.Build(kind.spec);
  const auto index = OpenOn(sources.Path("sources"), GroupDevices(2));
  const auto check = [&] {
    const auto on_cpu = RequireOk(SecondaryIndex::Open(sources.Path("sources"), ForTests()));
    CheckSameAnswers(*index, *on_cpu, "gpu:");
  };
  check();
  for (size_t s = 0; s < 3; ++s) Fill(kind, 5000 + 50 * s, 5000 + 50 * (s + 1), &sources[s]);
  sources.CatchUp(index.get());
  check();
  RequireOk(index->Compact());
  check();
}

BOOST_AUTO_TEST_CASE(an_indexed_database_follows_on_several_devices) {
  IndexedDBOptions options;
  options.open = On(GroupDevices(2));
  TestDatabase rows;  // only for its directory
  auto db = RequireOk(
      IndexedDB::Attach(std::shared_ptr<rocksdb::DB>(rows.db(), [](rocksdb::DB*) {}), {}, options));
  RequireOk(db->CreateIndex("n = value.field(',', 0):u32"));
  RequireOk(db->WaitUntilReady("n"));
  for (int i = 0; i < 500; ++i) RequireOk(db->Put({}, absl::StrCat("row", i), absl::StrCat(i / 2)));
  BOOST_TEST(RequireOk(db->Lookup("n", 77)).size() == 2u);
  const auto pinned = RequireOk(db->Pin("n"));
  BOOST_TEST(absl::EndsWith(OnGpu(*pinned).description, OnDevices(2)));
}

BOOST_AUTO_TEST_CASE(others_answer_for_a_lost_device_and_the_cpu_for_all) {
  const Kind& kind = kKinds[0];
  TestDatabase db;
  Fill(kind, 0, kRows, &db);
  Build(db, kind.spec);
  BuildInShards(db, kind.spec, 4);
  const auto on_cpu = RequireOk(SecondaryIndex::Open(db.Beside("index"), ForTests()));
  for (const int64_t after : {0, 1, 5}) {
    const FailsNoMore no_more;
    const auto index = OpenOn(db.Beside("index"), GroupDevices(3));
    FailGroupMemberAfter(1, after);
    CheckSameAnswers(*index, *on_cpu, "gpu:packed; ");
    BOOST_TEST(absl::EndsWith(OnGpu(*index).description, OnDevices(3) + " (1 lost)"));
    FailGroupMemberAfter(-1, after);
    CheckSameAnswers(*index, *on_cpu, "");
    BOOST_TEST(absl::EndsWith(OnGpu(*index).description, " (3 lost)"));
    FailGroupMemberAfter(-1, -1);
    // They stay lost.
    CheckSameAnswers(*index, *on_cpu, "cpu:");
  }
  const auto sharded_on_cpu = RequireOk(SecondaryIndex::Open(db.Beside("sharded"), ForTests()));
  const FailsNoMore no_more;
  const auto sharded = OpenOn(db.Beside("sharded"), GroupDevices(2));
  FailDeviceCallsAfter(3);
  CheckSameAnswers(*sharded, *sharded_on_cpu, "");
  CheckSameAnswers(*sharded, *sharded_on_cpu, "cpu:");
}

BOOST_AUTO_TEST_CASE(a_device_that_is_not_there_or_too_small_is_named) {
  const Kind& kind = kKinds[0];
  TestDatabase db;
  Fill(kind, 0, kRows, &db);
  Build(db, kind.spec);
  const auto open = [&](const OpenOptions& options) {
    return SecondaryIndex::Open(db.Beside("index"), options);
  };
  for (const std::vector<int>& devices : {std::vector<int>{1000}, std::vector<int>{0, 1000}}) {
    OpenOptions options = On(devices);
    const absl::Status status = open(options).status();
    BOOST_TEST(absl::IsUnavailable(status), status);
    BOOST_TEST(absl::StrContains(status.message(), "no usable CUDA device 1000"), status);
    options.device = SearchDevice::kAuto;
    const auto index = RequireOk(open(options));
    BOOST_TEST(absl::StrContains(RequireOk(index->Stats()).fallback, "CUDA device 1000"));
  }
  // Enough for one copy, and not for three.
  OpenOptions options = On({0, 0, 0});
  const uint64_t bytes = OnGpu(*RequireOk(open(On({0})))).bytes;
  options.device_memory_budget = bytes;
  const absl::Status status = open(options).status();
  BOOST_TEST(absl::IsResourceExhausted(status), status);
  BOOST_TEST(absl::StrContains(status.message(), "in 3 copies"), status);
  // In addition to the entries, a small index may need this much for its directory.
  options.device_memory_budget = 3 * (bytes + (uint64_t{2} << 20));
  RequireOk(open(options));
}

BOOST_AUTO_TEST_CASE(trials_are_made_of_all_devices_together_and_stored) {
  const Kind& kind = kKinds[0];
  TestDatabase db;
  Fill(kind, 0, kRows, &db);
  Build(db, kind.spec);
  OpenOptions options = On(GroupDevices(2));
  options.device = SearchDevice::kAuto;
  options.calibration = Calibration::kStored;
  for (int round = 0; round < 2; ++round) {
    const auto index = RequireOk(SecondaryIndex::Open(db.Beside("index"), options));
    std::vector<uint64_t> keys(1000, 7919);
    std::vector<RowId> rows(keys.size());
    Explain explain;
    Batch batch = Batch::FindFirst(keys, absl::MakeSpan(rows));
    batch.options.route = "gpu:packed";
    batch.explain = &explain;
    RequireOk(index->Execute(batch));
    BOOST_TEST(explain.route == "gpu:packed");
    BOOST_TEST(absl::EndsWith(explain.index, OnDevices(2)), explain.index);
    BOOST_TEST((explain.predicted > absl::ZeroDuration()));
    BOOST_TEST((explain.predicted < absl::InfiniteDuration()));
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
