// Every allocation of a public function fails in turn. The function works without it or returns
// ResourceExhausted, no exception escapes, and the state from before the call is unchanged.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/types.h"
#include "index/machine/status_macros.h"
#include "test/allocation/fail_each_allocation.h"
#include "test/allocation/failing_new.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"

namespace cairn {
namespace {

constexpr int kRows = 300;
const char* const kSpecs[] = {"value.field('|',0):u32", "value:text",
                              "value.field('|',0):u64,value:text"};

IndexSpec Spec(std::string_view text) {
  return RequireOk(IndexSpec::Parse(text));
}

OpenOptions Opening() {
  OpenOptions options;
  options.calibration = Calibration::kNone;
  options.threads = 2;
  return options;
}

void PutRows(TestDatabase& db, int first, int count) {
  for (int i = first; i < first + count; ++i) {
    db.Put("row" + std::to_string(i),
           std::to_string(i % 40) + "|a longer text than fits inline " + std::to_string(i % 17));
  }
}

// All entries of an index, in order.
struct Content {
  std::vector<RowId> row_ids;
  StringList primary_keys;

  static Content Of(const SecondaryIndex& index) {
    Content content;
    FindResult matches;
    RequireOk(index.Scan(RangeBatch::Everything(index.codec().kind()), &matches));
    content.row_ids = matches.row_ids;
    RequireOk(index.PrimaryKeys(matches, &content.primary_keys));
    return content;
  }
  std::string Text() const {
    std::string text;
    for (size_t i = 0; i < primary_keys.size(); ++i) text.append(primary_keys[i]) += ';';
    return text;
  }
};

void CheckEqual(TestDatabase& db, const SecondaryIndex& index) {
  std::vector<std::string> differences;
  const absl::Status status = index.VerifyAgainst(*db.Source(), 3, &differences);
  BOOST_TEST(status.ok(), status);
  BOOST_TEST(differences.empty());
}

class FailuresFixture {
 public:
  FailuresFixture() { PutRows(db, 0, kRows); }

  std::string At(const std::string& name) { return db.Beside(name); }
  void Build(const std::string& spec, const std::string& name) {
    const auto index = SecondaryIndex::Build(*db.Source(), Spec(spec), At(name));
    RequireOk(index);
  }
  std::unique_ptr<SecondaryIndex> Open(const std::string& name) {
    return RequireOk(SecondaryIndex::Open(At(name), Opening()));
  }
  // Copies an index's files.
  void Copy(const std::string& from, const std::string& to) {
    std::filesystem::remove_all(At(to));
    std::filesystem::copy(At(from), At(to));
  }

  TestDatabase db;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(allocation_failure_test, FailuresFixture)

BOOST_AUTO_TEST_CASE(build_leaves_the_index_that_was_there) {
  for (const FailingNew::How how : kBoth) {
    for (const char* spec : kSpecs) {
      BOOST_TEST_CONTEXT(spec) {
        Build(spec, "index");
        const IndexSpec parsed = Spec(spec);
        const auto source = db.Source();
        const std::string directory = At("index");
        BuildOptions options;
        options.threads = 2;
        FailEachAllocation(
            how, 100, [] {},
            [&] { return SecondaryIndex::Build(*source, parsed, directory, options).status(); },
            [&] { CheckEqual(db, *Open("index")); });
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(build_within_a_small_budget_spills_and_leaves_nothing) {
  const IndexSpec spec = Spec("value:text");
  const auto source = db.Source();
  const std::string directory = At("index");
  BuildOptions options;
  options.threads = 2;
  options.memory_budget = 1 << 16;
  FailEachAllocation(
      FailingNew::How::kOnce, 100, [&] { std::filesystem::remove_all(At("index")); },
      [&] { return SecondaryIndex::Build(*source, spec, directory, options).status(); },
      [&] {
        if (!SecondaryIndex::Open(At("index"), Opening()).ok()) Build("value:text", "index");
        CheckEqual(db, *Open("index"));
      });
}

BOOST_AUTO_TEST_CASE(open_changes_nothing) {
  for (const FailingNew::How how : kBoth) {
    for (const char* spec : kSpecs) {
      BOOST_TEST_CONTEXT(spec) {
        Build(spec, "index");
        PutRows(db, kRows, 50);
        RequireOk(Open("index")->CatchUp(*db.Source()));
        const std::string directory = At("index");
        OpenOptions options = Opening();
        options.load_into_memory = how == FailingNew::How::kOnce;
        FailEachAllocation(
            how, 200, [] {}, [&] { return SecondaryIndex::Open(directory, options).status(); },
            [&] { CheckEqual(db, *Open("index")); });
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(stored_leaves_are_built_opened_and_merged_or_nothing_is) {
  const IndexSpec spec = Spec(kSpecs[0]);
  const auto source = db.Source();
  const std::string directory = At("index");
  BuildOptions building;
  building.threads = 2;
  building.prebuild_search_structure = true;
  OpenOptions options = Opening();
  options.ordered_indexes = {"cpu:packed"};
  for (const FailingNew::How how : kBoth) {
    Build(kSpecs[0], "index");
    FailEachAllocation(
        how, 100, [] {},
        [&] { return SecondaryIndex::Build(*source, spec, directory, building).status(); },
        [&] { CheckEqual(db, *Open("index")); });
    for (const VerifyLevel verify : {VerifyLevel::kFull, VerifyLevel::kMetadata}) {
      options.verify = verify;
      options.load_into_memory = how == FailingNew::How::kOnce;
      FailEachAllocation(
          how, 100, [] {}, [&] { return SecondaryIndex::Open(directory, options).status(); },
          [&] { CheckEqual(db, *Open("index")); });
    }
  }
  PutRows(db, kRows, 60);
  RequireOk(RequireOk(SecondaryIndex::Open(directory, options))->CatchUp(*db.Source()));
  std::unique_ptr<SecondaryIndex> index;
  FailEachAllocation(
      FailingNew::How::kOnce, 80,
      [&] {
        index.reset();
        Copy("index", "merged");
        index = RequireOk(SecondaryIndex::Open(At("merged"), options));
      },
      [&] { return index->Compact({}); }, [&] { CheckEqual(db, *index); });
}

BOOST_AUTO_TEST_CASE(open_with_trials_changes_nothing) {
  Build(kSpecs[0], "index");
  const std::string directory = At("index");
  OpenOptions options = Opening();
  options.calibration = Calibration::kStore;
  FailEachAllocation(
      FailingNew::How::kOnce, 40, [] {},
      [&] { return SecondaryIndex::Open(directory, options).status(); }, [] {});
}

BOOST_AUTO_TEST_CASE(queries_answer_right_or_not_at_all) {
  for (const FailingNew::How how : kBoth) {
    for (const char* spec : kSpecs) {
      for (const bool changed : {false, true}) {
        BOOST_TEST_CONTEXT(spec << (changed ? ", changed" : "")) {
          Build(spec, "index");
          const std::unique_ptr<SecondaryIndex> index = Open("index");
          if (changed) {
            PutRows(db, kRows, 60);
            for (int i = 0; i < 20; ++i) db.Delete("row" + std::to_string(i));
            RequireOk(index->CatchUp(*db.Source()));
          }
          const auto source = db.Source();
          // All keys and ranges of a batch: every key of the index.
          FindResult everything;
          QueryOptions with_keys;
          with_keys.with_keys = true;
          RequireOk(
              index->Scan(RangeBatch::Everything(index->codec().kind()), &everything, with_keys));
          const std::string expected = Content::Of(*index).Text();
          const KeyBatch keys = everything.keys.Batch();
          const RangeBatch all = RangeBatch::Everything(index->codec().kind());
          std::vector<GlobalRowId> rows(keys.size());
          std::vector<uint64_t> counts(keys.size());
          const auto found = std::make_unique<bool[]>(keys.size());
          FindResult matches;
          StringList primary_keys;
          FetchResult fetched;
          const auto start_anew = [&] {  // outputs without memory from an earlier call
            matches = FindResult();
            primary_keys = StringList();
            fetched = FetchResult();
          };
          const auto each = [&](const std::function<absl::Status()>& query) {
            FailEachAllocation(how, 60, start_anew, query,
                               [&] { BOOST_TEST(Content::Of(*index).Text() == expected); });
          };
          const auto may_allocate = [&](const std::function<absl::Status()>& query) {
            FailingNew::Arm(0, how);
            const absl::Status status = query();
            FailingNew::Disarm();
            BOOST_TEST((status.ok() || absl::IsResourceExhausted(status)), status);
          };
          QueryOptions page;
          page.limit = 7;
          each([&] { return index->Find(keys, &matches); });
          each([&] { return index->Scan(all, &matches, with_keys); });
          each([&] { return index->Scan(all, &matches, page); });
          each([&] { return index->PrimaryKeys(everything, &primary_keys); });
          each([&] { return index->Fetch(*source, all, {}, &fetched); });
          each([&] { return index->Verify(); });
          std::vector<std::string> differences;
          each([&] { return index->VerifyAgainst(*source, 3, &differences); });
          BOOST_TEST(differences.empty());
          each([&] { return index->Stats().status(); });
          may_allocate([&] { return index->FindFirst(keys, absl::MakeSpan(rows)); });
          may_allocate(
              [&] { return index->Contains(keys, absl::MakeSpan(found.get(), keys.size())); });
          may_allocate(
              [&] { return index->Count(RangeBatch::Equal(keys), absl::MakeSpan(counts)); });
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(catch_up_stays_where_it_was_or_comes_through) {
  for (const FailingNew::How how : kBoth) {
    for (const char* spec : kSpecs) {
      BOOST_TEST_CONTEXT(spec) {
        Build(spec, "before");
        PutRows(db, kRows, 60);
        PutRows(db, 100, 30);
        for (int i = 0; i < 20; ++i) db.Delete("row" + std::to_string(i));
        const auto source = db.Source();
        std::unique_ptr<SecondaryIndex> index;
        std::string before;
        FailEachAllocation(
            how, 80,
            [&] {
              index.reset();
              Copy("before", "index");
              index = Open("index");
              before = Content::Of(*index).Text();
            },
            [&] { return index->CatchUp(*source).status(); },
            [&] {
              if (index->sequence() != source->sequence()) {
                BOOST_TEST(Content::Of(*index).Text() == before);
              }
              const auto again = index->CatchUp(*source);
              BOOST_TEST(again.ok(), again.status());
              CheckEqual(db, *index);
              index.reset();
              index = Open("index");  // as stored
              BOOST_TEST(index->sequence() == source->sequence());
              CheckEqual(db, *index);
            });
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(merge_stays_where_it_was_or_comes_through) {
  for (const FailingNew::How how : kBoth) {
    for (const char* spec : kSpecs) {
      BOOST_TEST_CONTEXT(spec) {
        Build(spec, "before");
        PutRows(db, kRows, 60);
        for (int i = 0; i < 20; ++i) db.Delete("row" + std::to_string(i));
        RequireOk(Open("before")->CatchUp(*db.Source()));
        std::unique_ptr<SecondaryIndex> index;
        CompactOptions options;
        options.threads = 2;
        FailEachAllocation(
            how, 80,
            [&] {
              index.reset();
              Copy("before", "index");
              index = Open("index");
            },
            [&] { return index->Compact(options); },
            [&] {
              CheckEqual(db, *index);
              const absl::Status again = index->Compact(options);
              BOOST_TEST(again.ok(), again);
              CheckEqual(db, *index);
              index.reset();
              index = Open("index");
              CheckEqual(db, *index);
            });
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(ordered_indexes_are_made_or_refused) {
  std::vector<uint64_t> numbers(5000);
  std::vector<std::string> texts(5000);
  std::vector<std::string_view> views(5000);
  std::vector<RowId> rows(5000);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = i * 7 / 3;
    texts[i] = "some long common prefix " + std::to_string(1000000 + i * 5);
    views[i] = texts[i];
    rows[i] = static_cast<RowId>(i);
  }
  for (const FailingNew::How how : kBoth) {
    for (const char* factory : {"cpu:auto", "cpu:fast", "cpu:packed", "cpu:sorted_array",
                                "cpu:partial_key", "cpu:strings"}) {
      BOOST_TEST_CONTEXT(factory) {
        const bool of_texts = std::string_view(factory) == "cpu:partial_key" ||
                              std::string_view(factory) == "cpu:strings";
        FailEachAllocation(
            how, 100, [] {},
            [&]() -> absl::Status {
              ASSIGN_OR_RETURN(SortedRun run,
                               of_texts
                                   ? SortedRun::FromSorted(absl::MakeConstSpan(views), rows)
                                   : SortedRun::FromSorted(absl::MakeConstSpan(numbers), rows));
              return MakeOrderedIndex(factory, std::move(run)).status();
            },
            [] {});
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace cairn
