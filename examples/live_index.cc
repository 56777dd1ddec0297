// A live index in an application: finds orders by customer and by total while they are written.
//   live_index DIRECTORY
#include <filesystem>
#include <iostream>
#include <string>

#include "cairn/indexed_db.h"

namespace {

// Creates an index, unless an earlier run has: indexes are stored with the database.
absl::Status EnsureIndex(cairn::IndexedDB* db, const std::string& name, const std::string& keys) {
  const absl::Status created = db->CreateIndex(name + " = " + keys);
  if (!created.ok() && !absl::IsAlreadyExists(created)) return created;
  return db->WaitUntilReady(name);
}

absl::Status Run(const std::string& directory) {
  rocksdb::Options options;
  options.create_if_missing = true;
  auto opened = cairn::IndexedDB::Open(options, directory + "/orders.db");
  if (!opened.ok()) return opened.status();
  cairn::IndexedDB& db = **opened;  // a rocksdb::DB

  absl::Status status = EnsureIndex(&db, "customer", "value.json('/customer'):text");
  status.Update(EnsureIndex(&db, "total", "value.json('/total'):f64"));
  if (!status.ok()) return status;

  // Writes use RocksDB's API. The next query sees them.
  rocksdb::WriteBatch batch;
  rocksdb::Status written = batch.Put("order-1", R"({"customer": "ana", "total": 12.5})");
  if (written.ok()) written = batch.Put("order-2", R"({"customer": "bo", "total": 99})");
  if (written.ok()) written = batch.Put("order-3", R"({"customer": "ana", "total": 250.75})");
  if (written.ok()) written = db.Write({}, &batch);
  if (!written.ok()) return cairn::FromRocksDb(written, "writing orders");

  // The primary keys of several customers' orders, in one batch.
  const auto orders = db.Lookup("customer", {"ana", "bo", "eva"});
  if (!orders.ok()) return orders.status();
  std::cout << "ana has " << orders->of(0).size() << " orders, bo " << orders->of(1).size()
            << ", eva " << orders->of(2).size() << "\n";

  // Rows of a range of keys, in the order of the keys, page by page.
  cairn::LookupOptions page;
  page.limit = 1;
  do {
    const auto rows = db.LookupRows("total", cairn::KeyQuery::AtLeast(50), page);
    if (!rows.ok()) return rows.status();
    for (const cairn::FoundRow& row : *rows) {
      std::cout << row.primary_key << ": " << row.value << "\n";
    }
    page.after = rows->cursor();
  } while (!page.after.empty());

  // Keys of the wrong kind are rejected with a message.
  std::cout << db.Lookup("total", "a lot").status().message() << "\n";
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: live_index DIRECTORY\n", 2;
  std::filesystem::create_directories(argv[1]);
  const absl::Status status = Run(argv[1]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
