#include "cairn/batcher.h"
#include "cairn/index_spec.h"
#include "cairn/secondary_index.h"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/util/scan_cursor.h"
#include "test/engine/batch/fake_index.h"
#include "test/engine/batch/polled_batcher.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"

// Results of a Batcher for one thread. batcher_refusals_test.cc tests rejected requests,
// batcher_schedule_test.cc the times at which batches are sent, batcher_load_test.cc many threads.

namespace cairn {
BOOST_AUTO_TEST_SUITE(batcher_test)
namespace {

// An index over 3,000 entries of one kind of keys; most keys have three rows.
FakeIndex IndexOf(PhysicalType kind) {
  std::vector<uint64_t> keys;
  std::vector<RowId> rows;
  for (uint32_t i = 0; i < 3000; ++i) {
    keys.push_back(1000 + 5 * (i / 3));
    rows.push_back(i);
  }
  if (kind == PhysicalType::kU64)
    return FakeIndex(*SortedRun::FromSorted(absl::MakeConstSpan(keys), rows));
  if (kind == PhysicalType::kU32) {
    const std::vector<uint32_t> narrow(keys.begin(), keys.end());
    return FakeIndex(*SortedRun::FromSorted(absl::MakeConstSpan(narrow), rows));
  }
  std::vector<std::string> texts;
  for (uint64_t key : keys) texts.push_back(std::to_string(key));  // all of four digits
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return FakeIndex(*SortedRun::FromSorted(absl::MakeConstSpan(views), rows));
}

// A key of the kind, for a number below 9,000.
struct AnyKey {
  AnyKey(PhysicalType kind, uint32_t number)
      : text(std::to_string(1000 + number)),
        key(kind == PhysicalType::kU32   ? Batcher::Key(1000 + number)
            : kind == PhysicalType::kU64 ? Batcher::Key(uint64_t{1000} + number)
                                         : Batcher::Key(text)) {}
  AnyKey(const AnyKey&) = delete;
  std::string text;
  Batcher::Key key;
};

BOOST_AUTO_TEST_CASE(every_operation_answers_as_the_index_does_for_every_kind_of_keys) {
  for (const PhysicalType kind : {PhysicalType::kU32, PhysicalType::kU64, PhysicalType::kBytes}) {
    FakeIndex index = IndexOf(kind);
    const OrderedIndex& oracle = index.index();
    const auto batcher = Make(index, Polled());
    QueryOptions descending;
    descending.order = Order::kDescending;
    descending.limit = 5;
    descending.with_keys = true;

    struct Asked {
      std::unique_ptr<AnyKey> key, end;
      Batcher::Future<RowId> first;
      Batcher::Future<bool> contains;
      Batcher::Future<std::vector<RowId>> find;
      Batcher::Future<uint64_t> count;
      Batcher::Future<Batcher::Entries> scan, down;
    };
    std::vector<Asked> asked;
    for (uint32_t i = 0; i < 300; ++i) {
      Asked a{std::make_unique<AnyKey>(kind, 7 * i),
              std::make_unique<AnyKey>(kind, 7 * i + i % 40),
              {},
              {},
              {},
              {},
              {},
              {}};
      const RangeBatch range = Range(a.key->key, a.end->key);
      a.first = batcher->FindFirst(a.key->key);
      a.contains = batcher->Contains(a.key->key);
      a.find = batcher->Find(a.key->key);
      a.count = batcher->Count(range);
      a.scan = batcher->Scan(range);
      a.down = batcher->Scan(range, descending);
      asked.push_back(std::move(a));
    }
    batcher->Flush();

    FindResult matches;
    for (Asked& a : asked) {
      RowId first;
      bool contains;
      uint64_t count;
      RequireOk(oracle.Execute(Batch::FindFirst(a.key->key.batch(), absl::MakeSpan(&first, 1))));
      BOOST_TEST(*a.first.get() == first);
      RequireOk(oracle.Execute(Batch::Contains(a.key->key.batch(), absl::MakeSpan(&contains, 1))));
      BOOST_TEST(*a.contains.get() == contains);
      RequireOk(oracle.Execute(Batch::Find(a.key->key.batch(), &matches)));
      BOOST_TEST(*a.find.get() == matches.row_ids, boost::test_tools::per_element());
      const RangeBatch range = Range(a.key->key, a.end->key);
      RequireOk(oracle.Execute(Batch::Count(range, absl::MakeSpan(&count, 1))));
      BOOST_TEST(*a.count.get() == count);
      RequireOk(oracle.Execute(Batch::Scan(range, &matches)));
      const auto scan = a.scan.get();
      BOOST_TEST(scan->row_ids == matches.row_ids, boost::test_tools::per_element());
      BOOST_TEST(scan->keys.empty());
      RequireOk(oracle.Execute(Batch::Scan(range, &matches, descending)));
      const auto down = a.down.get();
      BOOST_TEST(down->row_ids == matches.row_ids, boost::test_tools::per_element());
      BOOST_REQUIRE(down->keys.size() == matches.keys.size());
      for (size_t i = 0; kind == PhysicalType::kBytes && i < matches.keys.size(); ++i) {
        BOOST_TEST(down->keys.bytes(i) == matches.keys.bytes(i));
      }
      for (size_t i = 0; kind == PhysicalType::kU32 && i < matches.keys.size(); ++i) {
        BOOST_TEST(down->keys.u32(i) == matches.keys.u32(i));
      }
      for (size_t i = 0; kind == PhysicalType::kU64 && i < matches.keys.size(); ++i) {
        BOOST_TEST(down->keys.u64(i) == matches.keys.u64(i));
      }
    }
    // In few batches, although two kinds of scans alternated.
    const BatcherStats stats = batcher->Stats();
    for (size_t i = 0; i < kIndexOperations; ++i) {
      BOOST_TEST(stats.operations[i].queries ==
                 (i == static_cast<size_t>(Operation::kScan) ? 600 : 300));
      BOOST_TEST(stats.operations[i].flushed == stats.operations[i].batches);
      if (i != static_cast<size_t>(Operation::kScan)) BOOST_TEST(stats.operations[i].batches <= 2u);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_batch_of_a_request_is_answered_by_its_cookies) {
  FakeIndex index = FakeIndex::OfNumbers();
  const auto batcher = Make(index, Polled());
  std::vector<uint32_t> keys;
  for (uint32_t i = 0; i < 500; ++i) keys.push_back(i);
  std::vector<RowId> answers(1000, 77);
  const auto receive = [](void* context, const Batcher::Answers& batch) {
    auto& out = *static_cast<std::vector<RowId>*>(context);
    for (size_t i = 0; i < batch.cookies.size(); ++i) out[batch.cookies[i]] = batch.row_ids[i];
  };
  const KeyBatch all(keys);
  for (size_t i = 0; i < 500; i += 50) {
    RequireOk(
        batcher->Submit(Operation::kFindFirst, all.Slice(i, 50), {{receive, &answers}, 100 + i}));
  }
  batcher->Flush();
  BOOST_TEST(index.calls().size() == 1u);
  for (uint32_t i = 0; i < 1000; ++i) {
    const RowId expected = i < 100 || i >= 600 ? 77 : i % 2 == 0 ? 5 * (i - 100) : kNoRow;
    if (answers[i] != expected) BOOST_FAIL("answer " << i << " is " << answers[i]);
  }
}

BOOST_AUTO_TEST_CASE(an_empty_batch_is_accepted_and_has_no_answers) {
  FakeIndex index = FakeIndex::OfNumbers();
  const auto batcher = Make(index, Polled());
  const auto never = [](void*, const Batcher::Answers&) { BOOST_FAIL("nothing was asked"); };
  BOOST_CHECK(batcher->Submit(Operation::kFind, KeyBatch(), {{never, nullptr}}).ok());
  BOOST_CHECK(batcher->Submit(Operation::kScan, RangeBatch(), {}, {{never, nullptr}}).ok());
  Batcher::Group<Operation::kFind> group(batcher.get(), 0);
  BOOST_CHECK(group.Add(KeyBatch()).ok());
  BOOST_CHECK(group.Wait().ok());
  batcher->Flush();
  BOOST_TEST(index.calls().empty());
}

BOOST_AUTO_TEST_CASE(an_error_of_the_index_reaches_every_request_of_its_batch) {
  FakeIndex index = FakeIndex::OfNumbers();
  const auto batcher = Make(index, Polled());
  index.error = absl::DataLossError("a broken leaf");
  auto first = batcher->FindFirst(uint32_t{2});
  auto second = batcher->FindFirst(uint32_t{3});
  auto scan = batcher->Scan(Range(uint32_t{1}, uint32_t{9}));
  std::optional<absl::Status> called;
  batcher->Count(Range(uint32_t{1}, uint32_t{9}), Batcher::kNoDeadline,
                 [&](absl::StatusOr<uint64_t> count) { called = count.status(); });
  batcher->Flush();
  BOOST_TEST((first.get().status() == index.error));
  BOOST_TEST((second.get().status() == index.error));
  BOOST_TEST((scan.get().status() == index.error));
  BOOST_REQUIRE(called.has_value());
  BOOST_TEST((*called == index.error));

  index.error = absl::OkStatus();
  BOOST_TEST(batcher->Stats().operations[0].failed == 2u);
  auto next = batcher->FindFirst(uint32_t{2});
  batcher->Flush();
  BOOST_TEST(*next.get() == 10u);
}

BOOST_AUTO_TEST_CASE(a_group_has_its_answers_in_order_and_tells_an_error_once) {
  FakeIndex index = FakeIndex::OfNumbers();
  const auto batcher = Make(index);
  Batcher::Group<Operation::kFindFirst> group(batcher.get(), 1000);
  for (int round = 0; round < 3; ++round) {
    if (round == 1) index.error = absl::DataLossError("a broken leaf");
    std::vector<uint32_t> several = {5, 6, 7};
    for (uint32_t i = 0; i < 500; ++i) {
      if (!group.Add(i).ok()) BOOST_FAIL("not added");
    }
    BOOST_CHECK(group.Add(several).ok());
    BOOST_CHECK(absl::IsInvalidArgument(group.Add(uint64_t{1})));
    BOOST_CHECK(absl::IsInvalidArgument(group.Add(Range(uint32_t{1}, uint32_t{2}))));
    const std::vector<uint32_t> too_many(498);
    BOOST_CHECK(absl::IsResourceExhausted(group.Add(too_many)));
    const std::vector<uint32_t> just(too_many.begin(), too_many.end() - 1);
    BOOST_CHECK(group.Add(just).ok());
    BOOST_TEST(group.size() == 1000u);
    BOOST_TEST((group.Wait() == index.error));
    BOOST_CHECK(group.Wait().ok());
    index.error = absl::OkStatus();
    for (uint32_t i = 0; round != 1 && i < 1000; ++i) {
      const uint32_t key = i < 500 ? i : i < 503 ? several[i - 500] : 0;
      if (group.answers()[i] != (key % 2 == 0 ? 5 * key : kNoRow)) BOOST_FAIL("answer " << i);
    }
    group.Clear();
  }
}

BOOST_AUTO_TEST_CASE(groups_take_every_operation) {
  FakeIndex index = FakeIndex::OfNumbers();
  const auto batcher = Make(index);
  Batcher::Group<Operation::kContains> contains(batcher.get(), 2);
  BOOST_CHECK(contains.Add(uint32_t{4}).ok() && contains.Add(uint32_t{5}).ok());
  BOOST_CHECK(contains.Wait().ok());
  BOOST_TEST((contains.answers()[0] && !contains.answers()[1]));
  Batcher::Group<Operation::kFind> find(batcher.get(), 1);
  BOOST_CHECK(find.Add(uint32_t{4}).ok() && find.Wait().ok());
  BOOST_TEST(find.answers()[0] == (std::vector<RowId>{20, 21, 22}),
             boost::test_tools::per_element());
  Batcher::Group<Operation::kCount> count(batcher.get(), 1);
  BOOST_CHECK(count.Add(Range(uint32_t{0}, uint32_t{5})).ok() && count.Wait().ok());
  BOOST_TEST(count.answers()[0] == 6u);
  Batcher::Group<Operation::kScan> scan(batcher.get(), 1);
  BOOST_CHECK(scan.Add(Range(uint32_t{1}, uint32_t{4})).ok() && scan.Wait().ok());
  BOOST_TEST(scan.answers()[0].row_ids == (std::vector<RowId>{10, 11}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_real_index_is_asked_with_cursors_and_all) {
  TestDatabase db;
  for (int i = 0; i < 1000; ++i) db.Put("row" + std::to_string(10000 + i), std::to_string(i % 90));
  const auto index = RequireOk(
      SecondaryIndex::Build(*db.Source(), *IndexSpec::Parse("value:text"), db.Beside("index")));
  const auto batcher = Make(*index);
  auto find = batcher->Find("42");
  FindResult matches;
  const std::string_view key = "42";
  RequireOk(index->Find(KeyBatch(absl::MakeConstSpan(&key, 1)), &matches));
  BOOST_TEST(*find.get() == matches.row_ids, boost::test_tools::per_element());

  // All rows, page by page.
  QueryOptions page;
  page.limit = 70;
  std::vector<RowId> rows;
  std::string cursor;
  do {
    RangeBatch range = RangeBatch::Everything(PhysicalType::kBytes);
    range.after = absl::MakeConstSpan(&cursor, 1);
    auto entries = RequireOk(batcher->Scan(range, page).get());
    rows.insert(rows.end(), entries.row_ids.begin(), entries.row_ids.end());
    cursor = entries.cursor;
  } while (!cursor.empty());
  RequireOk(index->Scan(RangeBatch::Everything(PhysicalType::kBytes), &matches));
  BOOST_TEST(rows == matches.row_ids, boost::test_tools::per_element());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
