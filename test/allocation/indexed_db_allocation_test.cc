// Allocations of a live database's calls and of its threads fail one after the other. The call
// succeeds or reports that memory ran out, no exception escapes, and the indexes agree with their
// database afterwards without intervention.
#include <boost/test/unit_test.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cairn/indexed_db.h"
#include "cairn/rocksdb_status.h"
#include "cairn/snapshot_source.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "test/allocation/fail_each_allocation.h"
#include "test/allocation/failing_new.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {
namespace {

constexpr int kRowsBefore = 200;
constexpr absl::Duration kLongest = absl::Seconds(60);

// An index that could not follow for lack of memory reports that until it catches up again.
absl::Status OfMemory(const absl::Status& status) {
  const bool is_of_memory = absl::StrContains(status.message(), "memory") ||
                            absl::StrContains(status.message(), "is catching up");
  return is_of_memory ? absl::ResourceExhaustedError(status.message()) : status;
}

// A database with rows and the indexes "number", which is unique, and "text". It does no background
// work.
class Live {
 public:
  Live() {
    rocksdb_options_.create_if_missing = true;
    rocksdb_options_.WAL_size_limit_MB = 100;
    options_.open.calibration = Calibration::kNone;
    options_.open.threads = options_.build.threads = options_.compact_threads = 1;
    options_.follow_interval = options_.flush_interval = options_.compact_interval =
        absl::ZeroDuration();
    Open();
    for (int i = 0; i < kRowsBefore; ++i) Put();
    for (const char* name : {"number", "text"}) {
      RequireOk(db->CreateIndex(Spec(name), nullptr));
      RequireOk(db->WaitUntilReady(name, kLongest));
    }
  }

  static IndexSpec Spec(const std::string& name) {
    const auto spec = IndexSpec::Parse(name == "number" ? "number = value[0:8]:bytes,unique=true"
                                                        : name + " = value:text");
    RequireOk(spec.status());
    return *spec;
  }
  std::string NextValue() { return absl::StrCat(10000000 + written, " and a longer text"); }
  void Put() {
    RequireOk(db->Put({}, absl::StrCat("row", written % 150), NextValue()));
    ++written;
  }
  void Open() {
    auto opened = IndexedDB::Open(rocksdb_options_, directory_ / "db", options_);
    RequireOk(opened.status());
    db = *std::move(opened);
  }
  void Reopen() {
    db = nullptr;
    Open();
    for (const IndexInfo& info : db->ListIndexes()) {
      RequireOk(db->WaitUntilReady(info.spec.name, kLongest));
    }
  }
  bool Has(const std::string& name) {
    for (const IndexInfo& info : db->ListIndexes()) {
      if (info.spec.name == name) return true;
    }
    return false;
  }
  // Checks that an index exists, at least after a wait, and agrees with the database.
  void Check(const std::string& name) {
    RequireOk(db->WaitUntilReady(name, kLongest));
    const auto pinned = db->Pin(name);
    RequireOk(pinned.status());
    const auto source = SnapshotSource::FromDb(db->GetBaseDB());
    RequireOk(source.status());
    std::vector<std::string> differences;
    RequireOk((*pinned)->VerifyAgainst(**source, 3, &differences));
    for (const std::string& difference : differences) BOOST_ERROR(name << ": " << difference);
  }
  void CheckBoth() {
    Check("number");
    Check("text");
  }
  const rocksdb::Options& rocksdb_options() const { return rocksdb_options_; }
  const IndexedDBOptions& options() const { return options_; }
  std::string path() const { return directory_ / "db"; }

  std::unique_ptr<IndexedDB> db;
  int written = 0;

 private:
  TemporaryDirectory directory_;
  rocksdb::Options rocksdb_options_;
  IndexedDBOptions options_;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(indexed_db_allocation_test, Live)

BOOST_AUTO_TEST_CASE(an_index_is_created_or_was_not) {
  for (const FailingNew::How how : kBoth) {
    const IndexSpec spec = Spec("new");
    absl::Status created;
    FailEachAllocation(
        how, 25,
        [&] {
          if (Has("new")) RequireOk(db->DropIndex("new"));
        },
        [&] {
          created = db->CreateIndex(spec, nullptr);
          // While memory is short, a build can only wait.
          if (!created.ok() || how == FailingNew::How::kOnward) return created;
          return db->WaitUntilReady("new", kLongest);
        },
        [&] {
          BOOST_TEST(Has("new") == created.ok());
          if (!created.ok()) RequireOk(db->CreateIndex(spec, nullptr));
          Check("new");
        },
        OfMemory);
    CheckBoth();
  }
}

BOOST_AUTO_TEST_CASE(an_index_is_rebuilt_in_the_end) {
  for (const FailingNew::How how : kBoth) {
    FailEachAllocation(
        how, 20, [&] { Reopen(); },
        [&] {
          const absl::Status rebuilt = db->RebuildIndex("text");
          if (!rebuilt.ok() || how == FailingNew::How::kOnward) return rebuilt;
          return db->WaitUntilReady("text", kLongest);
        },
        [&] { CheckBoth(); }, OfMemory);
  }
}

BOOST_AUTO_TEST_CASE(a_dropped_index_is_gone_or_can_be_dropped_again) {
  for (const FailingNew::How how : kBoth) {
    FailEachAllocation(
        how, 25,
        [&] {
          if (Has("new")) return;
          RequireOk(db->CreateIndex(Spec("new"), nullptr));
          RequireOk(db->WaitUntilReady("new", kLongest));
        },
        [&] { return db->DropIndex("new"); },
        [&] {
          if (Has("new")) RequireOk(db->DropIndex("new"));
          BOOST_TEST(!Has("new"));
          CheckBoth();
        },
        OfMemory);
  }
}

BOOST_AUTO_TEST_CASE(what_a_query_needs_is_followed_then_or_later) {
  const std::string_view prefixes[] = {"1"};
  for (const FailingNew::How how : kBoth) {
    const auto each = [&](const std::function<absl::Status()>& query) {
      FailEachAllocation(
          how, 25,
          [&] {
            Reopen();
            for (int i = 0; i < 5; ++i) Put();
          },
          query, [&] { CheckBoth(); }, OfMemory);
      for (const IndexInfo& info : db->ListIndexes()) BOOST_TEST(info.builds == 0u);
    };
    each([&] { return db->Pin("text").status(); });
    each([&]() -> absl::Status {
      const auto index = db->Index("text");
      if (!index.ok()) return index.status();
      FindResult matches;
      return (*index)->Scan(RangeBatch::Prefix(prefixes), &matches);
    });
    each([&] { return db->PinStale("text").status(); });
  }
}

BOOST_AUTO_TEST_CASE(a_query_at_a_snapshot_sees_it_or_refuses) {
  for (const FailingNew::How how : kBoth) {
    for (const bool is_lost : {false, true}) {
      const rocksdb::Snapshot* snapshot = nullptr;
      std::vector<uint64_t> expected;
      FailEachAllocation(
          how, 25,
          [&] {
            Reopen();
            for (int i = 0; i < 5; ++i) Put();
            expected = *db->Count("text", KeyQuery::Everything());
            snapshot = db->GetSnapshot();
            RequireOk(db->Count("text", KeyQuery::Everything()));
            RequireOk(db->Delete({}, absl::StrCat("row", (written - 1) % 150)));
          },
          [&]() -> absl::Status {
            LookupOptions at;
            at.snapshot = snapshot;
            // Drops the version at the snapshot, which must not need memory.
            if (is_lost) return db->RebuildIndex("text");
            const auto count = db->Count("text", KeyQuery::Everything(), at);
            if (count.ok()) BOOST_TEST(*count == expected);
            // A snapshot that cannot be taken is null.
            const rocksdb::Snapshot* const another = db->GetSnapshot();
            if (another != nullptr) db->ReleaseSnapshot(another);
            return count.status();
          },
          [&] {
            CheckBoth();
            db->ReleaseSnapshot(snapshot);
            uint64_t held = 1;
            BOOST_TEST(db->GetIntProperty("rocksdb.num-snapshots", &held));
            BOOST_TEST(held == 0u);
          },
          [](const absl::Status& status) {
            // The index has left the log for lack of memory, or its version was not kept.
            return absl::StrContains(status.message(), "has no state at the snapshot")
                       ? absl::ResourceExhaustedError(status.message())
                       : OfMemory(status);
          });
    }
  }
}

BOOST_AUTO_TEST_CASE(indexes_are_listed_as_far_as_there_is_memory) {
  for (const FailingNew::How how : kBoth) {
    for (uint64_t spared = 0; spared < 30; ++spared) {
      FailingNew::Arm(spared, how);
      const std::vector<IndexInfo> infos = db->ListIndexes();
      const bool failed = FailingNew::Disarm().failed;
      BOOST_TEST((infos.size() == 2u || failed));
      if (!infos.empty()) BOOST_TEST(infos[0].spec.name == "number");
    }
    BOOST_TEST(db->ListIndexes().size() == 2u);
  }
}

BOOST_AUTO_TEST_CASE(a_write_to_a_unique_index_is_made_or_refused) {
  for (const FailingNew::How how : kBoth) {
    std::string key, value;
    rocksdb::Status put;
    FailEachAllocation(
        how, 25,
        [&] {
          Reopen();
          key = absl::StrCat("row", written % 150);
          value = NextValue();
          ++written;
        },
        [&] {
          put = db->Put({}, key, value);
          return absl::OkStatus();
        },
        [&] {
          CheckBoth();
          RequireOk(db->Put({}, key, value));
          // No other row can take its key, during and after the failure.
          BOOST_TEST(db->Put({}, "another", value).IsInvalidArgument());
          CheckBoth();
        },
        [&](const absl::Status&) { return OfMemory(FromRocksDb(put, "writing")); });
  }
}

BOOST_AUTO_TEST_CASE(stores_and_merges_are_made_or_made_up_for) {
  for (const FailingNew::How how : kBoth) {
    for (const bool merge : {false, true}) {
      const auto work = [&] { return merge ? db->CompactIndex("text") : db->FlushIndexes(); };
      FailEachAllocation(
          how, 25,
          [&] {
            Reopen();
            for (int i = 0; i < 5; ++i) Put();
          },
          work,
          [&] {
            CheckBoth();
            RequireOk(work());
            CheckBoth();
          },
          OfMemory);
    }
    Reopen();
    for (const IndexInfo& info : db->ListIndexes()) BOOST_TEST(info.builds == 0u);
  }
}

BOOST_AUTO_TEST_CASE(attaching_succeeds_or_leaves_all_as_it_was) {
  db = nullptr;
  for (const FailingNew::How how : kBoth) {
    std::shared_ptr<rocksdb::DB> base;
    absl::StatusOr<std::unique_ptr<IndexedDB>> attached = absl::UnknownError("");
    FailEachAllocation(
        how, 25,
        [&] {
          std::unique_ptr<rocksdb::DB> opened;
          RequireOk(rocksdb::DB::Open(rocksdb_options(), path(), Into(&opened)));
          base = std::move(opened);
        },
        [&] {
          attached = IndexedDB::Attach(base, {}, options());
          return attached.status();
        },
        [&] {
          if (!attached.ok()) attached = IndexedDB::Attach(base, {}, options());
          RequireOk(attached.status());
          db = *std::move(attached);
          CheckBoth();
          for (const IndexInfo& info : db->ListIndexes()) BOOST_TEST(info.builds == 0u);
          db = nullptr;
          base = nullptr;
        },
        OfMemory);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace cairn
