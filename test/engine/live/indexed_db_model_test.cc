// IndexedDB compared with a model: random operations, after which every index must have the results
// of a std::multimap of the rows' keys. CAIRN_TEST_SECONDS is the duration, a few seconds by
// default; CAIRN_TEST_SEED changes the operations.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "cairn/column.h"
#include "cairn/indexed_db.h"
#include "cairn/options.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/write_batch.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/model_indexes.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_model_test)
namespace {

using Entries =
    std::multimap<std::string, std::string>;  // secondary key -> primary keys, ascending

// The database, the rows that it must have, and its current indexes.
class Model {
 public:
  explicit Model(uint64_t salt) : random_(TestRandom(salt)) {
    for (const auto& [name, index] : kModelIndexes) db_.Create(index.spec, index.family);
    for (const auto& [name, index] : kModelIndexes) there_.insert(name);
  }

  void Step() {
    const uint64_t what = random_() % 1000;
    if (what < 250) return Put();
    if (what < 330) return Delete();
    if (what < 420) return Merge();
    if (what < 450) return DeleteRange();
    if (what < 480) return PutEntity();
    if (what < 510) return SingleDelete();
    if (what < 640) return WriteBatch();
    if (what < 880) return Find();
    if (what < 930) return Count();
    if (what < 960) return CheckAll();
    if (what < 970) return RequireOk(db_->Flush({}, db_.family(random_() % 2)));
    if (what < 973) return RequireOk(db_->CompactRange({}, db_.family(0), nullptr, nullptr));
    if (what < 980) return RequireOk(db_->FlushIndexes());
    if (what < 986) return CompactIndex();
    if (what < 990) return Reopen();
    if (what < 993) return DropOrCreate();
    if (what < 995) return PutUnlogged();
    if (what < 997) return Ingest();
    if (what < 998) return Rebuild();
    if (what < 999) return DisturbBuild();
    OthersAreRefused();
  }

  void CheckAll() {
    for (const std::string& name : there_) CheckIndex(name);
  }
  uint64_t rows() const { return rows_[0].size() + rows_[1].size(); }

 private:
  using Rows = std::map<std::string, std::string>;

  std::string Key() { return absl::StrFormat("k%03d", random_() % 300); }
  std::string Value() {
    return absl::StrCat("c", random_() % 40, random_() % 2 == 0 ? "" : ",more");
  }
  size_t Family() { return random_() % 3 == 0 ? 1 : 0; }
  std::string AnyIndex() {
    if (there_.empty()) return "";
    return *std::next(there_.begin(), static_cast<int>(random_() % there_.size()));
  }
  void Set(size_t family, const std::string& key, const std::string& value) {
    rows_[family][key] = value;
    entities_[family].erase(key);
  }
  void Erase(size_t family, const std::string& lower, const std::string& upper) {
    if (lower >= upper) return;
    rows_[family].erase(rows_[family].lower_bound(lower), rows_[family].lower_bound(upper));
    entities_[family].erase(entities_[family].lower_bound(lower),
                            entities_[family].lower_bound(upper));
  }
  void EraseOne(size_t family, const std::string& key) { Erase(family, key, key + '\0'); }

  void Put() {
    const size_t family = Family();
    const std::string key = Key(), value = Value();
    db_.Put(key, value, family);
    Set(family, key, value);
  }
  void Delete() {
    const size_t family = Family();
    const std::string key = Key();
    RequireOk(db_->Delete({}, db_.family(family), key));
    EraseOne(family, key);
  }
  void Merge() {
    const size_t family = Family();
    const std::string key = Key(), operand = Value();
    if (entities_[family].count(key) > 0) return;
    RequireOk(db_->Merge({}, db_.family(family), key, operand));
    SetMerged(family, key, operand);
  }
  void SetMerged(size_t family, const std::string& key, const std::string& operand) {
    const auto row = rows_[family].find(key);
    std::string merged = row == rows_[family].end() ? operand : row->second + "," + operand;
    if (merged.size() > 40) merged.erase(0, merged.size() - 40);  // like AppendOperator
    Set(family, key, merged);
  }
  void DeleteRange() {
    const size_t family = Family();
    const std::string lower = Key(), upper = absl::StrCat(lower.substr(0, 3), "9");
    RequireOk(db_->DeleteRange({}, db_.family(family), lower, upper));
    Erase(family, lower, upper);
  }
  void PutEntity() {
    const size_t family = Family();
    const std::string key = Key(), value = Value();
    RequireOk(db_->PutEntity({}, db_.family(family), key,
                             {{rocksdb::kDefaultWideColumnName, value}, {"other", "x"}}));
    Set(family, key, value);
    entities_[family].insert(key);
  }
  // Only for a row that was written once, as RocksDB requires.
  void SingleDelete() {
    const std::string key = absl::StrCat("s", ++singles_);
    db_.Put(key, "single");
    rows_[0][key] = "single";
    if (random_() % 2 == 0) Find();
    RequireOk(db_->SingleDelete({}, key));
    rows_[0].erase(key);
  }
  void WriteBatch() {
    rocksdb::WriteBatch batch;
    for (uint64_t i = random_() % 30; i > 0; --i) {
      const size_t family = Family();
      const std::string key = Key(), value = Value();
      switch (random_() % 5) {
        case 0:
          RequireOk(batch.Delete(db_.family(family), key));
          EraseOne(family, key);
          break;
        case 1:
          if (entities_[family].count(key) > 0) break;
          RequireOk(batch.Merge(db_.family(family), key, value));
          SetMerged(family, key, value);
          break;
        case 2: {
          const std::string upper = absl::StrCat(key, "~");
          RequireOk(batch.DeleteRange(db_.family(family), key, upper));
          Erase(family, key, upper);
          break;
        }
        default:
          RequireOk(batch.Put(db_.family(family), key, value));
          Set(family, key, value);
      }
    }
    RequireOk(db_->Write({}, &batch));
  }

  Entries Expected(const std::string& name) const {
    const ModelIndex& index = kModelIndexes.at(name);
    Entries entries;
    for (const auto& [key, value] : rows_[index.family])
      entries.emplace(index.key(key, value), key);
    return entries;
  }
  void Find() {
    const std::string name = AnyIndex();
    if (name.empty()) return;
    const std::string key =
        name == "prefix" ? Key().substr(0, 2) : absl::StrCat("c", random_() % 42);
    const Entries entries = Expected(name);
    std::string expected;
    for (auto [e, end] = entries.equal_range(key); e != end; ++e) {
      absl::StrAppend(&expected, expected.empty() ? "" : " ", e->second);
    }
    const std::string found = RowsOf(db_.get(), name, key);
    if (found != expected) {
      BOOST_FAIL(name << ": key " << key << " has rows " << found << ", expected " << expected);
    }
  }
  void Count() {
    const std::string name = AnyIndex();
    if (name.empty()) return;
    const auto live = RequireOk(db_->Index(name));
    uint64_t count = 0;
    RequireOk(live->Count(RangeBatch::Everything(PhysicalType::kBytes), absl::MakeSpan(&count, 1)));
    const size_t expected = rows_[kModelIndexes.at(name).family].size();
    if (count != expected) BOOST_FAIL(name << " counts " << count << ", expected " << expected);
  }
  void CheckIndex(const std::string& name) {
    const auto pinned = RequireOk(db_->Pin(name));
    FindResult matches;
    QueryOptions options;
    options.with_keys = true;
    RequireOk(pinned->Scan(RangeBatch::Everything(PhysicalType::kBytes), &matches, options));
    StringList primary_keys;
    RequireOk(pinned->PrimaryKeys(matches, &primary_keys));
    const Entries expected = Expected(name);
    if (primary_keys.size() != expected.size()) {
      BOOST_FAIL(name << " has " << primary_keys.size() << " entries, expected "
                      << expected.size());
    }
    size_t i = 0;
    for (const auto& [key, primary_key] : expected) {
      const std::string found = *pinned->codec().Format(matches.keys, i);
      if (primary_keys[i] != primary_key || !(found.find(key) != std::string::npos)) {
        BOOST_FAIL(name << ": entry " << i << " is " << found << "=" << primary_keys[i]
                        << ", expected " << key << "=" << primary_key);
      }
      ++i;
    }
  }
  void CompactIndex() {
    const std::string name = AnyIndex();
    if (!name.empty()) RequireOk(db_->CompactIndex(name));
  }
  void DropOrCreate() {
    const auto index =
        std::next(kModelIndexes.begin(), static_cast<int>(random_() % kModelIndexes.size()));
    if (there_.erase(index->first) > 0) {
      RequireOk(db_->DropIndex(index->first));
    } else {
      db_.Create(index->second.spec, index->second.family);
      there_.insert(index->first);
    }
  }
  void Rebuild() {
    const std::string name = AnyIndex();
    if (name.empty()) return;
    RequireOk(db_->RebuildIndex(name));
    RequireOk(db_->WaitUntilReady(name));
  }
  // Every build that begins also ends, whatever happens in between.
  void DisturbBuild() {
    const std::string name = AnyIndex();
    if (name.empty()) return;
    RequireOk(db_->RebuildIndex(name));
    switch (random_() % 4) {
      case 0:
        db_.Reopen();
        break;
      case 1:
        PutUnlogged();
        break;
      case 2:
        Ingest();
        break;
      default:
        RequireOk(db_->DropIndex(name));
        RequireOk(db_->CreateIndex(SpecOf(kModelIndexes.at(name).spec),
                                   db_.family(kModelIndexes.at(name).family)));
        if (random_() % 2 == 0) db_.Reopen();
    }
    AwaitAll();
  }
  void OthersAreRefused() {
    const std::string name = AnyIndex();
    if (name.empty()) return;
    OpenOptions open;
    open.calibration = Calibration::kNone;
    const auto other = SecondaryIndex::Open(db_.Info(name).directory, open);
    RequireOk(other.status());
    const auto source =
        SnapshotSource::FromDb(db_->GetBaseDB(), db_.family(kModelIndexes.at(name).family));
    RequireOk(source.status());
    const absl::Status merged = (*other)->Compact();
    if (!absl::IsUnavailable(merged)) BOOST_FAIL("another merges: " << merged);
    const absl::Status caught_up = (*other)->CatchUp(**source).status();
    // It needs the directory only if there is something to store; and the stored state may be too
    // old to catch up.
    if (!caught_up.ok() && !absl::IsUnavailable(caught_up) &&
        !absl::IsFailedPrecondition(caught_up)) {
      BOOST_FAIL(caught_up);
    }
  }
  void AwaitAll() {
    for (const std::string& name : there_) RequireOk(db_->WaitUntilReady(name));
  }
  void Reopen() {
    db_.Reopen();
    // If all of the last writes cancel each other, and RocksDB flushes at the end because of a
    // write without the log, its sequence number goes back; then indexes are rebuilt.
    AwaitAll();
  }
  void PutUnlogged() {
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    const std::string key = Key(), value = Value();
    RequireOk(db_->Put(unlogged, key, value));
    Set(0, key, value);
    // Otherwise a Reopen loses it.
    RequireOk(db_->Flush({}, db_.family(0)));
    AwaitAll();
  }
  void Ingest() {
    const std::string file = db_.Beside("ingested.sst");
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), db_.rocksdb_options());
    RequireOk(writer.Open(file));
    const std::string key = Key(), value = Value();
    RequireOk(writer.Put(key, value));
    RequireOk(writer.Finish());
    RequireOk(db_->IngestExternalFile(db_.family(0), {file}, {}));
    std::filesystem::remove(file);
    Set(0, key, value);
    AwaitAll();
  }

  std::mt19937_64 random_;
  IndexedDatabase db_;
  Rows rows_[2];
  std::set<std::string> entities_[2];  // keys of rows that are entities
  std::set<std::string> there_;
  uint64_t singles_ = 0;
};

BOOST_AUTO_TEST_CASE(random_operations_agree_with_the_model) {
  const absl::Time end = absl::Now() + TestTime();
  uint64_t steps = 0;
  const auto goes_on = [&] { return absl::Now() < end || steps <= 100; };
  for (uint64_t course = 0; goes_on(); ++course) {
    Model model(course);
    for (int i = 0; i < 4000 && goes_on(); ++i, ++steps) model.Step();
    model.CheckAll();
  }
  BOOST_TEST_MESSAGE(steps << " steps");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
