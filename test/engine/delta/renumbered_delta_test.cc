#include "engine/delta/renumbered_delta.h"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/delta/delta_writer.h"
#include "test/engine/delta/delta_history.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"

// DeltaWriter::Renumber.
namespace cairn {
BOOST_AUTO_TEST_SUITE(renumbered_delta_test)
namespace {

using Sharing = DeltaWriter::Sharing;

// A writer that is replaced from time to time, like that of an IndexWriter, with a stored version
// and a pinned version.
template <typename Key>
void CheckHistory(uint64_t salt, size_t steps) {
  History<Key> history({.salt = salt, .primary_keys = 300, .max_keys_a_row = 3});
  ModelRows<Key> rows = history.Rows(60);
  const ModelRows<Key> base_rows = rows;
  std::unique_ptr<DeltaWriter> writer = MakeWriter(rows);
  std::shared_ptr<const Delta> stored = writer->delta(), pinned = stored;
  ModelRows<Key> stored_rows = rows, pinned_rows = rows;
  for (size_t step = 0; step < steps; ++step) {
    switch (history() % 8) {
      case 0: {  // stored updates lead from one stored state to the next
        const auto updates =
            UpdatesOf(DeltaChanges::Since(*stored, writer->delta()), kKindOf<PhysicalOf<Key>>);
        const auto other = MakeWriter(stored_rows);
        CheckVersion<Key>(*Apply(other.get(), updates), rows, &history);
        stored = writer->delta();
        stored_rows = rows;
        break;
      }
      case 1:
        CheckVersion(*pinned, pinned_rows, &history);
        pinned = writer->delta();
        pinned_rows = rows;
        break;
      case 2:
      case 3: {
        const Sharing sharing = history() % 2 == 0 ? Sharing::kPages : Sharing::kNone;
        const auto before = writer->delta();
        auto next = RequireOk(writer->Renumber(*stored, *before, sharing));
        if (sharing == Sharing::kNone && history() % 2 == 0) {  // the old one may continue
          ModelRows<Key> other = rows;
          CheckVersion(*Apply(writer.get(), history.Updates(30, &other)), other, &history);
        }
        const DeltaStats stats = next.writer->delta()->Stats();
        CheckVersion(*next.writer->delta(), rows, &history);
        BOOST_TEST(stats.dead_tuples == 0u);
        BOOST_TEST(stats.dead_new_rows <= before->Stats().dead_new_rows);
        BOOST_TEST(stats.rows == before->Stats().rows);
        const bool follows =
            RequireOk(DeltaChanges::MostRowsSince(*next.since, *next.writer->delta())) <=
            RequireOk(DeltaChanges::MostRowsSince(*stored, *before));
        BOOST_TEST(follows);
        if (stored == before) BOOST_TEST(stats.dead_new_rows == 0u);
        writer = std::move(next.writer);
        stored = next.since;
        break;
      }
      default:
        CheckVersion(*Apply(writer.get(), history.Updates(1 + history() % 40, &rows)), rows,
                     &history);
    }
  }
}

RowUpdates Queue(uint64_t from, uint64_t to, uint64_t gone_from, uint64_t gone_to) {
  RowUpdates updates(PhysicalType::kU64);
  for (uint64_t i = from; i < to; ++i) {
    AppendRow<uint64_t>("job" + std::to_string(1'000'000 + i), {i % 10}, &updates);
  }
  for (uint64_t i = gone_from; i < gone_to; ++i) {
    AppendRow<uint64_t>("job" + std::to_string(1'000'000 + i), {}, &updates);
  }
  return updates;
}

}  // namespace

BOOST_AUTO_TEST_CASE(renumbered_versions_agree_with_a_model_u32) {
  CheckHistory<uint32_t>(1, FewerSanitized(80, 3, 3));
}
BOOST_AUTO_TEST_CASE(renumbered_versions_agree_with_a_model_u64) {
  CheckHistory<uint64_t>(2, FewerSanitized(80, 3, 3));
}
BOOST_AUTO_TEST_CASE(renumbered_versions_agree_with_a_model_bytes) {
  CheckHistory<std::string>(3, FewerSanitized(80, 3, 3));
}

BOOST_AUTO_TEST_CASE(rows_that_came_and_went_take_no_memory) {
  std::unique_ptr<DeltaWriter> writer = MakeWriter(ModelRows<uint64_t>{{"a", {1}}});
  std::shared_ptr<const Delta> stored = writer->delta();
  RequireOk(writer->Apply(Queue(0, 100, 0, 0)));
  const uint64_t few = writer->delta()->Stats().bytes;
  for (uint64_t i = 100; i < 20'100; i += 100) {
    RequireOk(writer->Apply(Queue(i, i + 100, i - 100, i)));
  }
  const DeltaStats before = writer->delta()->Stats();
  BOOST_TEST(before.dead_new_rows == 20'000u);
  BOOST_TEST(before.bytes > 1'000'000u);
  auto next = RequireOk(writer->Renumber(*stored, *writer->delta(), Sharing::kPages));
  writer = std::move(next.writer);
  const DeltaStats after = writer->delta()->Stats();
  BOOST_TEST(after.dead_new_rows == 0u);  // none of them was stored
  BOOST_TEST(after.new_rows == 100u);
  BOOST_TEST(after.bytes < 2 * few);
  // Stored ones are known to be deleted until the deletion is stored, too.
  stored = writer->delta();
  RequireOk(writer->Apply(Queue(20'100, 20'150, 20'000, 20'100)));
  next = RequireOk(writer->Renumber(*stored, *writer->delta(), Sharing::kPages));
  BOOST_TEST(next.writer->delta()->Stats().dead_new_rows == 100u);
  BOOST_TEST(RequireOk(DeltaChanges::Since(*next.since, next.writer->delta())).rows().size() ==
             150u);
  next = RequireOk(
      next.writer->Renumber(*next.writer->delta(), *next.writer->delta(), Sharing::kPages));
  BOOST_TEST(next.writer->delta()->Stats().dead_new_rows == 0u);
}

BOOST_AUTO_TEST_CASE(versions_that_do_not_follow_one_another_are_refused) {
  const auto writer = MakeWriter(ModelRows<uint64_t>{{"a", {1}}});
  const auto first = writer->delta();
  const auto second = Apply(writer.get(), Queue(0, 1, 0, 0));
  BOOST_TEST(absl::IsInvalidArgument(writer->Renumber(*second, *first, Sharing::kNone).status()));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
