// An offline build: two indexes of a checkpoint in one pass over its rows, then batches of queries.
// The database itself may be in use during the build.
//   offline_build DIRECTORY
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/indexed_db.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/rocksdb_status.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "rocksdb/db.h"
#include "rocksdb/utilities/checkpoint.h"

namespace {

constexpr int kPeople = 10000;

// A database of people "name,age,city", and a checkpoint of it.
absl::Status MakeCheckpoint(const std::string& path, const std::string& checkpoint_path) {
  rocksdb::Options options;
  options.create_if_missing = true;
  // rocksdb::DB::Open works too, but its last parameter differs between versions.
  const auto opened = cairn::IndexedDB::Open(options, path);
  if (!opened.ok()) return opened.status();
  rocksdb::DB* const db = opened->get();
  rocksdb::Status status;
  const char* const cities[] = {"Lisbon", "Oslo", "Quito", "Riga"};
  for (int i = 0; i < kPeople && status.ok(); ++i) {
    const std::string number = std::to_string(i);
    status = db->Put({}, "person-" + number,
                     "name" + number + "," + std::to_string(i % 90) + "," + cities[i % 4]);
  }
  rocksdb::Checkpoint* checkpoint = nullptr;
  if (status.ok()) status = rocksdb::Checkpoint::Create(db, &checkpoint);
  const std::unique_ptr<rocksdb::Checkpoint> owner(checkpoint);
  if (status.ok()) status = checkpoint->CreateCheckpoint(checkpoint_path);
  return cairn::FromRocksDb(status, "making a checkpoint");
}

absl::Status Run(const std::string& directory) {
  const std::string checkpoint = directory + "/checkpoint";
  if (absl::Status s = MakeCheckpoint(directory + "/people.db", checkpoint); !s.ok()) return s;

  const auto by_age = cairn::IndexSpec::Parse("age = value.field(',', 1):u8");
  const auto by_city = cairn::IndexSpec::Parse("city = value.field(',', 2):text");
  if (!by_age.ok()) return by_age.status();
  if (!by_city.ok()) return by_city.status();
  const auto source = cairn::SnapshotSource::FromDirectory(checkpoint);
  if (!source.ok()) return source.status();

  const std::vector<cairn::BuildTarget> targets = {{*by_age, directory + "/age.index"},
                                                   {*by_city, directory + "/city.index"}};
  cairn::BuildOptions options;
  options.memory_budget = uint64_t{64} << 20;  // more is sorted through files
  const auto reports = cairn::SecondaryIndex::BuildAll(**source, targets, options);
  if (!reports.ok()) return reports.status();
  for (size_t i = 0; i < targets.size(); ++i) {
    std::cout << targets[i].spec.name << ": " << (*reports)[i].entries << " entries of "
              << (*reports)[i].rows << " rows\n";
  }

  // From here on, this process and others need only the index's directory.
  const auto city = cairn::SecondaryIndex::Open(targets[1].directory);
  if (!city.ok()) return city.status();
  const std::vector<std::string_view> wanted = {"Oslo", "Paris", "Riga"};
  cairn::FindResult rows;
  if (absl::Status s = (*city)->Find(wanted, &rows); !s.ok()) return s;
  cairn::StringList people;
  if (absl::Status s = (*city)->PrimaryKeys(rows, &people); !s.ok()) return s;
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::cout << wanted[i] << ": " << rows[i].size() << " people";
    if (!rows[i].empty()) std::cout << ", first " << people[rows.offsets[i]];
    std::cout << "\n";
  }
  return rows.row_ids.size() == kPeople / 2 ? absl::OkStatus()
                                            : absl::InternalError("wrong number of people");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: offline_build DIRECTORY\n", 2;
  std::filesystem::create_directories(argv[1]);
  const absl::Status status = Run(argv[1]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
