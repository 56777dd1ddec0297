// A process that builds, catches up and compacts indexes ends at one operation after the other, by
// a kill or a power loss. Each index is in its old or its new state, and continues.
// CAIRN_TEST_STRIDE is the number of operations between two ends: 1 for every operation.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "cairn/types.h"
#include "engine/util/rocksdb_compat.h"
#include "engine/util/rocksdb_file_system.h"
#include "rocksdb/env.h"
#include "test/engine/faults/crash_database.h"
#include "test/engine/faults/crash_file_system.h"
#include "test/engine/faults/crash_indexes.h"
#include "test/engine/faults/crash_model.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(crash_points_test)
namespace {

constexpr char kPath[] = "/db";
constexpr const char* kNames[] = {"number", "word"};
// Prime, so that every kind of operation is tested.
constexpr uint64_t kStride = kUnderTsan ? 101 : 23;

std::string IndexPath(const std::string& name) {
  return "/" + name;
}

class Machine {
 public:
  Machine() : env_(rocksdb::NewCompositeEnv(files_)), index_files_(FileSystemOf(files_)) {}
  ~Machine() { Close(); }

  CrashFileSystem* files() { return files_.get(); }
  void Open() {
    const rocksdb::Options options = CrashDatabase::RocksDbOptions(env_.get());
    rocksdb::Options archiving = options;
    archiving.WAL_size_limit_MB = 1024;
    RequireOk(rocksdb::DB::Open(archiving, kPath, {{"default", options}, {"a", options}},
                                &families_, Into(&db_)));
  }
  void Close() {
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      RequireOk(db_->DestroyColumnFamilyHandle(family));
    }
    families_.clear();
    db_.reset();
  }

  void Write(int calls) {
    for (; calls > 0; --calls) RequireOk(stream_.Next().MakeOf(db_.get(), families_));
  }
  std::unique_ptr<SnapshotSource> Source() {
    auto source = SnapshotSource::FromDb(db_.get(), families_[0]);
    RequireOk(source.status());
    return *std::move(source);
  }
  void Build() {
    std::vector<BuildTarget> targets;
    for (const char* name : kNames) {
      targets.push_back({SpecOf(kCrashIndexes.at(name).spec), IndexPath(name)});
    }
    BuildOptions options;
    options.threads = 1;
    options.memory_budget = 10000;  // so that it spills
    options.file_system = files_;
    const auto source = Source();
    RequireOk(SecondaryIndex::BuildAll(*source, targets, options).status());
    Note(source->sequence());
  }
  std::unique_ptr<SecondaryIndex> OpenIndex(const std::string& name) {
    OpenOptions options;
    options.calibration = Calibration::kNone;
    options.threads = 1;
    options.file_system = files_;
    auto index = SecondaryIndex::Open(IndexPath(name), options);
    if (!index.ok()) {
      BOOST_REQUIRE_MESSAGE(absl::IsNotFound(index.status()), index.status());
      return nullptr;
    }
    return *std::move(index);
  }
  void CatchUp(bool merge) {
    const auto source = Source();
    CompactOptions options;
    options.threads = 1;
    for (const char* name : kNames) {
      const auto index = OpenIndex(name);
      RequireOk(index->CatchUp(*source).status());
      if (merge) RequireOk(index->Compact(options));
    }
    Note(source->sequence());
  }

  void Live() {
    Open();
    Write(150);
    Build();
    for (const bool merge : {false, true, false}) {
      Write(40);
      CatchUp(merge);
    }
    Write(10);
    Build();
    Close();
  }

  void Examine() {
    Open();
    Write(1);
    for (const char* name : kNames) {
      auto index = OpenIndex(name);
      if (index == nullptr) {
        BOOST_TEST(stored_ == 0u);
        Build();
        index = OpenIndex(name);
      }
      BOOST_TEST(index->sequence() >= stored_);
      const absl::Status caught_up = index->CatchUp(*Source()).status();
      if (!caught_up.ok()) {
        // Table files prove changes that the log lacks, until they are replaced.
        BOOST_TEST(absl::StrContains(caught_up.message(), "nothing proves"), caught_up);
        Build();
        index = OpenIndex(name);
      }
      RequireOk(index->Verify());
      std::vector<std::string> differences;
      RequireOk(index->VerifyAgainst(*Source(), 5, &differences));
      for (const std::string& difference : differences) BOOST_ERROR(name << ": " << difference);
      BOOST_TEST(Leftovers(IndexPath(name), index_files_.get()) == std::vector<std::string>(),
                 boost::test_tools::per_element());
    }
    Close();
  }

 private:
  // Writes before the machine stopped must be present after the restart.
  void Note(SequenceNumber sequence) {
    if (!files_->stopped()) stored_ = sequence;
  }

  const std::shared_ptr<CrashFileSystem> files_ = std::make_shared<CrashFileSystem>(kPath);
  const std::unique_ptr<rocksdb::Env> env_;
  const std::shared_ptr<FileSystem> index_files_;
  WriteStream stream_{7};
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  std::unique_ptr<rocksdb::DB> db_;
  SequenceNumber stored_ = 0;
};

BOOST_AUTO_TEST_CASE(builds_catching_up_and_merges_may_end_at_any_operation) {
  const char* given = std::getenv("CAIRN_TEST_STRIDE");
  const uint64_t stride = given != nullptr ? std::strtoull(given, nullptr, 10) : kStride;
  std::mt19937_64 random = TestRandom();
  uint64_t operations = 0, made = 0;
  {
    Machine machine;
    machine.Open();
    machine.Close();
    made = machine.files()->changes();
    machine.Live();
    operations = machine.files()->changes() - made;
  }
  int ends = 0;
  for (uint64_t k = 1 + random() % stride; k <= operations; k += stride) {
    for (const auto end : {CrashFileSystem::End::kKilled, CrashFileSystem::End::kPowerLost}) {
      BOOST_TEST_CONTEXT(
          "operation " << k
                       << (end == CrashFileSystem::End::kKilled ? ", killed" : ", without power")) {
        Machine machine;
        machine.Open();
        machine.Close();
        machine.files()->SyncAll();
        machine.files()->StopAfter(k);
        machine.Live();
        machine.files()->Restart(end, &random);
        machine.Examine();
        ++ends;
      }
    }
  }
  BOOST_TEST_MESSAGE(ends << " ends within " << operations << " operations");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
