// cairn demo: a database to experiment with.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/util/rocksdb_compat.h"
#include "engine/util/status.h"
#include "index/machine/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/sst_file_writer.h"
#include "tools/cli/command.h"
#include "tools/demo/demo_data.h"
#include "tools/print/output.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

// Rows per SST file: several files for a build to split, each a few megabytes.
constexpr uint64_t kRowsPerFile = 100'000;
// One in this many rows is then rewritten or deleted, as in a database in use.
constexpr uint64_t kRowsPerChange = 1000;

struct DemoOptions {
  std::string directory;
  uint64_t rows = 1'000'000;
  uint64_t seed = 1;
};

// Indexes to try, and a query for each.
struct Example {
  const char *name, *column_family, *spec, *query;
};
constexpr Example kExamples[] = {
    {"phone", "customer", "value.field('|',4):text", "--prefix=25- --limit=10"},
    {"nation_balance", "customer", "value.field('|',3):u8,value.field('|',5):f64",
     "--range=7,9990..8"},
    {"date", "orders", "value.field('|',4):text", "--prefix=1995-03- --limit=10"},
    {"customer", "orders", "value.field('|',1):u64", "--eq=1 --eq=4"},
    {"city", "profile", "value.json('/address/city'):text", "--eq=Lisbon --limit=10"},
    {"tags", "profile", "value.json('/tags'):text", "--eq=vip --reverse --limit=10"},
    {"country_age", "profile", "value.json('/address/country'):text,value.json('/age'):u8",
     "--range=PT,30..PT,40 --limit=10"},
};

using MakeRow = std::function<std::pair<std::string, std::string>(uint64_t number)>;

struct Table {
  std::string column_family;
  MakeRow make_row;
};

// Closes a database and its column families.
class OpenDb {
 public:
  ~OpenDb() {
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      db->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    }
  }

  std::vector<rocksdb::ColumnFamilyHandle*> handles;  // without the default one
  std::unique_ptr<rocksdb::DB> db;
};

// Writes rows [first, end) of a table into one SST file.
absl::Status WriteFile(const Table& table, const std::string& file, uint64_t first, uint64_t end) {
  rocksdb::Options options;
  options.compression = rocksdb::kSnappyCompression;
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
  const std::string doing = absl::StrFormat("cannot write '%s'", file);
  if (rocksdb::Status s = writer.Open(file); !s.ok()) return FromRocksDb(s, doing);
  for (uint64_t number = first; number < end; ++number) {
    const auto [key, value] = table.make_row(number);
    if (rocksdb::Status s = writer.Put(key, value); !s.ok()) return FromRocksDb(s, doing);
    if (number % 4096 == 0 && Interrupted()) return absl::CancelledError("interrupted");
  }
  return FromRocksDb(writer.Finish(), doing);
}

// Writes a table as SST files and ingests them into the database by renaming.
absl::Status Load(const Table& table, const DemoOptions& given, rocksdb::DB* db,
                  rocksdb::ColumnFamilyHandle* column_family) {
  std::vector<std::string> files;
  for (uint64_t first = 1; first <= given.rows; first += kRowsPerFile) {
    files.push_back(
        absl::StrFormat("%s/%s-%d.load", given.directory, table.column_family, files.size()));
    const uint64_t end = std::min(first + kRowsPerFile, given.rows + 1);
    RETURN_IF_ERROR(WriteFile(table, files.back(), first, end));
  }
  if (files.empty()) return absl::OkStatus();
  rocksdb::IngestExternalFileOptions ingest;
  ingest.move_files = true;
  return FromRocksDb(db->IngestExternalFile(column_family, files, ingest),
                     absl::StrFormat("cannot load '%s'", table.column_family));
}

// Loads each table on a separate thread.
absl::Status LoadAll(const std::vector<Table>& tables, const DemoOptions& given, OpenDb* db) {
  std::vector<absl::Status> statuses(tables.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < tables.size(); ++i) {
    threads.emplace_back(
        [&, i] { statuses[i] = Load(tables[i], given, db->db.get(), db->handles[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status OpenNew(const std::string& directory, const std::vector<Table>& tables, OpenDb* db) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.error_if_exists = true;
  if (rocksdb::Status s = rocksdb::DB::Open(options, directory, Into(&db->db)); !s.ok()) {
    return FromRocksDb(s, absl::StrFormat("cannot create a database in '%s'", directory));
  }
  for (const Table& table : tables) {
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    if (rocksdb::Status s = db->db->CreateColumnFamily({}, table.column_family, &handle); !s.ok()) {
      return FromRocksDb(s,
                         absl::StrFormat("cannot create column family '%s'", table.column_family));
    }
    db->handles.push_back(handle);
  }
  return absl::OkStatus();
}

// Changes some customers and deletes some orders, so that the database has rows in several levels.
absl::Status Change(const DemoData& data, uint64_t rows, const OpenDb& db) {
  rocksdb::WriteBatch batch;
  for (uint64_t number = kRowsPerChange; number <= rows; number += kRowsPerChange) {
    rocksdb::Status s =
        batch.Put(db.handles[0], DemoData::CustomerKey(number), data.Customer(number, 1));
    if (s.ok()) s = batch.Delete(db.handles[1], DemoData::OrderKey(number));
    if (!s.ok()) return FromRocksDb(s, "cannot change rows");
  }
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  rocksdb::Status s = db.db->Write(options, &batch);
  if (s.ok()) s = db.db->Flush({}, db.handles);
  return FromRocksDb(s, "cannot change rows");
}

absl::StatusOr<int> RunDemo(const DemoOptions& given) {
  const DemoData data(given.seed);
  const std::vector<Table> tables = {
      {"customer",
       [&](uint64_t i) { return std::make_pair(DemoData::CustomerKey(i), data.Customer(i)); }},
      {"orders",
       [&](uint64_t i) {
         return std::make_pair(DemoData::OrderKey(i), data.Order(i, given.rows));
       }},
      {"profile",
       [&](uint64_t i) { return std::make_pair(DemoData::CustomerKey(i), data.Profile(i)); }},
  };
  std::error_code ignored;
  const bool made = !std::filesystem::exists(given.directory, ignored);
  absl::Status status;
  {
    OpenDb db;
    status = OpenNew(given.directory, tables, &db);
    if (status.ok()) status = LoadAll(tables, given, &db);
    if (status.ok()) status = Change(data, given.rows, db);
  }
  if (!status.ok()) {
    if (made) std::filesystem::remove_all(given.directory, ignored);
    return status;
  }

  const std::string& db = given.directory;
  Output output;
  output.Write(absl::StrFormat(
      "'%s' has %s customers, %s orders and %s profiles, each in a column family. Try:\n", db,
      WithCommas(given.rows), WithCommas(given.rows - given.rows / kRowsPerChange),
      WithCommas(given.rows)));
  for (const Example& example : kExamples) {
    output.Write(absl::StrFormat(
        "\n  cairn build --db=%s --cf=%s --out=%s.%s --spec=\"%s\"\n  cairn query %s.%s %s\n", db,
        example.column_family, db, example.name, example.spec, db, example.name, example.query));
  }
  RETURN_IF_ERROR(output.Flush());
  return kGood;
}

}  // namespace

void AddDemoCommand(CLI::App* app, Action* action) {
  auto given = std::make_shared<DemoOptions>();
  CLI::App* command = app->add_subcommand(
      "demo", "Creates a database of customers, orders and JSON profiles to experiment with");
  command->add_option("DIR", given->directory, "The directory; it must not contain a database")
      ->required();
  command->add_option("--rows", given->rows, "Rows of each column family")
      ->type_name("N")
      ->check(CLI::Range(uint64_t{0}, uint64_t{4'000'000'000}))
      ->capture_default_str();
  command->add_option("--seed", given->seed, "The same seed gives the same rows")
      ->type_name("N")
      ->check(Count())
      ->capture_default_str();
  command->callback([given, action] { *action = [given] { return RunDemo(*given); }; });
}

}  // namespace cairn::tools
