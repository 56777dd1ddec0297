// Predicates over columns in device memory: compares every strategy with SQL's logic row by row.
#include "cairn/device/index_group.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "gpu/runtime/stream.h"
#include "test/gpu/device_array.h"
#include "test/gpu/fail_every_allocation.h"
#include "test/gpu/needs_device.h"
#include "test/gpu/where/where_oracle.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(device_index_group_test, NeedsDevice)
namespace {

using Strategy = DeviceWhereStrategy;

constexpr RowId kUntouched = 0xABABABAB;
constexpr Strategy kStrategies[] = {Strategy::kAuto, Strategy::kGather, Strategy::kBitmap,
                                    Strategy::kScan};

// The distribution of a column's keys.
enum class Keys : uint8_t { kDistinct, kFew, kEqual, kSkewed, kEnds };
constexpr Keys kAllKeys[] = {Keys::kDistinct, Keys::kFew, Keys::kEqual, Keys::kSkewed, Keys::kEnds};

KeysOfRows MakeKeys(Keys how, bool wide, size_t rows, uint64_t null_of_100,
                    std::mt19937_64* random) {
  const uint64_t greatest = wide ? UINT64_MAX : UINT32_MAX;
  KeysOfRows keys(rows);
  for (size_t i = 0; i < rows; ++i) {
    if ((*random)() % 100 < null_of_100) continue;
    const uint64_t any = (*random)() & greatest;
    switch (how) {
      case Keys::kDistinct:
        keys[i] = (i * 0x9E3779B97F4A7C15ull) & greatest;
        break;
      case Keys::kFew:
        keys[i] = any % 4 * 1000;
        break;
      case Keys::kEqual:
        keys[i] = 42;
        break;
      case Keys::kSkewed:  // nine of ten are one key
        keys[i] = any % 10 != 0 ? 1000000 : any % 3000000;
        break;
      case Keys::kEnds:
        keys[i] = any % 3 == 0 ? 0 : any % 3 == 1 ? greatest : greatest - 1;
        break;
    }
  }
  return keys;
}

// A column's entries on the device, in random order.
class DeviceColumn {
 public:
  DeviceColumn(const KeysOfRows& keys, bool wide, std::mt19937_64* random) : wide_(wide) {
    std::vector<RowId> rows;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i].has_value()) rows.push_back(static_cast<RowId>(i));
    }
    std::shuffle(rows.begin(), rows.end(), *random);
    std::vector<uint32_t> narrow;
    std::vector<uint64_t> all;
    for (const RowId row : rows) {
      all.push_back(*keys[row]);
      narrow.push_back(static_cast<uint32_t>(*keys[row]));
    }
    wide_keys_ = std::make_unique<DeviceArray<uint64_t>>(all);
    narrow_keys_ = std::make_unique<DeviceArray<uint32_t>>(narrow);
    rows_ = std::make_unique<DeviceArray<RowId>>(rows);
  }
  DeviceIndexGroup::Column view() const {
    const size_t size = rows_->size();
    return {wide_ ? DeviceKeys(wide_keys_->data(), size) : DeviceKeys(narrow_keys_->data(), size),
            rows_->data()};
  }

 private:
  bool wide_;
  std::unique_ptr<DeviceArray<uint64_t>> wide_keys_;
  std::unique_ptr<DeviceArray<uint32_t>> narrow_keys_;
  std::unique_ptr<DeviceArray<RowId>> rows_;
};

struct TestGroup {
  std::vector<KeysOfRows> columns;
  std::unique_ptr<DeviceIndexGroup> group;
};

std::unique_ptr<DeviceIndexGroup> GroupOf(const std::vector<KeysOfRows>& columns, size_t rows,
                                          std::mt19937_64* random) {
  const Stream stream = RequireOk(Stream::Create());
  std::vector<DeviceColumn> on_device;
  std::vector<DeviceIndexGroup::Column> views;
  for (size_t i = 0; i < columns.size(); ++i) {
    on_device.emplace_back(columns[i], i % 2 == 1, random);
    views.push_back(on_device.back().view());
  }
  return RequireOk(DeviceIndexGroup::Create(rows, views, stream.get()));
}

TestGroup MakeGroup(size_t rows, size_t columns, size_t salt, std::mt19937_64* random) {
  TestGroup made;
  for (size_t i = 0; i < columns; ++i) {
    const uint64_t nulls[] = {0, 10, 0, 100, 50};
    made.columns.push_back(MakeKeys(kAllKeys[(salt + i) % std::size(kAllKeys)], i % 2 == 1, rows,
                                    nulls[(salt / 2 + i) % std::size(nulls)], random));
  }
  made.group = GroupOf(made.columns, rows, random);
  return made;
}

std::vector<RowId> RowsOf(const DevicePredicate& where, const std::vector<KeysOfRows>& columns,
                          size_t rows) {
  std::vector<RowId> found;
  for (size_t row = 0; row < rows; ++row) {
    if (Evaluate(where, columns, row) == true) found.push_back(static_cast<RowId>(row));
  }
  return found;
}

void CheckFind(const DeviceIndexGroup& group, const DevicePredicate& where, Strategy strategy,
               const std::vector<RowId>& expected, uint64_t capacity, const Stream& stream) {
  const DeviceArray<uint64_t> total(std::vector<uint64_t>(1, 77));
  const DeviceArray<RowId> rows(std::vector<RowId>(expected.size() + 100, kUntouched));
  RequireOk(group.Find(where, rows.data(), capacity, total.data(), stream.get(), strategy));
  BOOST_TEST_REQUIRE(total.ToHost()[0] == expected.size());
  const size_t there = std::min<uint64_t>(capacity, expected.size());
  std::vector<RowId> should(expected.begin(), expected.begin() + static_cast<ptrdiff_t>(there));
  should.resize(rows.size(), kUntouched);
  const std::vector<RowId> found = rows.ToHost();
  const auto wrong = std::mismatch(found.begin(), found.end(), should.begin()).first;
  BOOST_TEST_REQUIRE((wrong == found.end()),
                     "row " << wrong - found.begin() << ", room for " << capacity);
}

// All strategies that can answer do so. Returns how many these are.
int CheckPredicate(const DeviceIndexGroup& group, const std::vector<KeysOfRows>& columns,
                   const DevicePredicate& where) {
  const Stream stream = RequireOk(Stream::Create());
  const std::vector<RowId> expected = RowsOf(where, columns, group.rows());
  int answered = 0;
  for (const Strategy strategy : kStrategies) {
    const absl::StatusOr<DeviceWherePlan> plan = group.Explain(where, false, strategy);
    if (!plan.ok()) {
      BOOST_TEST((strategy == Strategy::kGather || strategy == Strategy::kBitmap));
      BOOST_TEST(absl::IsInvalidArgument(plan.status()), plan.status());
      continue;
    }
    ++answered;
    BOOST_TEST_CONTEXT(group.rows() << " rows, " << expected.size() << " found\n"
                                    << plan->ToString()) {
      const DeviceArray<uint64_t> count(std::vector<uint64_t>(1, 77));
      RequireOk(group.Count(where, count.data(), stream.get(), strategy));
      BOOST_TEST_REQUIRE(count.ToHost()[0] == expected.size());
      CheckFind(group, where, strategy, expected, expected.size(), stream);
      if (strategy == Strategy::kAuto) {
        for (const uint64_t capacity :
             {expected.size() + 100, expected.size() / 2, size_t{1}, size_t{0}}) {
          CheckFind(group, where, strategy, expected, capacity, stream);
        }
      }
    }
  }
  return answered;
}

BOOST_AUTO_TEST_CASE(random_predicates_over_one_to_five_columns) {
  auto random = TestRandom();
  int answered = 0;
  size_t salt = 0;
  for (const size_t rows :
       {0, 1, 2, 3, 31, 32, 33, 255, 256, 257, 511, 8191, 8192, 8193, 65535, 65536, 65537}) {
    for (int repeat = 0; repeat < 2; ++repeat, ++salt) {
      const TestGroup made = MakeGroup(rows, salt % 5 + 1, salt, &random);
      RandomPredicates predicates(made.columns, &random);
      for (int i = 0; i < 8; ++i) {
        answered += CheckPredicate(*made.group, made.columns, predicates.Make(i % 5));
      }
    }
  }
  BOOST_TEST(answered > 600);
}

BOOST_AUTO_TEST_CASE(three_predicates_of_every_selectivity) {
  auto random = TestRandom();
  constexpr size_t kRows = (1 << 18) + 12345;
  std::vector<KeysOfRows> columns;
  for (size_t i = 0; i < 3; ++i) {
    columns.push_back(MakeKeys(Keys::kDistinct, i == 1, kRows, i == 2 ? 5 : 0, &random));
    std::shuffle(columns[i].begin(), columns[i].end(), random);
  }
  const auto group = GroupOf(columns, kRows, &random);
  for (const uint64_t share : {1, 30, 500, 1000}) {  // of a thousand
    const auto all = [&](size_t column) {
      const uint64_t greatest = column == 1 ? UINT64_MAX : UINT32_MAX;
      const uint64_t first = greatest / 1000 * (share == 1000 ? 0 : 200);
      return share == 1000 ? DevicePredicate::Range(column, 0, UINT64_MAX)
                           : DevicePredicate::Range(column, first, first + greatest / 1000 * share);
    };
    BOOST_TEST(CheckPredicate(*group, columns, all(0) && all(1) && all(2)) == 4);
    BOOST_TEST(CheckPredicate(*group, columns, all(0) || !all(1) || all(2)) == 3);
    BOOST_TEST(CheckPredicate(*group, columns, all(0) && !(all(1) && all(2))) == 4);
  }
}

BOOST_AUTO_TEST_CASE(long_lists_of_keys) {
  auto random = TestRandom();
  const TestGroup made = MakeGroup(50000, 3, 0, &random);
  for (const size_t size : {0, 1, 191, 192, 193, 5000}) {
    std::vector<uint64_t> keys(size);
    for (uint64_t& key : keys) {
      key = made.columns[0][random() % 50000].value_or(1) + (random() % 4 == 0 ? 1 : 0);
    }
    const auto in = DevicePredicate::In(0, keys);
    CheckPredicate(*made.group, made.columns, in);
    CheckPredicate(*made.group, made.columns, !in);
    CheckPredicate(*made.group, made.columns,
                   in && !DevicePredicate::IsNull(1) && DevicePredicate::Range(2, 0, 42));
  }
}

BOOST_AUTO_TEST_CASE(the_deepest_predicate) {
  auto random = TestRandom();
  const TestGroup made = MakeGroup(10000, 2, 0, &random);
  RandomPredicates predicates(made.columns, &random);
  std::vector<DevicePredicate> level;
  for (size_t i = 0; i < DeviceIndexGroup::kMaxComparisons; ++i) {
    level.push_back(DevicePredicate::Range(i % 2, i << (i % 2 == 0 ? 25 : 8), UINT64_MAX));
  }
  for (bool all = false; level.size() > 1; all = !all) {
    std::vector<DevicePredicate> above;
    for (size_t i = 0; i < level.size(); i += 2) {
      above.push_back(all ? level[i] && level[i + 1] : level[i] || level[i + 1]);
    }
    level = std::move(above);
  }
  BOOST_TEST(CheckPredicate(*made.group, made.columns, level[0]) >= 3);
}

BOOST_AUTO_TEST_CASE(runs_of_the_host_and_rows_without_numbers) {
  constexpr size_t kRows = 20000;
  std::vector<uint32_t> keys(kRows);
  for (size_t i = 0; i < kRows; ++i) keys[i] = static_cast<uint32_t>(i * 7919 % 5000);
  const std::vector<SortedRun> runs = {RequireOk(SortedRun::FromUnsorted(keys)), SortedRun()};
  const DeviceArray<uint32_t> on_device(keys);
  const DeviceIndexGroup::Column columns[] = {{DeviceKeys(on_device.data(), kRows)}, {}};
  const auto of_runs = RequireOk(DeviceIndexGroup::Create(kRows, runs));
  const auto of_arrays = RequireOk(DeviceIndexGroup::Create(kRows, columns, nullptr));
  std::vector<KeysOfRows> expected = {KeysOfRows(keys.begin(), keys.end()), KeysOfRows(kRows)};
  for (const auto* group : {of_runs.get(), of_arrays.get()}) {
    BOOST_TEST(group->rows() == kRows);
    BOOST_TEST(group->columns() == 2);
    BOOST_TEST(group->entries(0) == kRows);
    BOOST_TEST(group->entries(1) == 0);
    // Keys, rows, positions, codes up to a whole tile; and a column without keys.
    BOOST_TEST(group->memory_bytes() >= kRows * (13 + 9));
    BOOST_TEST(group->memory_bytes() < kRows * (13 + 9) + 3 * 8192);
    for (const auto& where :
         {DevicePredicate::Range(0, 100, 200), DevicePredicate::IsNull(1),
          DevicePredicate::Range(0, 100, 200) && DevicePredicate::IsNull(1),
          DevicePredicate::Range(0, 4000, 1 << 30) || !DevicePredicate::IsNull(1)}) {
      CheckPredicate(*group, expected, where);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_a_group_cannot_be_made_of) {
  const auto error = [](uint64_t rows, const std::vector<uint32_t>& keys,
                        const std::vector<RowId>& row_ids) {
    const DeviceArray<uint32_t> on_device(keys);
    const DeviceArray<RowId> ids(row_ids);
    const DeviceIndexGroup::Column columns[] = {
        {}, {DeviceKeys(on_device.data(), keys.size()), ids.data()}};
    const absl::Status status = DeviceIndexGroup::Create(rows, columns, nullptr).status();
    BOOST_TEST(absl::IsInvalidArgument(status), status);
    return std::string(status.message());
  };
  BOOST_TEST(error(5, {7, 8}, {1, 5}) == "column 1: got an entry of row 5, but there are 5 rows");
  BOOST_TEST(error(5, {7, 8, 9}, {1, 2, 1}) ==
             "column 1: got 3 entries of 2 rows, but a row can have only one key per column");
  BOOST_TEST(error(1, {7, 8}, {0, 0}) ==
             "column 1: got 2 entries, but 1 rows, each with at most one key");
  BOOST_TEST(error(5, {7}, {kNoRow}).find("which is reserved") != std::string::npos);
  BOOST_TEST(error(kMaxEntries + 1, {7}, {0}).find("more than the 4294967294") !=
             std::string::npos);
  const std::vector<SortedRun> strings = {
      RequireOk(SortedRun::FromUnsorted(std::vector<std::string_view>{"a", "b"}))};
  BOOST_TEST(absl::IsUnimplemented(DeviceIndexGroup::Create(2, strings).status()));
  const uint32_t falling[] = {5, 4};
  const RowId rows[] = {0, 1};
  const std::vector<SortedRun> unordered = {SortedRun::Wrap(falling, rows, nullptr)};
  BOOST_TEST(absl::IsDataLoss(DeviceIndexGroup::Create(2, unordered).status()));
  BOOST_TEST(absl::IsUnavailable(DeviceIndexGroup::Create(2, unordered, 1000).status()));
  const std::vector<SortedRun> many(65);
  BOOST_TEST(absl::IsInvalidArgument(DeviceIndexGroup::Create(2, many).status()));
}

BOOST_AUTO_TEST_CASE(what_runs_out_of_memory_leaves_nothing) {
  auto random = TestRandom();
  const Stream stream = RequireOk(Stream::Create());
  const KeysOfRows keys = MakeKeys(Keys::kDistinct, false, 20000, 10, &random);
  const DeviceColumn column(keys, false, &random);
  const DeviceIndexGroup::Column columns[] = {column.view(), column.view()};
  BOOST_TEST(FailEveryAllocation([&] {
               return DeviceIndexGroup::Create(keys.size(), columns, stream.get()).status();
             }) > 10);
  const auto group = RequireOk(DeviceIndexGroup::Create(keys.size(), columns, stream.get()));
  const auto where = DevicePredicate::Range(0, 0, 1 << 30) && DevicePredicate::Range(1, 5, 1 << 31);
  const DeviceArray<uint64_t> count(1);
  const DeviceArray<RowId> rows(keys.size());
  for (const Strategy strategy : kStrategies) {
    BOOST_TEST(FailEveryAllocation(
                   [&] { return group->Count(where, count.data(), stream.get(), strategy); }) >= 4);
    BOOST_TEST(FailEveryAllocation([&] {
                 return group->Find(where, rows.data(), keys.size(), count.data(), stream.get(),
                                    strategy);
               }) >= 6);
  }
  CheckPredicate(*group, {keys, keys}, where);
}

BOOST_AUTO_TEST_CASE(captured_in_a_graph) {
  auto random = TestRandom();
  const TestGroup made = MakeGroup(30000, 3, 0, &random);
  const auto where = !DevicePredicate::Range(0, 0, 1 << 30) && DevicePredicate::Range(2, 0, 42);
  const std::vector<RowId> expected = RowsOf(where, made.columns, 30000);
  const Stream stream = RequireOk(Stream::Create());
  for (const Strategy strategy : kStrategies) {
    const DeviceArray<uint64_t> totals(std::vector<uint64_t>(2, 77));
    const DeviceArray<RowId> rows(std::vector<RowId>(30000, kUntouched));
    cudaGraph_t graph;
    cudaGraphExec_t launchable;
    BOOST_REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
    RequireOk(made.group->Count(where, totals.data(), stream.get(), strategy));
    RequireOk(
        made.group->Find(where, rows.data(), 30000, totals.data() + 1, stream.get(), strategy));
    BOOST_TEST(absl::IsFailedPrecondition(
        DeviceIndexGroup::Create(1, absl::Span<const DeviceIndexGroup::Column>(), stream.get())
            .status()));
    BOOST_REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
    BOOST_REQUIRE(cudaGraphInstantiate(&launchable, graph, 0) == cudaSuccess);
    for (int i = 0; i < 2; ++i) {
      BOOST_REQUIRE(cudaGraphLaunch(launchable, stream.get()) == cudaSuccess);
      RequireOk(stream.Wait());
      BOOST_TEST((totals.ToHost() == std::vector<uint64_t>(2, expected.size())));
      const std::vector<RowId> found = rows.ToHost();
      BOOST_TEST(std::equal(expected.begin(), expected.end(), found.begin()));
    }
    BOOST_REQUIRE(cudaGraphExecDestroy(launchable) == cudaSuccess);
    BOOST_REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  }
}

BOOST_AUTO_TEST_CASE(a_group_may_go_while_it_is_asked) {
  auto random = TestRandom();
  TestGroup made = MakeGroup(65536, 3, 0, &random);
  const auto where = DevicePredicate::Range(0, 0, 1 << 30) || DevicePredicate::Range(2, 0, 42);
  const std::vector<RowId> expected = RowsOf(where, made.columns, 65536);
  const Stream stream = RequireOk(Stream::Create());
  const DeviceArray<uint64_t> total(1);
  const DeviceArray<RowId> rows(65536);
  for (int i = 0; i < 20; ++i) {
    RequireOk(made.group->Find(where, rows.data(), 65536, total.data(), stream.get()));
  }
  made.group.reset();
  BOOST_TEST(total.ToHost()[0] == expected.size());
  const std::vector<RowId> found = rows.ToHost();
  BOOST_TEST(std::equal(expected.begin(), expected.end(), found.begin()));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_asked_is_an_error) {
  auto random = TestRandom();
  const TestGroup made = MakeGroup(100, 2, 0, &random);
  const DeviceArray<uint64_t> total(1);
  for (const auto& where : {DevicePredicate::IsNull(2), DevicePredicate::All({}),
                            DevicePredicate::IsNull(0) && DevicePredicate::Any({})}) {
    BOOST_TEST(absl::IsInvalidArgument(made.group->Count(where, total.data(), nullptr)));
    BOOST_TEST(absl::IsInvalidArgument(made.group->Find(where, nullptr, 0, total.data(), nullptr)));
    BOOST_TEST(absl::IsInvalidArgument(made.group->Explain(where).status()));
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
