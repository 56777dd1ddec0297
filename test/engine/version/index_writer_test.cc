// IndexWriter compared with a model: versions, stores, merges of files and of the base, failing
// disks, abandoned updates and reopened indexes, in any order.
#include "engine/version/index_writer.h"
#include "cairn/secondary_index.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/delta_files/delta_files.h"
#include "engine/version/version_branch.h"
#include "test/engine/delta/delta_history.h"
#include "test/engine/faulty_file_system.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(index_writer_test)
namespace {

using Rows = ModelRows<uint64_t>;

// An index of the model's rows, which a test updates itself.
struct Index {
  explicit Index(const Rows& base, uint64_t salt = 0,
                 IndexWriter::Access access = IndexWriter::Access::kShared)
      : access(access), history({.salt = salt, .max_keys_a_row = 3}), rows(base) {
    for (const auto& [primary_key, keys] : base) {
      const uint64_t value = __builtin_bswap64(*keys.begin());
      db.Put(primary_key, {reinterpret_cast<const char*>(&value), sizeof value});
    }
    const IndexSpec spec = *IndexSpec::Parse("value[0:8]:u64be");
    const auto built = SecondaryIndex::Build(*db.Source(), spec, path());
    RequireOk(built);
    options.calibration = Calibration::kNone;
    options.threads = 1;
    options.file_system = files;
    stored_rows = rows;
    Open();
  }

  std::string path() const { return db.Beside("index"); }
  void Open() {
    writer = nullptr;
    writer = RequireOk(IndexWriter::Open(path(), options, access));
  }
  // Publishes a few batches, or abandons them.
  void Update(size_t max_rows, bool publish = true) {
    IndexWriter::Update update(writer.get());
    Rows next = rows;
    for (uint64_t batches = 1 + history() % 3; batches > 0; --batches) {
      RequireOk(update.Apply(history.Updates(1 + history() % max_rows, &next)));
    }
    if (!publish) return;
    rows = std::move(next);
    RequireOk(update.Publish(update.version().sequence + 1, update.anchor()));
  }
  void One(const std::string& primary_key, uint64_t key) {
    RowUpdates updates(PhysicalType::kU64);
    AppendRow<uint64_t>(primary_key, {key}, &updates);
    rows[primary_key] = {key};
    IndexWriter::Update update(writer.get());
    RequireOk(update.Apply(updates));
    RequireOk(update.Publish(update.version().sequence + 1, update.anchor()));
  }
  void Check() { CheckVersion(*writer->version(), rows, 50); }
  // Makes a version with further updates, and adds it to `branches`.
  void Branch(size_t max_rows) {
    Rows branched;
    RowUpdates updates;
    do {  // a branch cannot delete ranges
      branched = rows;
      updates = history.Updates(1 + history() % max_rows, &branched);
    } while (!updates.deleted_from.empty());
    const auto version = RequireOk(BranchVersion(*writer->version(), updates));
    CheckVersion(*version, branched, 20);
    if (branches.size() == 3) branches.erase(branches.begin());
    branches.push_back({version, std::move(branched)});
  }
  void CheckBranches() {
    for (const auto& [version, branched] : branches) CheckVersion(*version, branched, 20);
  }
  void CheckVersion(const IndexVersion& version, const ModelRows<uint64_t>& expected, int queries) {
    const auto base = [&](const Batch& batch) { return version.base->router->Execute(batch); };
    VersionCheck<uint64_t>(*version.delta, base, expected).CheckAll(history.Queries(queries));
  }
  // Checks that the disk has the state of the last store, or of the previous one if that failed.
  void CheckFiles() {
    const auto opened = RequireOk(IndexWriter::Open(path(), options));
    CheckVersion(*opened->version(), stored_rows, 20);
  }
  std::vector<ManifestFile> Deltas() const { return DeltaFilesOf(*ReadManifest(path())); }

  const IndexWriter::Access access;
  TestDatabase db;
  std::shared_ptr<FaultyFileSystem> files = std::make_shared<FaultyFileSystem>();
  OpenOptions options;
  History<uint64_t> history;
  Rows rows, stored_rows;
  std::vector<std::pair<std::shared_ptr<const IndexVersion>, Rows>> branches;
  std::unique_ptr<IndexWriter> writer;
};

// One key each, like the database's rows.
Rows BaseRows(size_t count) {
  Rows rows;
  for (size_t i = 0; i < count; ++i) rows["row" + std::to_string(2 * i)] = {37 * i % 10'000};
  return rows;
}

constexpr double kMaxWaited = 0.1;  // of the time of a merge

void CheckOk(const absl::Status& status) {
  RequireOk(status);
}

void CheckRandomHistory(uint64_t salt, size_t steps) {
  using Access = IndexWriter::Access;
  Index index(BaseRows(400), salt, salt % 2 == 0 ? Access::kExclusive : Access::kShared);
  auto random = TestRandom(salt + 100);
  std::atomic<bool> end{false};
  for (size_t step = 0; step < steps; ++step) {
    const bool fails = random() % 3 == 0;
    const uint64_t fails_at = 1 + random() % 30;
    const auto lasting = random() % 2 == 0 ? FaultyFileSystem::Lasting::kOnce
                                           : FaultyFileSystem::Lasting::kUntilRepaired;
    // A call that fails may still have succeeded in part. It may run concurrently with this thread,
    // so it draws no numbers.
    const auto store_like = [&](auto call) {
      if (fails) index.files->Break(FaultyFileSystem::Fault::kWriteError, fails_at, lasting);
      const absl::Status status = call();
      index.files->Repair();
      return status;
    };
    switch (random() % 15) {
      case 13:
        index.Branch(random() % 4 == 0 ? 300 : 20);
        break;
      case 14:
        index.CheckBranches();
        break;
      case 0:
      case 1:
        if (!store_like([&] { return index.writer->Store(); }).ok()) {
          BOOST_TEST(fails);
          CheckOk(index.writer->Store());
        }
        index.stored_rows = index.rows;
        index.CheckFiles();
        break;
      case 2:
        BOOST_TEST((store_like([&] { return index.writer->Tidy(); }).ok() || fails));
        index.CheckFiles();
        break;
      case 3: {  // a merge, with concurrent updates and stores
        CompactOptions options;
        options.threads = 1;
        absl::Status status;
        std::thread merging(
            [&] { status = store_like([&] { return index.writer->Compact(options); }); });
        for (uint64_t updates = random() % 5; updates > 0; --updates) {
          index.Update(40);
          index.writer->Store().IgnoreError();
        }
        merging.join();
        BOOST_TEST((status.ok() || fails), status);
        index.Check();
        CheckOk(index.writer->Store());
        index.stored_rows = index.rows;
        index.CheckFiles();
        if (!status.ok()) CheckOk(index.writer->Compact(options));
        index.Check();
        index.CheckFiles();
        break;
      }
      case 4:
        index.Update(60, /*publish=*/false);
        index.Check();
        break;
      case 6: {  // rows are renumbered, with concurrent updates and a reader
        const auto pinned = index.writer->version();
        const Rows pinned_rows = index.rows;
        absl::Status status;
        std::thread renumbering([&] { status = index.writer->Renumber(); });
        for (uint64_t updates = random() % 5; updates > 0; --updates) index.Update(40);
        renumbering.join();
        CheckOk(status);
        index.Check();
        index.CheckVersion(*pinned, pinned_rows, 20);
        break;
      }
      case 5:
        index.rows = index.stored_rows;
        index.Open();
        index.Check();
        break;
      default:
        index.Update(random() % 4 == 0 ? 300 : 20);
        if (step % 5 == 0) index.Check();
    }
    BOOST_REQUIRE(index.Deltas().size() <= kMaxDeltaFiles);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(random_histories_agree_with_a_model) {
  for (uint64_t salt = 1; salt <= FewerSanitized(4, 4, 4); ++salt) {
    CheckRandomHistory(salt, FewerSanitized(150, 3, 4));
  }
}

BOOST_AUTO_TEST_CASE(a_store_writes_what_is_new) {
  Index index(BaseRows(30'000));
  {
    RowUpdates many(PhysicalType::kU64);
    for (uint64_t i = 0; i < 20'000; ++i) {
      AppendRow<uint64_t>("row" + std::to_string(2 * i), {i + 7}, &many);
      index.rows["row" + std::to_string(2 * i)] = {i + 7};
    }
    IndexWriter::Update update(index.writer.get());
    RequireOk(update.Apply(many));
    CheckOk(update.Publish(update.version().sequence + 1, update.anchor()));
  }
  CheckOk(index.writer->Store());
  BOOST_REQUIRE(index.Deltas().size() == 1u);
  const ManifestFile large = index.Deltas().front();
  BOOST_TEST(large.size > 20'000u * 20);
  for (uint64_t i = 0; i < FewerSanitized(500, 4, 10); ++i) {
    index.One("row" + std::to_string(i * 101 % 50'000), i);
    CheckOk(index.writer->Store());
    const std::vector<ManifestFile> deltas = index.Deltas();
    BOOST_REQUIRE((deltas.front() == large));
    BOOST_REQUIRE(deltas.back().size < 40u << 10);
    BOOST_REQUIRE(deltas.size() < 10u);
  }
  index.stored_rows = index.rows;
  index.CheckFiles();
  // Without changes, no new file is written.
  const std::vector<ManifestFile> before = index.Deltas();
  CheckOk(index.writer->Store());
  BOOST_TEST((index.Deltas() == before));
}

BOOST_AUTO_TEST_CASE(stores_beside_a_merge_are_kept_and_may_take_files_that_it_merges) {
  Index index(BaseRows(FewerSanitized(20'000, 2, 4)));
  for (size_t round = 0; round < FewerSanitized(6, 3, 3); ++round) {
    for (int i = 0; i < 5; ++i) {
      index.Update(30);
      CheckOk(index.writer->Store());
    }
    std::atomic<bool> begun{false};
    CompactOptions options;
    options.threads = 1;
    options.max_bytes_per_second = 4'000'000;
    options.on_progress = [&](const Progress&) { begun = true; };
    absl::Status merged;
    std::atomic<bool> done{false};
    std::thread merging([&] {
      merged = index.writer->Compact(options);
      done = true;
    });
    while (!begun && !done) std::this_thread::yield();
    while (!done) {
      index.One("row" + std::to_string(index.history() % 50'000), index.history() % 1000);
      CheckOk(index.writer->Store());
    }
    merging.join();
    CheckOk(merged);
    index.Check();
    CheckOk(index.writer->Store());
    index.stored_rows = index.rows;
    index.CheckFiles();
  }
}

// Updates, and queries that wait for them, wait during a merge only for changes since its start.
// Measured by CPU time, which other load on the machine does not affect.
BOOST_AUTO_TEST_CASE(updates_do_not_wait_for_what_a_merge_has_merged) {
  constexpr uint64_t kChanged = FewerSanitized(400'000, 10, 10);
  Index index(BaseRows(1000));
  // Takes the best attempt, since the scheduler may also run the merge within the measured time.
  double best = 1;
  for (uint64_t attempt = 0; attempt < 8 && best > kMaxWaited; ++attempt) {
    RowUpdates updates(PhysicalType::kU64);
    for (uint64_t i = 0; i < kChanged; ++i) {
      const std::string primary_key = "row" + std::to_string(i);
      AppendRow<uint64_t>(primary_key, {i + attempt}, &updates);
      index.rows[primary_key] = {i + attempt};
    }
    {
      IndexWriter::Update update(index.writer.get());
      CheckOk(update.Apply(updates));
      CheckOk(update.Publish(update.version().sequence + 1, update.anchor()));
    }
    std::atomic<bool> done{false};
    absl::Status merged;
    CompactOptions options;
    options.threads = 1;
    const std::clock_t begin = std::clock();
    std::thread merging([&] {
      merged = index.writer->Compact(options);
      done = true;
    });
    std::clock_t longest = 0;
    for (uint64_t i = 0; !done; ++i) {
      const std::clock_t before = std::clock();
      index.One("row" + std::to_string(i % 100), i);
      longest = std::max(longest, std::clock() - before);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    merging.join();
    CheckOk(merged);
    const auto all = static_cast<double>(std::clock() - begin);
    const auto waited = static_cast<double>(longest);
    BOOST_TEST_MESSAGE(waited << " of " << all << " clock ticks");
    best = std::min(best, waited / all);
  }
  BOOST_TEST(best <= kMaxWaited);
  index.Check();
}

// Rows that are inserted and deleted like in a queue, with stores from time to time.
struct Queue {
  static constexpr uint64_t kLength = 100, kBatch = 100;
  static std::string Name(uint64_t i) { return "job" + std::to_string(10'000'000 + i); }

  void Run(Index* index, uint64_t rows, uint64_t stores) {
    for (const uint64_t last = next + rows; next < last; next += kBatch) {
      RowUpdates updates(PhysicalType::kU64);
      for (uint64_t i = next; i < next + kBatch; ++i) {
        AppendRow<uint64_t>(Name(i), {i % 10}, &updates);
        index->rows[Name(i)] = {i % 10};
        if (i < kLength) continue;
        AppendRow<uint64_t>(Name(i - kLength), {}, &updates);
        index->rows.erase(Name(i - kLength));
      }
      {
        IndexWriter::Update update(index->writer.get());
        CheckOk(update.Apply(updates));
        CheckOk(update.Publish(update.version().sequence + 1, update.anchor()));
      }
      if (next % (rows / stores) < kBatch) CheckOk(index->writer->Store());
      max_bytes = std::max(max_bytes, index->writer->version()->delta->Stats().bytes);
    }
  }

  uint64_t next = 0, max_bytes = 0;
};

BOOST_AUTO_TEST_CASE(rows_that_come_and_go_take_memory_and_files_for_those_that_are_there) {
  Index index(BaseRows(1000), 1, IndexWriter::Access::kExclusive);
  Queue queue;
  const auto pinned = index.writer->version();
  const Rows pinned_rows = index.rows;
  queue.Run(&index, FewerUnderTsan(200'000, 4), 40);
  BOOST_TEST(queue.max_bytes < 3u << 20);  // 14 MB if deleted rows stay
  CheckOk(index.writer->Tidy());
  uint64_t files = 0;
  for (const ManifestFile& file : index.Deltas()) files += file.size;
  BOOST_TEST(files < 100u << 10);
  index.Check();
  CheckOk(index.writer->Store());
  index.stored_rows = index.rows;
  index.CheckFiles();
  index.CheckVersion(*pinned, pinned_rows, 50);
  index.Open();
  index.Check();
}

// Without an IndexedDB, row ids accumulate until a merge; the caller checks whether a merge pays.
BOOST_AUTO_TEST_CASE(a_merge_pays_for_rows_that_came_and_went) {
  Index index(BaseRows(1000));
  Queue queue;
  queue.Run(&index, 5'000, 1);
  BOOST_TEST(!index.writer->ShouldCompact());
  queue.Run(&index, 10'000, 1);
  BOOST_TEST(index.writer->ShouldCompact());
  BOOST_TEST(index.writer->version()->delta->Stats().new_rows == 15'000u);
  CompactOptions options;
  options.threads = 1;
  CheckOk(index.writer->Compact(options));
  BOOST_TEST(!index.writer->ShouldCompact());
  BOOST_TEST(index.writer->version()->delta->Stats().new_rows == 0u);
  index.Check();
  // Also if no row is left to merge.
  for (const bool come : {true, false}) {
    RowUpdates updates(PhysicalType::kU64);
    for (uint64_t i = 0; i < 20'000; ++i) {
      AppendRow<uint64_t>("x" + std::to_string(i),
                          come ? std::set<uint64_t>{i} : std::set<uint64_t>{}, &updates);
    }
    IndexWriter::Update update(index.writer.get());
    CheckOk(update.Apply(updates));
    CheckOk(update.Publish(update.version().sequence + 1, update.anchor()));
  }
  BOOST_TEST(index.writer->ShouldCompact());
  CheckOk(index.writer->Compact(options));
  BOOST_TEST(!index.writer->ShouldCompact());
  BOOST_TEST(index.writer->version()->delta->Stats().new_rows == 0u);
  index.Check();
}

BOOST_AUTO_TEST_CASE(an_update_that_is_given_up_takes_no_memory) {
  Index index(BaseRows(100));
  index.One("row1", 5);
  const uint64_t before = index.writer->version()->delta->Stats().bytes;
  for (int round = 0; round < 4; ++round) {
    RowUpdates many(PhysicalType::kU64);
    for (uint64_t i = 0; i < 20'000; ++i) {
      AppendRow<uint64_t>(std::string(60, 'p') + std::to_string(i), {i}, &many);
    }
    {
      IndexWriter::Update update(index.writer.get());
      RequireOk(update.Apply(many));
    }
    BOOST_TEST(index.writer->version()->delta->Stats().bytes < before + (256 << 10));
  }
  index.Check();
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
