#include "engine/version/versioned_search.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "absl/strings/str_format.h"
#include "engine/delta/compact_delta.h"
#include "engine/delta/delta_changes.h"
#include "test/engine/delta/delta_model.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(versioned_search_test)
namespace {

// Random rows and updates whose keys and primary keys often repeat.
template <typename Key>
class Workload {
 public:
  Workload(uint64_t salt, size_t keys, size_t primary_keys, size_t max_keys_a_row)
      : random_(TestRandom(salt)),
        keys_(keys),
        primary_keys_(primary_keys),
        max_keys_a_row_(max_keys_a_row) {}

  Key RandomKey() {
    const uint64_t k = random_() % keys_;
    if constexpr (std::is_same_v<Key, std::string>) {
      // Some are prefixes of others, and some have zero bytes.
      return std::string(k % 7, '\0') + std::to_string(k / 3) + std::string(k % 3, '\xff');
    } else {
      return k % 50 == 0 ? static_cast<Key>(~Key{0} - k) : static_cast<Key>(k * 37);
    }
  }
  std::string RandomPrimaryKey() {
    const uint64_t k = random_() % primary_keys_;
    return (k % 3 == 0 ? "a/" : k % 3 == 1 ? "" : "row/") + std::to_string(k);
  }
  std::set<Key> RandomKeys() {
    std::set<Key> keys;
    const size_t count = random_() % 5 == 0 ? 0 : 1 + random_() % max_keys_a_row_;
    for (size_t i = 0; i < count; ++i) keys.insert(RandomKey());
    return keys;
  }
  ModelRows<Key> Rows(size_t count) {
    ModelRows<Key> rows;
    for (size_t i = 0; i < count; ++i) rows[RandomPrimaryKey()] = RandomKeys();
    return rows;
  }

  // Applies the updates to the model.
  RowUpdates Updates(size_t count, ModelRows<Key>* rows) {
    RowUpdates updates(kKindOf<PhysicalOf<Key>>);
    while (random_() % 4 == 0) {
      const std::string from = RandomPrimaryKey();
      std::string to = random_() % 3 == 0 ? RandomPrimaryKey() : from + '5';
      updates.DeleteRange(from, to);
      if (from < to) rows->erase(rows->lower_bound(from), rows->lower_bound(to));
    }
    std::map<std::string, std::set<Key>> states;
    for (size_t i = 0; i < count; ++i) {
      const std::string primary_key = RandomPrimaryKey();
      const auto row = rows->find(primary_key);
      const bool keep = row != rows->end() && random_() % 5 == 0;
      states[primary_key] = keep ? row->second : RandomKeys();
    }
    std::vector<std::string> order;
    for (const auto& state : states) order.push_back(state.first);
    if (random_() % 2 == 0) std::shuffle(order.begin(), order.end(), random_);
    for (const std::string& primary_key : order) {
      const std::set<Key>& keys = states[primary_key];
      AppendRow(primary_key, keys, &updates);
      if (keys.empty()) {
        rows->erase(primary_key);
      } else {
        (*rows)[primary_key] = keys;
      }
    }
    return updates;
  }
  std::vector<Key> Queries(size_t count) {
    std::vector<Key> queries;
    for (size_t i = 0; i < count; ++i) queries.push_back(RandomKey());
    return queries;
  }
  uint64_t operator()() { return random_(); }

 private:
  std::mt19937_64 random_;
  const size_t keys_, primary_keys_, max_keys_a_row_;
};

constexpr size_t kQueries = FewerSanitized(300, 3, 10);
// the part of large tests that runs under a sanitizer
constexpr size_t kPart = kUnderTsan ? 10 : kUnderAsan ? 3 : 1;

// Compares everything, in both forms of a version, and in the one that it chooses itself.
template <typename Key>
void CheckForms(const Delta& version, const IndexSearch& base, const ModelRows<Key>& rows,
                const std::vector<Key>& queries) {
  Delta as_is = version;
  as_is.compact = nullptr;
  VersionCheck<Key>(as_is, base, rows).CheckAll(queries);
  const std::shared_ptr<const Delta> compact = RequireOk(CompactDelta::Make(version));
  BOOST_TEST(compact->parts.size() == (version.added_entries() == 0 ? 0 : 1));
  BOOST_TEST(compact->removed_positions->size() == version.removed.size());
  VersionCheck<Key>(*compact, base, rows).CheckAll(queries);
  VersionCheck<Key>(version, base, rows).CheckPoints(queries, ResultOrder::kCaller);
}

// Applies a series of updates, and compares everything after every few.
template <typename Key>
void CheckModel(Workload<Key> workload, size_t base_rows, size_t batches, size_t rows_a_batch) {
  batches = kUnderTsan ? std::min<size_t>(batches, 12) : FewerSanitized(batches, 3, 1);
  ModelRows<Key> rows = workload.Rows(base_rows);
  const std::unique_ptr<DeltaWriter> writer = MakeWriter(rows);
  const IndexSearch base(writer->delta()->base_run);
  VersionCheck<Key>(*writer->delta(), base, rows).CheckAll(workload.Queries(kQueries));
  for (size_t batch = 0; batch < batches; ++batch) {
    const size_t size = batch % 7 == 0 ? 1 + workload() % 3 : 1 + workload() % rows_a_batch;
    const RowUpdates updates = workload.Updates(size, &rows);
    const auto applied = RequireOk(writer->Apply(updates));
    BOOST_REQUIRE(applied == writer->delta());
    if (batch % 3 == 0 || batch + 1 == batches) {
      CheckForms<Key>(*applied, base, rows, workload.Queries(kQueries));
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_version_answers_like_an_index_over_its_rows_u32) {
  CheckModel<uint32_t>({1, 400, 900, 1}, 500, 60, 60);
  CheckModel<uint32_t>({2, 3000, 300, 6}, 200, 60, 40);
}
BOOST_AUTO_TEST_CASE(a_version_answers_like_an_index_over_its_rows_u64) {
  CheckModel<uint64_t>({3, 400, 900, 3}, 500, 60, 60);
  CheckModel<uint64_t>({4, 100000, 20000, 1}, 10000 / kPart, 30, 3000 / kPart);
}
BOOST_AUTO_TEST_CASE(a_version_answers_like_an_index_over_its_rows_bytes) {
  CheckModel<std::string>({5, 400, 900, 3}, 500, 60, 60);
  CheckModel<std::string>({6, 10000, 9000, 1}, 3000 / kPart, 30, 2000 / kPart);
}
BOOST_AUTO_TEST_CASE(few_keys_have_many_rows) {
  CheckModel<uint64_t>({7, 5, 3000, 2}, 1500, 40, 200);
}
BOOST_AUTO_TEST_CASE(the_base_may_be_empty) {
  CheckModel<uint32_t>({8, 300, 300, 2}, 0, 30, 60);
  CheckModel<std::string>({9, 300, 300, 2}, 0, 30, 60);
}

// Rows that get the given keys in a few updates, over a base with every tenth number up to 1,000.
template <typename Key>
void CheckAdded(const std::vector<Key>& keys) {
  ModelRows<Key> rows;
  const auto key_of = [](uint64_t number) {
    if constexpr (std::is_same_v<Key, std::string>) {
      return absl::StrFormat("%04d", number);
    } else {
      return static_cast<Key>(number);
    }
  };
  for (uint64_t i = 0; i <= 100; ++i) rows[absl::StrFormat("row %04d", i)] = {key_of(10 * i)};
  const std::unique_ptr<DeltaWriter> writer = MakeWriter(rows);
  const IndexSearch base(writer->delta()->base_run);
  std::vector<Key> queries = keys;
  for (uint64_t i = 0; i <= 1010; i += 45) queries.push_back(key_of(i));
  for (size_t first = 0; first < keys.size(); first += 60) {
    RowUpdates updates(kKindOf<PhysicalOf<Key>>);
    for (size_t i = first; i < std::min(keys.size(), first + 60); ++i) {
      const std::string primary_key = absl::StrFormat("new %04d", i);
      rows[primary_key] = {keys[i]};
      AppendRow(primary_key, rows[primary_key], &updates);
    }
    const auto version = RequireOk(writer->Apply(updates));
    CheckForms<Key>(*version, base, rows, queries);
  }
}

// As for rows in order of time: no entry of the base follows them.
BOOST_AUTO_TEST_CASE(all_that_came_may_stand_at_one_place_of_the_base) {
  for (uint64_t first : {1, 501, 995, 1001}) {
    std::vector<uint64_t> keys;
    for (uint64_t i = 0; i < 150; ++i) keys.push_back(first + (first > 1000 ? i : i % 9));
    CheckAdded(keys);
    CheckAdded(std::vector<uint32_t>(keys.begin(), keys.end()));
  }
  std::vector<std::string> text;
  for (int i = 0; i < 120; ++i) text.push_back(absl::StrFormat("0500%03d", i));
  CheckAdded(text);
}

BOOST_AUTO_TEST_CASE(keys_may_be_made_to_collide) {
  // A hundred keys that map to one of the 176 slots of their segment.
  std::vector<uint64_t> keys;
  for (uint64_t key = 0; keys.size() < 100; ++key) {
    if ((KeyFilter::Hash(key) >> 32) * 176 >> 32 == 5) keys.push_back(key);
  }
  CheckAdded(keys);
}

constexpr int kPages = FewerSanitized(200, 2, 5);

// One page on each of many versions: the cursor resumes with that version's entries after it.
template <typename Key>
void CheckPagesAcrossVersions(Workload<Key> workload, Order order) {
  using Entry = typename VersionCheck<Key>::Entry;
  ModelRows<Key> rows = workload.Rows(400);
  std::unique_ptr<DeltaWriter> writer = MakeWriter(rows);
  auto base = std::make_unique<IndexSearch>(writer->delta()->base_run);
  std::string cursor;
  std::optional<Entry> last;
  for (int page = 0; page < kPages; ++page) {
    if (page % (kPages / 4) == kPages / 4 - 1) {
      // Another base of the same rows, as after a merge.
      writer = MakeWriter(rows);
      base = std::make_unique<IndexSearch>(writer->delta()->base_run);
    }
    const auto version = *writer->Apply(workload.Updates(30, &rows));
    VersionCheck<Key> check(*version, *base, rows);
    std::vector<Entry> found;
    cursor = check.Page(cursor, order, 7, &found);
    std::vector<Entry> expected = check.entries();
    if (order == Order::kDescending) std::reverse(expected.begin(), expected.end());
    const auto behind = [&](const Entry& entry) {
      return !last.has_value() || (order == Order::kAscending ? *last < entry : entry < *last);
    };
    const auto from = std::find_if(expected.begin(), expected.end(), behind);
    expected.erase(expected.begin(), from);
    BOOST_REQUIRE(cursor.empty() == (expected.size() <= 7));
    if (expected.size() > 7) expected.resize(7);
    BOOST_REQUIRE(found == expected);
    last = cursor.empty() ? std::nullopt : std::optional<Entry>(found.back());
  }
}

BOOST_AUTO_TEST_CASE(cursors_stay_good_over_versions_and_bases) {
  for (Order order : {Order::kAscending, Order::kDescending}) {
    CheckPagesAcrossVersions<uint64_t>({10, 60, 800, 2}, order);
    CheckPagesAcrossVersions<uint32_t>({11, 5000, 800, 1}, order);
    CheckPagesAcrossVersions<std::string>({12, 60, 800, 2}, order);
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_the_index_is_refused) {
  Workload<uint64_t> workload(13, 100, 100, 1);
  ModelRows<uint64_t> rows = workload.Rows(50);
  const auto writer = MakeWriter(rows);
  const IndexSearch base(writer->delta()->base_run);
  const auto version = *writer->Apply(workload.Updates(20, &rows));
  const std::vector<uint32_t> keys32 = {1, 2};
  const std::vector<uint64_t> keys64 = {1, 2};
  FindResult matches;
  std::vector<RowId> first(1);
  std::vector<uint64_t> counts(1);
  bool found[1];
  const auto ask = [&](const Batch& batch) { return AnswerVersion(*version, base, batch); };
  const auto refused = [&](const Batch& batch) { return absl::IsInvalidArgument(ask(batch)); };
  BOOST_TEST(refused(Batch::Find(keys32, &matches)));
  BOOST_TEST(refused(Batch::FindFirst(keys64, absl::MakeSpan(first))));
  BOOST_TEST(refused(Batch::Contains(keys64, found)));
  const RangeBatch ranges = RangeBatch::Equal(keys64);
  BOOST_TEST(refused(Batch::Count(ranges, absl::MakeSpan(counts))));
  RangeBatch bad_cursor = ranges;
  const std::vector<std::string> after = {"", "no cursor"};
  bad_cursor.after = after;
  BOOST_TEST(refused(Batch::Scan(bad_cursor, &matches)));
  bad_cursor.after = absl::MakeConstSpan(after).subspan(1);
  BOOST_TEST(refused(Batch::Scan(bad_cursor, &matches)));
  // An empty batch of any kind works.
  BOOST_TEST(ask(Batch::Find(KeyBatch(), &matches)).ok());
  BOOST_TEST(matches.size() == 0u);
  BOOST_TEST(ask(Batch::Scan(RangeBatch(), &matches)).ok());
  BOOST_TEST(matches.size() == 0u);
}

BOOST_AUTO_TEST_CASE(a_version_becomes_compact_once_it_has_been_asked_enough) {
  Workload<uint64_t> workload(15, 400, 900, 2);
  ModelRows<uint64_t> rows = workload.Rows(500);
  const auto writer = MakeWriter(rows);
  const IndexSearch base(writer->delta()->base_run);
  const auto version = *writer->Apply(workload.Updates(60, &rows));
  const uint64_t bytes = version->Stats().bytes;
  const std::vector<uint64_t> keys = workload.Queries(1 << 14);
  std::vector<RowId> first(keys.size());
  const auto ask = [&](const QueryOptions& options) {
    RequireOk(
        AnswerVersion(*version, base, Batch::FindFirst(keys, absl::MakeSpan(first), options)));
  };
  QueryOptions hurried;
  hurried.latency_target = absl::Seconds(100);
  ask(hurried);
  BOOST_TEST(version->compact->Get(*version, 0) == nullptr);
  BOOST_TEST(version->Stats().bytes == bytes);
  const std::vector<RowId> expected = first;
  ask({});
  BOOST_TEST(first == expected, boost::test_tools::per_element());
  const auto* const compact = version->compact->Get(*version, 0);
  BOOST_REQUIRE(compact != nullptr);
  BOOST_TEST((*compact)->parts.size() == 1u);
  BOOST_TEST(version->Stats().bytes > bytes);
  ask(hurried);
  BOOST_TEST(first == expected, boost::test_tools::per_element());

  const auto next = *writer->Apply(workload.Updates(5, &rows));
  BOOST_TEST(next->compact->Get(*next, 0) == nullptr);
}

// Readers keep querying the versions that they have, while a writer creates new ones.
BOOST_AUTO_TEST_CASE(readers_have_their_version_while_a_writer_goes_on) {
  Workload<uint64_t> workload(14, 300, 900, 2);
  ModelRows<uint64_t> rows = workload.Rows(600);
  const auto writer = MakeWriter(rows);
  const IndexSearch base(writer->delta()->base_run);
  std::mutex mutex;
  std::shared_ptr<const Delta> version = writer->delta();  // both guarded by mutex
  auto model = std::make_shared<const ModelRows<uint64_t>>(rows);
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0}, asked{0};

  const auto read = [&](Workload<uint64_t> mine) {
    while (!done.load()) {
      std::shared_ptr<const Delta> held;
      std::shared_ptr<const ModelRows<uint64_t>> expected;
      {
        std::lock_guard<std::mutex> lock(mutex);
        held = version;
        expected = model;
      }
      std::multimap<uint64_t, std::string> by_key;
      for (const auto& [primary_key, keys] : *expected) {
        for (uint64_t key : keys) by_key.emplace(key, primary_key);
      }
      const std::vector<uint64_t> keys = mine.Queries(100);
      const auto answers = [&](const Batch& batch) {
        return AnswerVersion(*held, base, batch).ok();
      };
      FindResult matches;
      StringList primary_keys;
      std::vector<RowId> first(keys.size());
      if (!answers(Batch::Find(keys, &matches))) ++wrong;
      if (!held->PrimaryKeys(matches.row_ids, &primary_keys).ok()) ++wrong;
      if (!answers(Batch::FindFirst(keys, absl::MakeSpan(first)))) ++wrong;
      for (size_t i = 0; i < keys.size(); ++i) {
        const auto [from, to] = by_key.equal_range(keys[i]);
        std::set<std::string> expected_keys, found_keys;
        for (auto at = from; at != to; ++at) expected_keys.insert(at->second);
        for (uint64_t j = matches.offsets[i]; j < matches.offsets[i + 1]; ++j) {
          found_keys.emplace(primary_keys[j]);
        }
        if (found_keys != expected_keys) ++wrong;
        if (first[i] != (matches[i].empty() ? kNoRow : matches[i][0])) ++wrong;
      }
      RangeBatch everything = RangeBatch::Everything(PhysicalType::kU64);
      if (!answers(Batch::Scan(everything, &matches)) || matches.row_ids.size() != by_key.size()) {
        ++wrong;
      }
      ++asked;
    }
  };
  std::vector<std::thread> readers;
  for (uint64_t i = 0; i < 3; ++i) {
    readers.emplace_back(read, Workload<uint64_t>(100 + i, 300, 900, 2));
  }
  for (int batch = 0; batch < 400; ++batch) {
    const auto applied = writer->Apply(workload.Updates(1 + workload() % 40, &rows));
    if (!applied.ok()) ++wrong;
    auto next = std::make_shared<const ModelRows<uint64_t>>(rows);
    std::lock_guard<std::mutex> lock(mutex);
    version = *applied;
    model = std::move(next);
  }
  while (asked.load() < 20) std::this_thread::yield();
  done = true;
  for (std::thread& reader : readers) reader.join();
  BOOST_TEST(wrong.load() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
