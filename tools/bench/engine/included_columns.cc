// IncludedColumns/<what>/<columns>: the cost of columns that an index includes.
//   build: builds an index of a random u64 with them; counters are the bytes per row of the index's
//     directory, and of the columns;
//   open: opens it and builds the structures for their aggregates; bytes of these per row;
//   write: batches of 100 updates of random rows through an IndexedDB, without an index ("plain"),
//     with one that includes nothing ("none"), or these columns;
//   group: groups all rows by columns and aggregates them, after one comparison has found them.
// CPU is the time of all threads of the process. Columns are flag u8 of 5 values, count u32 below
// 100,000, time i64 ascending, price f64 of two digits, measure f64 with any digits, country text
// of 200 values, name text of 24 random letters.
#include <benchmark/benchmark.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cairn/index_group.h"
#include "cairn/index_spec.h"
#include "cairn/indexed_db.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "tools/bench/database.h"
#include "tools/bench/or_throw.h"
#include "tools/bench/registration.h"
#include "tools/bench/temporary_directory.h"

namespace cairn::bench::included_columns {
namespace {

constexpr uint64_t kRows = 2'000'000;
constexpr int kBatch = 100;
constexpr char kThree[] = "count,price,country";
constexpr char kAll[] = "flag,count,time,price,measure,country,name";

std::string SourceOf(std::string_view column) {
  if (column == "flag") return "value[8:1]:u8";
  if (column == "count") return "value[9:4]:u32be";
  if (column == "time") return "value[13:8]:i64be";
  if (column == "price") return "value[21:8]:f64be";
  if (column == "measure") return "value[29:8]:f64be";
  if (column == "country") return "value[37:10]:text";
  return "value[47:24]:text";  // name
}

// "key" that includes these columns, separated by commas.
IndexSpec SpecWith(const std::string& columns) {
  std::string included;
  const std::vector<std::string> names = absl::StrSplit(columns, ',', absl::SkipEmpty());
  for (const std::string& column : names) {
    absl::StrAppend(&included, included.empty() ? "" : ", ", column, " = ", SourceOf(column));
  }
  const std::string key = "key = value[0:8]:u64be";
  return OrThrow(
      IndexSpec::Parse(included.empty() ? key : absl::StrCat(key, ", include(", included, ")")));
}

std::string RowValue(uint64_t row, std::mt19937_64& random) {
  const auto bits = [](double number) {
    uint64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    return BenchDatabase::BigEndian(bits);
  };
  std::string value = BenchDatabase::BigEndian(random());
  value += static_cast<char>(random() % 5);
  value += BenchDatabase::BigEndian(random() % 100'000).substr(4);
  value += BenchDatabase::BigEndian(1'700'000'000'000 + row * 37 + random() % 37);
  value += bits(static_cast<double>(random() % 10'000'000) / 100);
  value += bits(static_cast<double>(random() >> 11) * 0x1p-40);
  const std::string country = absl::StrCat(1000 + random() % 200);
  value += "country" + country.substr(1);
  for (int i = 0; i < 24; ++i) value += static_cast<char>('a' + random() % 26);
  return value + std::string(29, 'v');
}

std::string PrimaryKey(uint64_t row) {
  return BenchDatabase::PrimaryKey(row);
}

// A database of these rows in a temporary directory.
class ColumnDatabase {
 public:
  ColumnDatabase() : random_(1), rows_(BenchRows(kRows)) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;
    options.WAL_size_limit_MB = 4096;
    std::unique_ptr<rocksdb::DB> db;
    OrThrow(rocksdb::DB::Open(options, directory_.path() + "/db", Into(&db)));
    db_ = std::move(db);
    for (uint64_t row = 0; row < rows_;) {
      rocksdb::WriteBatch batch;
      for (int i = 0; i < 1000 && row < rows_; ++i, ++row) {
        OrThrow(batch.Put(PrimaryKey(row), RowValue(row, random_)));
      }
      OrThrow(db_->Write({}, &batch));
    }
    OrThrow(db_->Flush({}));
    OrThrow(db_->CompactRange({}, nullptr, nullptr));
  }
  // The database that is only read.
  static ColumnDatabase& Get() {
    static ColumnDatabase database;
    return database;
  }

  const std::shared_ptr<rocksdb::DB>& db() const { return db_; }
  std::string Beside(const std::string& name) const { return directory_.path() + "/" + name; }
  uint64_t rows() const { return rows_; }
  std::unique_ptr<SnapshotSource> Source() const {
    return OrThrow(SnapshotSource::FromDb(db_.get()));
  }
  void WriteBatch(rocksdb::DB* db) {
    rocksdb::WriteBatch batch;
    for (int i = 0; i < kBatch; ++i) {
      const uint64_t row = random_() % rows_;
      OrThrow(batch.Put(PrimaryKey(row), RowValue(row, random_)));
    }
    OrThrow(db->Write({}, &batch));
  }

 private:
  std::mt19937_64 random_;
  const uint64_t rows_;
  const TemporaryDirectory directory_;
  std::shared_ptr<rocksdb::DB> db_;
};

double BytesOf(const std::string& directory, const std::string& containing) {
  double bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    if (entry.path().filename().string().find(containing) == std::string::npos) continue;
    bytes += static_cast<double>(entry.file_size());
  }
  return bytes;
}

void BuildWith(benchmark::State& state, const std::string& columns) {
  const ColumnDatabase& database = ColumnDatabase::Get();
  const auto source = database.Source();
  const std::string directory = database.Beside("built");
  BuildOptions options;
  options.threads = static_cast<int>(state.range(0));
  const BuildTarget target{SpecWith(columns), directory};
  double bytes = 0, column_bytes = 0;
  for (auto _ : state) {
    OrThrow(SecondaryIndex::BuildAll(*source, absl::MakeConstSpan(&target, 1), options));
    state.PauseTiming();
    bytes = BytesOf(directory, "");
    column_bytes = BytesOf(directory, ".col");
    std::filesystem::remove_all(directory);
    state.ResumeTiming();
  }
  const auto rows = static_cast<double>(database.rows());
  state.counters["rows_per_s"] =
      benchmark::Counter(rows, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["bytes_per_row"] = bytes / rows;
  state.counters["column_bytes_per_row"] = column_bytes / rows;
}

const std::string& Built() {
  static const std::string* const directory = [] {
    const ColumnDatabase& database = ColumnDatabase::Get();
    auto* const made = new std::string(database.Beside("all"));
    OrThrow(SecondaryIndex::Build(*database.Source(), SpecWith(kAll), *made).status());
    return made;
  }();
  return *directory;
}

void OpenWith(benchmark::State& state, const std::string& column) {
  const auto rows = static_cast<double>(ColumnDatabase::Get().rows());
  OpenOptions options;
  options.calibration = Calibration::kNone;
  options.ordered_indexes = {"cpu:sorted_array"};
  if (!column.empty()) options.aggregates = {column};
  double bytes = 0;
  for (auto _ : state) {
    const auto index = OrThrow(SecondaryIndex::Open(Built(), options));
    state.PauseTiming();
    bytes = 0;
    for (const auto& of : OrThrow(index->Stats()).aggregates)
      bytes += static_cast<double>(of.bytes);
    state.ResumeTiming();
  }
  state.counters["aggregate_bytes_per_row"] = bytes / rows;
}

void WriteWith(benchmark::State& state, const std::string& columns, bool indexed) {
  ColumnDatabase database;
  std::shared_ptr<rocksdb::DB> db = database.db();
  if (indexed) {
    auto attached = OrThrow(IndexedDB::Attach(db, {}, {}));
    OrThrow(attached->CreateIndex(SpecWith(columns)));
    OrThrow(attached->WaitUntilReady("key"));
    db = std::move(attached);
  }
  for (auto _ : state) database.WriteBatch(db.get());
  if (indexed) {
    for (const IndexInfo& info : dynamic_cast<IndexedDB&>(*db).ListIndexes()) {
      if (info.builds != 1) throw std::runtime_error("the index could not follow");
    }
  }
  state.counters["rows_per_s"] =
      benchmark::Counter(kBatch, benchmark::Counter::kIsIterationInvariantRate);
}

void Group(benchmark::State& state, const std::vector<std::string>& by,
           const std::vector<Aggregate>& aggregates) {
  OpenOptions options;
  options.calibration = Calibration::kNone;
  const std::shared_ptr<SecondaryIndex> index = OrThrow(SecondaryIndex::Open(Built(), options));
  const auto group = OrThrow(IndexGroup::Create({{index}}));
  GroupByOptions asked;
  asked.group_by = by;
  asked.limit = 10;
  GroupByResult groups;
  for (auto _ : state) {
    OrThrow(group->GroupBy(Predicate::All({}), aggregates, asked, &groups));
  }
  state.counters["rows_per_s"] = benchmark::Counter(static_cast<double>(groups.rows),
                                                    benchmark::Counter::kIsIterationInvariantRate);
}

const RegisterInMain kRegister([] {
  const std::string sets[] = {"",        "flag",    "count", "time", "price",
                              "measure", "country", "name",  kThree, kAll};
  for (const std::string& columns : sets) {
    const std::string name = columns.empty() ? "none" : columns == kAll ? "all" : columns;
    benchmark::RegisterBenchmark(("IncludedColumns/build/" + name).c_str(), BuildWith, columns)
        ->ArgName("threads")
        ->Arg(1)
        ->Arg(2)
        ->MeasureProcessCPUTime()
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
    if (columns == kThree || columns == kAll) continue;
    benchmark::RegisterBenchmark(("IncludedColumns/open/" + name).c_str(), OpenWith, columns)
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
  const auto write = [](const char* name, const std::string& columns, bool indexed) {
    benchmark::RegisterBenchmark((std::string("IncludedColumns/write/") + name).c_str(), WriteWith,
                                 columns, indexed)
        ->MeasureProcessCPUTime()
        ->UseRealTime();
  };
  write("plain", "", false);
  write("none", "", true);
  write("count", "count", true);
  write(kThree, kThree, true);
  write("all", kAll, true);
  const auto group = [](const char* name, const std::vector<std::string>& by,
                        const std::vector<Aggregate>& aggregates) {
    benchmark::RegisterBenchmark((std::string("IncludedColumns/group/") + name).c_str(), Group, by,
                                 aggregates)
        ->Unit(benchmark::kMillisecond);
  };
  group("all:sum", {}, {Aggregate::Sum("count")});
  group("flag:count", {"flag"}, {Aggregate::Count()});
  group("country:sum", {"country"}, {Aggregate::Sum("count")});
  group("flag,country:sum,avg,max", {"flag", "country"},
        {Aggregate::Sum("count"), Aggregate::Avg("price"), Aggregate::Max("measure")});
  group("count:count", {"count"}, {Aggregate::Count()});
  group("name:count", {"name"}, {Aggregate::Count()});
  group("country:distinct", {"country"}, {Aggregate::CountDistinct("count")});
});

}  // namespace
}  // namespace cairn::bench::included_columns
