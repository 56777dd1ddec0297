#include "engine/log/unlogged_writes.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cairn/types.h"
#include "engine/log/log_tail.h"
#include "rocksdb/write_batch.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(unlogged_writes_test)
namespace {

constexpr SequenceNumber kNone = std::numeric_limits<SequenceNumber>::max();

std::shared_ptr<const rocksdb::WriteBatch> BatchOf(int rows) {
  auto batch = std::make_shared<rocksdb::WriteBatch>();
  for (int i = 0; i < rows; ++i) RequireOk(batch->Put(absl::StrCat("k", i), "v"));
  return batch;
}

std::string FirstsOf(const UnloggedWrites& writes, SequenceNumber after, SequenceNumber until,
                     size_t bytes = SIZE_MAX) {
  std::vector<UnloggedBatch> batches;
  writes.Get(after, until, bytes, &batches);
  std::string text;
  for (const UnloggedBatch& batch : batches) absl::StrAppend(&text, batch.first, " ");
  return text;
}

BOOST_AUTO_TEST_CASE(batches_are_found_by_their_numbers) {
  UnloggedWrites writes;
  writes.DropUpTo(0);
  std::optional<UnloggedWrites::Write> late, early, failed;
  late.emplace(&writes, BatchOf(1));
  early.emplace(&writes, BatchOf(3));
  failed.emplace(&writes, BatchOf(2));
  late->Succeed(4);
  BOOST_TEST(writes.any_in_progress());
  BOOST_TEST(writes.Next(0) == 4u);
  BOOST_TEST(FirstsOf(writes, 0, 10) == "");
  early->Succeed(1);
  failed.reset();
  BOOST_TEST(!writes.any_in_progress());
  BOOST_TEST(FirstsOf(writes, 0, 10) == "1 4 ");
  BOOST_TEST(FirstsOf(writes, 0, 10, 1) == "1 ");
  BOOST_TEST(FirstsOf(writes, 0, 3) == "1 ");
  BOOST_TEST(FirstsOf(writes, 1, 10) == "1 4 ");  // from within a batch
  BOOST_TEST(writes.Next(1) == 2u);
  BOOST_TEST(writes.Next(4) == kNone);
  writes.NoteIngested(5);
  writes.NoteIngested(7);
  BOOST_TEST(writes.Next(4) == 5u);
  BOOST_TEST(writes.PassIngested(4, 10) == 5u);
  BOOST_TEST(writes.PassIngested(4, 4) == 4u);
  BOOST_TEST(writes.PassAll(0, 10) == 5u);
  BOOST_TEST(writes.PassAll(0, 2) == 2u);
  writes.DropUpTo(2);  // the batch has 3, too
  BOOST_TEST(FirstsOf(writes, 2, 10) == "1 4 ");
  writes.DropUpTo(3);
  BOOST_TEST(FirstsOf(writes, 3, 10) == "4 ");
  BOOST_TEST(FirstsOf(writes, 2, 10) == "");
  BOOST_TEST(writes.PassAll(3, 10) == 5u);
}

BOOST_AUTO_TEST_CASE(batches_are_kept_only_for_members_and_holds) {
  UnloggedWrites writes;  // without members
  const auto write = [&](SequenceNumber first) {
    UnloggedWrites::Write(&writes, BatchOf(1)).Succeed(first);
  };
  write(1);
  BOOST_TEST(writes.Next(0) == kNone);
  {
    const UnloggedWrites::Hold hold(&writes, 1 << 20);
    write(2);
    writes.DropUpTo(2);
    BOOST_TEST(FirstsOf(writes, 1, 10) == "2 ");
  }
  BOOST_TEST(writes.Next(1) == kNone);
  const UnloggedWrites::Hold small(&writes, 1000), large(&writes, 1 << 20);
  writes.DropUpTo(kNone);
  for (SequenceNumber i = 3; i < 20; ++i) write(i);
  BOOST_TEST(small.exceeded());
  BOOST_TEST(!large.exceeded());
  BOOST_TEST(writes.PassAll(2, 100) == 19u);
}

BOOST_AUTO_TEST_CASE(a_missing_number_is_awaited_while_a_write_is_in_progress) {
  UnloggedWrites writes;
  writes.DropUpTo(0);
  writes.Await(1);  // returns at once
  writes.AwaitAll();
  auto stalled = std::make_unique<UnloggedWrites::Write>(&writes, BatchOf(1));
  writes.Await(1);  // gives up
  std::thread writer([&] {
    absl::SleepFor(absl::Milliseconds(50));
    stalled->Succeed(1);
  });
  writes.AwaitAll();
  BOOST_TEST(writes.Next(0) == 1u);
  writer.join();
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
