#include "engine/delta_files/delta_restore.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/delta_files/delta_file.h"
#include "test/engine/delta/delta_history.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(delta_restore_test)
namespace {

// An index whose base is in memory and whose delta files are on disk.
template <typename Key>
struct Index {
  explicit Index(const HistoryShape& shape, size_t base_rows)
      : history(shape), rows(history.Rows(base_rows)), writer(MakeWriter(rows)) {}

  // Writes one more delta file and publishes.
  void Seal(const RowUpdates& updates, SequenceNumber sequence) {
    auto file = RequireOk(WriteDelta(directory.get(), updates, manifest.sequence, sequence));
    manifest.files.push_back(std::move(file));
    manifest.sequence = sequence;
    Publish();
  }
  void Publish() { RequireOk(directory->Publish(manifest)); }
  absl::StatusOr<std::unique_ptr<DeltaWriter>> Restore() {
    const auto read = RequireOk(ReadManifest(directory->path()));
    const std::shared_ptr<const Delta> delta = writer->delta();
    return RestoreDelta(directory->path(), read, delta->base_run, delta->base_rows,
                        VerifyLevel::kFull, 2);
  }

  TemporaryDirectory parent;
  std::unique_ptr<IndexDirectory> directory = *IndexDirectory::OpenForWrite(parent / "index");
  Manifest manifest;
  History<Key> history;
  ModelRows<Key> rows;
  std::unique_ptr<DeltaWriter> writer;
};

// Seals after every few batches, either the batches themselves or their net effect, and restores.
template <typename Key>
void CheckHistory(const HistoryShape& shape, size_t base_rows, int batches) {
  Index<Key> index(shape, base_rows);
  const PhysicalType kind = kKindOf<PhysicalOf<Key>>;
  std::shared_ptr<const Delta> base = index.writer->delta(), sealed = base;
  SequenceNumber base_sequence = 0;
  size_t base_files = 0;
  for (int batch = 1; batch <= batches; ++batch) {
    const RowUpdates updates = index.history.Updates(1 + index.history() % 60, &index.rows);
    const std::shared_ptr<const Delta> now = Apply(index.writer.get(), updates);
    const uint64_t sequence = index.manifest.sequence + updates.rows();
    switch (index.history() % 8) {
      case 0: {  // all files since the last time as one
        index.manifest.files.resize(base_files);
        index.manifest.sequence = base_sequence;
        index.Seal(UpdatesOf(DeltaChanges::Since(*base, now), kind), sequence);
        break;
      }
      case 1:
        index.Seal(UpdatesOf(DeltaChanges::Since(*sealed, now), kind), sequence);
        break;
      default:
        index.Seal(updates, sequence);
    }
    sealed = now;
    if (batch % 10 != 0) continue;
    auto restored = RequireOk(index.Restore());
    CheckVersion(*restored->delta(), index.rows, &index.history);
    const DeltaStats before = now->Stats(), after = restored->delta()->Stats();
    BOOST_TEST(after.rows == before.rows);
    BOOST_TEST(after.removed_entries == before.removed_entries);
    BOOST_TEST(after.added_entries == before.added_entries);
    BOOST_TEST(after.dead_rows == before.dead_rows);
    // It continues from there.
    index.writer = std::move(restored);
    base = sealed = index.writer->delta();
    base_files = index.manifest.files.size();
    base_sequence = index.manifest.sequence;
  }
}

BOOST_AUTO_TEST_CASE(what_was_sealed_is_restored_for_keys_of_every_kind) {
  CheckHistory<uint32_t>({.salt = 1}, 500, 40);
  CheckHistory<uint64_t>({.salt = 2, .max_keys_a_row = 4}, 500, 40);
  CheckHistory<std::string>({.salt = 3, .max_keys_a_row = 3}, 500, 40);
  CheckHistory<std::string>({.salt = 4}, 0, 20);
}

BOOST_AUTO_TEST_CASE(an_index_without_delta_files_restores_to_its_base) {
  Index<uint64_t> index({.salt = 5}, 100);
  index.Publish();
  const auto restored = RequireOk(index.Restore());
  BOOST_TEST(restored->delta()->empty());
}

BOOST_AUTO_TEST_CASE(files_out_of_their_places_are_data_loss) {
  Index<uint32_t> index({.salt = 6}, 100);
  for (SequenceNumber sequence : {10, 20}) {
    index.Seal(index.history.Updates(20, &index.rows), sequence);
  }
  const Manifest sound = index.manifest;
  const auto refuse = [&](const char* says) {
    index.Publish();
    const absl::Status status = index.Restore().status();
    BOOST_CHECK_MESSAGE(absl::IsDataLoss(status), status);
    BOOST_TEST(status.message().find(says) != std::string::npos, status);
    index.manifest = sound;
  };
  std::swap(index.manifest.files[0], index.manifest.files[1]);
  refuse("from sequence number 0 to 10, expected one within 20 to 20");
  index.manifest.sequence = 15;
  refuse("from sequence number 10 to 20, expected one within 10 to 15");

  // Publishing verifies files first, so the wrong one is written after it.
  index.Publish();
  const auto path = [&](size_t i) { return index.directory->PathOf(sound.files[i].name); };
  const std::string first = ReadFile(path(0));
  WriteFile(path(0), ReadFile(path(1)));
  BOOST_CHECK(absl::IsDataLoss(index.Restore().status()));
  std::filesystem::remove(path(0));
  BOOST_CHECK(absl::IsNotFound(index.Restore().status()));
  WriteFile(path(0), first);
  BOOST_CHECK(index.Restore().ok());
}

BOOST_AUTO_TEST_CASE(keys_of_another_kind_are_data_loss) {
  Index<uint32_t> index({.salt = 7}, 100);
  RowUpdates updates(PhysicalType::kU64);
  updates.keys.AppendU64(1);
  updates.EndRow("a");
  index.Seal(updates, 10);
  const absl::Status status = index.Restore().status();
  BOOST_CHECK_MESSAGE(absl::IsDataLoss(status), status);
  BOOST_TEST(status.message().find("has u64 keys, its base has u32 keys") != std::string::npos);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
