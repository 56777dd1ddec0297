#include "engine/source/manifest_watch.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(manifest_watch_test)
namespace {

// A file system whose events are unknown.
class OtherFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  OtherFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "OtherFileSystem"; }
};

void CheckEachChangeIsSeen(rocksdb::Options options, bool has_events) {
  TemporaryDirectory directory;
  options.create_if_missing = true;
  std::unique_ptr<rocksdb::DB> db;
  RequireOk(rocksdb::DB::Open(options, directory / "db", Into(&db)));
  std::atomic<int> calls{0};
  const auto await_more_than = [&](int before) {
    const absl::Time end = absl::Now() + absl::Seconds(30);
    while (calls <= before && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
    BOOST_TEST(calls > before);
  };
  std::atomic<int> errors{0};
  const ManifestWatch watch(db.get(), absl::Milliseconds(10), [&] {
    ++calls;
    return errors-- > 0 ? absl::UnavailableError("again") : absl::OkStatus();
  });
  BOOST_TEST(watch.waits_for_events() == has_events);
  await_more_than(0);
  if (has_events) {
    absl::SleepFor(absl::Milliseconds(100));
    BOOST_TEST(calls == 1);
    // A write to the log is none to the MANIFEST.
    RequireOk(db->Put({}, "a", "b"));
    absl::SleepFor(absl::Milliseconds(50));
    BOOST_TEST(calls == 1);
  }
  // After an error the function is called without an event.
  const int before_errors = calls;
  errors = 3;
  RequireOk(db->Flush({}));
  await_more_than(before_errors + 3);
  for (int i = 0; i < 5; ++i) {
    rocksdb::ColumnFamilyHandle* family = nullptr;
    RequireOk(db->CreateColumnFamily(options, absl::StrCat("family", i), &family));
    absl::SleepFor(absl::Milliseconds(30));
    const int before = calls;
    RequireOk(db->DropColumnFamily(family));
    await_more_than(before);
    RequireOk(db->DestroyColumnFamilyHandle(family));
  }
}

BOOST_AUTO_TEST_CASE(changes_of_one_file) {
  CheckEachChangeIsSeen({}, /*has_events=*/true);
}

BOOST_AUTO_TEST_CASE(a_file_for_each_change) {
  rocksdb::Options options;
  options.max_manifest_file_size = 1;
  CheckEachChangeIsSeen(options, /*has_events=*/true);
}

BOOST_AUTO_TEST_CASE(files_without_events) {
  rocksdb::Options mapped;
  mapped.allow_mmap_writes = true;
  CheckEachChangeIsSeen(mapped, /*has_events=*/false);
  const std::unique_ptr<rocksdb::Env> env =
      rocksdb::NewCompositeEnv(std::make_shared<OtherFileSystem>());
  rocksdb::Options other;
  other.env = env.get();
  CheckEachChangeIsSeen(other, /*has_events=*/false);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
