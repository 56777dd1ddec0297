// A SecondaryIndex and its routes: the results do not depend on the route.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/types.h"
#include "test/engine/faulty_file_system.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(routing_test)
namespace {

constexpr int kRows = 20000;
constexpr int kValues = 3000;  // some of them several times

std::string Value(uint64_t number) {
  return std::to_string(number * 2654435761u % 1000003);
}

std::unique_ptr<SecondaryIndex> BuildAndOpen(TestDatabase& db, std::string_view spec,
                                             const OpenOptions& options) {
  const auto parsed = RequireOk(IndexSpec::Parse(spec));
  RequireOk(SecondaryIndex::Build(*db.Source(), parsed, db.Beside("index")));
  return RequireOk(SecondaryIndex::Open(db.Beside("index"), options));
}

void Fill(TestDatabase& db) {
  std::mt19937_64 random = TestRandom();
  for (int i = 0; i < kRows; ++i) db.Put("row" + std::to_string(i), Value(random() % kValues));
}

// `count` keys, including absent ones.
EncodedKeys SomeKeys(const SecondaryIndex& index, size_t count) {
  std::mt19937_64 random = TestRandom(count);
  EncodedKeys keys(index.codec().kind());
  for (size_t i = 0; i < count; ++i) {
    RequireOk(index.codec().Parse(Value(random() % (kValues + 500)), &keys));
  }
  return keys;
}

IndexStats StatsOf(const SecondaryIndex& index) {
  return RequireOk(index.Stats());
}

std::vector<RouteStats> RoutesOf(const SecondaryIndex& index) {
  return StatsOf(index).routes;
}

struct Answers {
  std::vector<RowId> first;
  std::vector<char> found;
  FindResult all;
  std::vector<uint64_t> counts;
  FindResult scanned;
};

// Fails the test on an error. Ranges are from each key to the next one of the batch.
Answers Ask(const SecondaryIndex& index, KeyBatch keys, const QueryOptions& options, bool ranges,
            absl::Span<uint32_t> query_of = {}) {
  Answers answers;
  answers.first.resize(keys.size());
  answers.found.resize(keys.size());
  static_assert(sizeof(char) == sizeof(bool));
  auto ok = [&](Batch batch) {
    std::fill(query_of.begin(), query_of.end(), 0xDEAD);
    batch.query_of = query_of;
    RequireOk(index.Execute(batch));
    if (batch.takes_ranges() || options.result_order == ResultOrder::kKey) return;
    for (size_t i = 0; i < query_of.size(); ++i) BOOST_REQUIRE_EQUAL(query_of[i], i);
  };
  ok(Batch::FindFirst(keys, absl::MakeSpan(answers.first), options));
  ok(Batch::Contains(
      keys, absl::Span<bool>(reinterpret_cast<bool*>(answers.found.data()), answers.found.size()),
      options));
  ok(Batch::Find(keys, &answers.all, options));
  if (!ranges || keys.empty()) return answers;
  const RangeBatch batch =
      RangeBatch::HalfOpen(keys.Slice(0, keys.size() - 1), keys.Slice(1, keys.size() - 1));
  answers.counts.resize(batch.size());
  ok(Batch::Count(batch, absl::MakeSpan(answers.counts), options));
  if (keys.size() < 1000) ok(Batch::Scan(batch, &answers.scanned, options));
  return answers;
}

// Reorders results in key order to the caller's order.
Answers InCallersOrder(const Answers& answers, absl::Span<const uint32_t> query_of) {
  const size_t size = query_of.size();
  Answers back = answers;
  std::vector<size_t> answer_of(size, size);
  for (size_t i = 0; i < size; ++i) answer_of.at(query_of[i]) = i;
  back.all.offsets.assign(1, 0);
  back.all.row_ids.clear();
  for (size_t q = 0; q < size; ++q) {
    const size_t i = answer_of[q];
    BOOST_REQUIRE(i < size);
    back.first[q] = answers.first[i];
    back.found[q] = answers.found[i];
    const auto rows = answers.all[i];
    back.all.row_ids.insert(back.all.row_ids.end(), rows.begin(), rows.end());
    back.all.offsets.push_back(back.all.row_ids.size());
  }
  return back;
}

void CheckEqual(const Answers& a, const Answers& b) {
  BOOST_TEST((a.first == b.first));
  BOOST_TEST((a.found == b.found));
  BOOST_TEST((a.all.offsets == b.all.offsets));
  BOOST_TEST((a.all.row_ids == b.all.row_ids));
  if (!a.counts.empty()) {  // otherwise they were not requested
    BOOST_TEST((a.counts == b.counts));
    BOOST_TEST((a.scanned.row_ids == b.scanned.row_ids));
  }
}

BOOST_AUTO_TEST_CASE(every_route_gives_the_answers_of_every_other) {
  TestDatabase db;
  Fill(db);
  for (const char* spec : {"value.field('|',0):u32", "value.field('|',0):u64", "value:text"}) {
    BOOST_TEST_CONTEXT(spec) {
      OpenOptions options;
      options.device = SearchDevice::kAuto;
      options.threads = 2;
      const auto index = BuildAndOpen(db, spec, options);
      options.ordered_indexes = {"cpu:sorted_array"};
      options.calibration = Calibration::kNone;
      const auto reference = RequireOk(SecondaryIndex::Open(db.Beside("index"), options));
      std::vector<std::string> routes = {""};
      for (const RouteStats& stats : RoutesOf(*index)) routes.push_back(stats.route);
      BOOST_TEST(routes.size() >= 4u);  // at least unbuffered, buffered and sorted

      for (const size_t size : {0, 1, 2, 63, 700, 40000}) {
        if (kUnderTsan && size > 0 && size < 700) continue;
        EncodedKeys column = SomeKeys(*index, size);
        const KeyBatch keys = column.Batch();
        const Answers expected = Ask(*reference, keys, {}, true);
        for (const std::string& route : routes) {
          BOOST_TEST_CONTEXT(route << ", " << size << " keys") {
            QueryOptions query;
            query.route = route;
            const bool ranges = !absl::StrContains(route, "+");
            CheckEqual(Ask(*index, keys, query, ranges), expected);
            std::vector<uint32_t> query_of(size);
            CheckEqual(Ask(*index, keys, query, ranges, absl::MakeSpan(query_of)), expected);
            query.sorted_input = true;  // which is wrong
            CheckEqual(Ask(*index, keys, query, ranges), expected);
            if (!route.empty() && !absl::StrContains(route, "sort_based")) continue;
            query = {};
            query.route = route;
            query.result_order = ResultOrder::kKey;
            const Answers in_key_order = Ask(*index, keys, query, false, absl::MakeSpan(query_of));
            CheckEqual(InCallersOrder(in_key_order, query_of), expected);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(batches_are_counted_on_the_route_that_explain_names) {
  TestDatabase db;
  Fill(db);
  const auto index = BuildAndOpen(db, "value.field('|',0):u32", {});
  EncodedKeys keys = SomeKeys(*index, 100);
  std::vector<RowId> rows(100);
  for (const RouteStats& stats : RoutesOf(*index)) {
    BOOST_TEST(stats.batches == 0u);  // trials are not counted
    Explain explain;
    Batch batch = Batch::FindFirst(keys.Batch(), absl::MakeSpan(rows));
    batch.options.route = stats.route;
    batch.explain = &explain;
    RequireOk(index->Execute(batch));
    BOOST_TEST(explain.route == stats.route);
    BOOST_TEST(explain.reason == "the query options select it");
    BOOST_TEST(explain.queries == 100u);
    BOOST_TEST((explain.measured > absl::ZeroDuration()));
    BOOST_TEST((explain.predicted > absl::ZeroDuration()));
    BOOST_TEST((explain.predicted < absl::Seconds(1)));
    BOOST_TEST(explain.candidates.size() == RoutesOf(*index).size());
  }
  for (const RouteStats& stats : RoutesOf(*index)) {
    BOOST_TEST(stats.batches == 1u);
    BOOST_TEST(stats.queries == 100u);
    BOOST_TEST(stats.bytes == 100u * (sizeof(uint32_t) + sizeof(RowId)));
  }
}

BOOST_AUTO_TEST_CASE(operations_that_ask_for_positions_are_refused) {
  TestDatabase db;
  Fill(db);
  const auto index = BuildAndOpen(db, "value:text", {});
  EncodedKeys keys = SomeKeys(*index, 3);
  std::vector<Position> begin(3), end(3);
  const auto from = absl::MakeSpan(begin), to = absl::MakeSpan(end);
  const RangeBatch ranges = RangeBatch::Equal(keys.Batch());
  const Batch batches[] = {
      Batch::LowerBound(keys.Batch(), from), Batch::UpperBound(keys.Batch(), from),
      Batch::EqualRange(keys.Batch(), from, to), Batch::Positions(ranges, from, to)};
  for (const Batch& batch : batches) {
    BOOST_TEST(absl::IsInvalidArgument(index->Execute(batch)));
  }
}

BOOST_AUTO_TEST_CASE(a_wrong_route_and_key_order_of_ranges_are_refused) {
  TestDatabase db;
  Fill(db);
  const auto index = BuildAndOpen(db, "value:text", {});
  EncodedKeys keys = SomeKeys(*index, 3);
  std::vector<GlobalRowId> rows(3);
  QueryOptions options;
  options.route = "cpu:abacus";
  absl::Status status = index->FindFirst(keys.Batch(), absl::MakeSpan(rows), options);
  BOOST_TEST(absl::IsInvalidArgument(status));
  BOOST_TEST(absl::StrContains(status.message(), "cpu:partial_key+sort_based"));
  options = {};
  options.result_order = ResultOrder::kKey;
  std::vector<uint64_t> counts(3);
  BOOST_TEST(absl::IsInvalidArgument(
      index->Count(RangeBatch::Equal(keys.Batch()), absl::MakeSpan(counts), options)));
  std::vector<uint32_t> query_of(2);  // of three
  Batch batch = Batch::FindFirst(keys.Batch(), absl::MakeSpan(rows), options);
  BOOST_TEST(absl::IsInvalidArgument(index->Execute(batch)));
  batch.query_of = absl::MakeSpan(query_of);
  BOOST_TEST(absl::IsInvalidArgument(index->Execute(batch)));
}

BOOST_AUTO_TEST_CASE(several_ordered_indexes_are_resident_and_budgets_leave_the_files_alone) {
  TestDatabase db;
  Fill(db);
  OpenOptions options;
  options.ordered_indexes = {"cpu:fast", "cpu:fast,compressed", "cpu:packed"};
  const auto index = BuildAndOpen(db, "value.field('|',0):u64", options);
  std::vector<std::string> routes;
  for (const RouteStats& stats : RoutesOf(*index)) routes.push_back(stats.route);
  BOOST_TEST(routes.size() == 9u);
  BOOST_TEST(routes[0] == "cpu:fast");
  BOOST_TEST(routes[3] == "cpu:fast,compressed");
  BOOST_TEST(routes[6] == "cpu:packed");
  BOOST_TEST(StatsOf(*index).ordered_indexes.size() == 3u);
  BOOST_TEST(index->Verify().ok());

  options.ordered_indexes.push_back("cpu:fast");
  BOOST_TEST(absl::IsInvalidArgument(SecondaryIndex::Open(db.Beside("index"), options).status()));

  options.ordered_indexes.clear();
  options.host_memory_budget = 1;
  const auto small = RequireOk(SecondaryIndex::Open(db.Beside("index"), options));
  BOOST_TEST(StatsOf(*small).ordered_indexes[0].bytes == 0u);
  options.host_memory_budget = 30000;  // one or two bytes per entry
  const auto middle = RequireOk(SecondaryIndex::Open(db.Beside("index"), options));
  BOOST_TEST(RoutesOf(*middle)[0].route == "cpu:fast");
}

// Text has a hash table for whole keys if the options allow the memory.
BOOST_AUTO_TEST_CASE(a_budget_decides_whether_text_is_hashed) {
  TestDatabase db;
  Fill(db);
  OpenOptions options;
  options.host_memory_budget = uint64_t{1} << 30;
  const auto with_hash = BuildAndOpen(db, "value:text", options);
  const uint64_t entries = StatsOf(*with_hash).entries;
  const auto structure = [](const SecondaryIndex& index) {
    BOOST_TEST(RoutesOf(index).size() == 3u);
    return StatsOf(index).ordered_indexes.at(0);
  };
  BOOST_TEST(absl::StartsWith(structure(*with_hash).description, "cpu:partial_key,hash,"));
  BOOST_TEST(structure(*with_hash).bytes <= 30 * entries + 7 * entries);
  BOOST_TEST(RoutesOf(*with_hash)[0].route == "cpu:partial_key");

  // No key has more than 6 bytes, or less than one.
  const auto expected = Ask(*with_hash, SomeKeys(*with_hash, 700).Batch(), {}, true);
  for (const auto& [budget, description] :
       {std::pair<uint64_t, const char*>{37 * entries, "cpu:partial_key,hash,"},
        {30 * entries, "cpu:partial_key,simd"},
        {0, "cpu:partial_key,simd"},
        {9 * entries, "cpu:strings"},
        {1, "cpu:sorted_array"}}) {
    BOOST_TEST_CONTEXT(description) {
      options.host_memory_budget = budget;
      const auto index = RequireOk(SecondaryIndex::Open(db.Beside("index"), options));
      BOOST_TEST(absl::StartsWith(structure(*index).description, description));
      if (budget != 0) BOOST_TEST(structure(*index).bytes <= budget);
      CheckEqual(Ask(*index, SomeKeys(*index, 700).Batch(), {}, true), expected);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_index_is_opened_and_queried_without_writing_a_file) {
  TestDatabase db;
  Fill(db);
  RequireOk(SecondaryIndex::Build(
      *db.Source(), RequireOk(IndexSpec::Parse("value.field('|',0):u32")), db.Beside("index")));
  const auto files = std::make_shared<FaultyFileSystem>();
  files->Break(FaultyFileSystem::Fault::kWriteError, 1, FaultyFileSystem::Lasting::kUntilRepaired);
  for (const Calibration calibration : {Calibration::kStored, Calibration::kTrials}) {
    OpenOptions options;
    options.file_system = files;
    options.calibration = calibration;
    const auto index = RequireOk(SecondaryIndex::Open(db.Beside("index"), options));
    auto keys = SomeKeys(*index, 1000);
    std::vector<GlobalRowId> rows(1000);
    RequireOk(index->FindFirst(keys.Batch(), absl::MakeSpan(rows)));
    RequireOk(index->Verify());
    BOOST_TEST((index->PredictedTime(Operation::kFindFirst, 1000) > absl::ZeroDuration()));
  }
  BOOST_TEST(files->failed() == 0u);
  BOOST_TEST(!std::filesystem::exists(db.Beside("index") + "/CALIBRATION"));
  // Failing to store is not an error.
  OpenOptions options;
  options.file_system = files;
  options.calibration = Calibration::kStore;
  RequireOk(SecondaryIndex::Open(db.Beside("index"), options).status());
  BOOST_TEST(files->failed() > 0u);
}

BOOST_AUTO_TEST_CASE(cost_models_are_stored_beside_the_index_and_damage_there_does_no_harm) {
  TestDatabase db;
  Fill(db);
  OpenOptions options;
  options.calibration = Calibration::kStore;
  BOOST_REQUIRE(BuildAndOpen(db, "value.field('|',0):u32", options) != nullptr);
  const std::string path = db.Beside("index") + "/CALIBRATION";
  BOOST_REQUIRE(std::filesystem::exists(path));
  const auto predicted = [&] {
    const auto index = RequireOk(SecondaryIndex::Open(db.Beside("index"), options));
    BOOST_TEST(index->BestBatch(Operation::kFindFirst) >= 1u);
    return index->PredictedTime(Operation::kFindFirst, 1000);
  };
  const absl::Duration stored = predicted();
  BOOST_TEST((stored > absl::ZeroDuration()));
  BOOST_TEST((predicted() == stored));
  options.calibration = Calibration::kStored;
  BOOST_TEST((predicted() == stored));
  options.calibration = Calibration::kStore;
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  BOOST_TEST((predicted() > absl::ZeroDuration()));
  BOOST_TEST((predicted() == predicted()));  // rewritten
  // uses the next one
  BOOST_REQUIRE(BuildAndOpen(db, "value.field('|',0):u32", options) != nullptr);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
