#include "engine/log/write_batch_reader.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "rocksdb/write_batch.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(write_batch_reader_test)
namespace {

// Builds the bytes of a write batch record by record, as described in RocksDB's db/write_batch.cc,
// including records that only its internals write.
class BatchBytes {
 public:
  BatchBytes& Put(uint32_t family, const std::string& key, const std::string& value) {
    ++count_;
    return Tag(0x05).Number(family).Bytes(key).Bytes(value);
  }
  BatchBytes& Delete(uint32_t family, const std::string& key) {
    ++count_;
    return Tag(0x04).Number(family).Bytes(key);
  }
  BatchBytes& SingleDelete(uint32_t family, const std::string& key) {
    ++count_;
    return Tag(0x08).Number(family).Bytes(key);
  }
  BatchBytes& Merge(uint32_t family, const std::string& key, const std::string& operand) {
    ++count_;
    return Tag(0x06).Number(family).Bytes(key).Bytes(operand);
  }
  BatchBytes& DeleteRange(uint32_t family, const std::string& lower, const std::string& upper) {
    ++count_;
    return Tag(0x0E).Number(family).Bytes(lower).Bytes(upper);
  }
  BatchBytes& PutBlobIndex(uint32_t family, const std::string& key, const std::string& index) {
    ++count_;
    return Tag(0x10).Number(family).Bytes(key).Bytes(index);
  }
  BatchBytes& PutEntity(uint32_t family, const std::string& key, const std::string& entity) {
    ++count_;
    return Tag(0x17).Number(family).Bytes(key).Bytes(entity);
  }
  BatchBytes& LogData(const std::string& data) { return Tag(0x03).Bytes(data); }
  BatchBytes& Noop() { return Tag(0x0D); }
  BatchBytes& BeginPrepare() { return Tag(0x09); }
  BatchBytes& EndPrepare(const std::string& name) { return Tag(0x0A).Bytes(name); }
  BatchBytes& Commit(const std::string& name) { return Tag(0x0B).Bytes(name); }
  BatchBytes& Rollback(const std::string& name) { return Tag(0x0C).Bytes(name); }
  BatchBytes& BeginPersistedPrepare() { return Tag(0x12); }
  BatchBytes& BeginUnprepare() { return Tag(0x13); }

  rocksdb::WriteBatch batch() const {
    std::string bytes(8, '\0');
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(count_ >> (8 * i)));
    return rocksdb::WriteBatch(bytes + records_);
  }

 private:
  BatchBytes& Tag(char tag) {
    records_.push_back(tag);
    return *this;
  }
  BatchBytes& Number(uint32_t number) {
    BOOST_REQUIRE(number < 128);
    return Tag(static_cast<char>(number));
  }
  BatchBytes& Bytes(const std::string& bytes) {
    Number(static_cast<uint32_t>(bytes.size()));
    records_ += bytes;
    return *this;
  }

  uint32_t count_ = 0;
  std::string records_;
};

std::string Text(const RowChanges& changes) {
  std::string text;
  for (size_t i = 0; i < changes.size(); ++i) {
    const RowChange change = changes[i];
    text += text.empty() ? "" : " ";
    text += "peDLR"[static_cast<size_t>(change.kind)];
    text += ":" + std::string(change.key);
    if (change.kind != RowChangeKind::kPutEntity && !change.value.empty()) {
      text += "=" + std::string(change.value);
    }
  }
  return text;
}

const std::string kEntity(
    "\x01\x01\x01"
    "c"
    "\x01"
    "v");

struct Reading {
  explicit Reading(const std::vector<uint32_t>& families,
                   WriteBatchReader::FindPrepared find = nullptr,
                   KeyOrder order = KeyOrder::kBytewise)
      : changes(families.size()), reader(Followed(families, order), std::move(find)) {}

  static std::vector<FollowedFamily> Followed(const std::vector<uint32_t>& families,
                                              KeyOrder order) {
    std::vector<FollowedFamily> followed;
    for (const uint32_t id : families) followed.push_back({id, order});
    return followed;
  }

  // Returns the number of sequence numbers that the batch takes.
  uint64_t Read(const BatchBytes& bytes) {
    return RequireOk(reader.Read(bytes.batch(), absl::MakeSpan(changes)));
  }
  absl::Status Error(const BatchBytes& bytes) {
    return reader.Read(bytes.batch(), absl::MakeSpan(changes)).status();
  }

  std::vector<RowChanges> changes;
  WriteBatchReader reader;
};

BOOST_AUTO_TEST_CASE(reads_every_kind_of_record) {
  Reading reading({0});
  BOOST_TEST(reading.Read(BatchBytes()
                              .Put(0, "a", "1")
                              .LogData("not a row")
                              .Delete(0, "b")
                              .SingleDelete(0, "c")
                              .Noop()
                              .Merge(0, "d", "operand")
                              .DeleteRange(0, "e", "f")
                              .PutBlobIndex(0, "g", "where it is")
                              .PutEntity(0, "h", kEntity)) == 7u);
  BOOST_TEST(Text(reading.changes[0]) == "p:a=1 D:b D:c L:d R:e=f L:g e:h");
}

BOOST_AUTO_TEST_CASE(groups_changes_by_column_family_and_passes_over_others) {
  Reading reading({7, 0, 3});
  BOOST_TEST(reading.Read(BatchBytes()
                              .Put(0, "a", "1")
                              .Put(7, "b", "2")
                              .Put(100, "c", "3")
                              .Put(3, "d", "4")
                              .Delete(7, "e")) == 5u);
  BOOST_TEST(Text(reading.changes[0]) == "p:b=2 D:e");
  BOOST_TEST(Text(reading.changes[1]) == "p:a=1");
  BOOST_TEST(Text(reading.changes[2]) == "p:d=4");
}

BOOST_AUTO_TEST_CASE(an_empty_batch_takes_nothing) {
  Reading reading({0});
  BOOST_TEST(reading.Read(BatchBytes()) == 0u);
  BOOST_TEST(reading.Read(BatchBytes().LogData("mark")) == 0u);
  BOOST_TEST(reading.changes[0].empty());
}

BOOST_AUTO_TEST_CASE(prepared_changes_count_when_they_are_committed) {
  Reading reading({0, 1});
  BOOST_TEST(reading.Read(BatchBytes()
                              .BeginPrepare()
                              .Put(0, "a", "1")
                              .Put(1, "b", "2")
                              .Put(9, "elsewhere", "")
                              .EndPrepare("x")) == 0u);
  BOOST_TEST(reading.Read(BatchBytes().BeginPrepare().Put(0, "c", "3").EndPrepare("y")) == 0u);
  BOOST_TEST(reading.Read(BatchBytes().Put(0, "a", "between")) == 1u);
  BOOST_TEST(Text(reading.changes[0]) == "p:a=between");
  BOOST_TEST(reading.Read(BatchBytes().Commit("x")) == 3u);
  BOOST_TEST(Text(reading.changes[0]) == "p:a=between p:a=1");
  BOOST_TEST(Text(reading.changes[1]) == "p:b=2");
  BOOST_TEST(reading.Read(BatchBytes().Rollback("y")) == 0u);
  BOOST_TEST(reading.changes[0].size() == 2u);
  BOOST_TEST(!reading.reader.TakePrepared("y").has_value());
}

BOOST_AUTO_TEST_CASE(batches_that_were_logged_together_may_mix_all_that) {
  Reading reading({0});
  BOOST_TEST(reading.Read(BatchBytes()
                              .Put(0, "a", "1")
                              .BeginPrepare()
                              .Put(0, "b", "2")
                              .Put(0, "c", "3")
                              .EndPrepare("x")
                              .Put(0, "d", "4")
                              .BeginPrepare()
                              .EndPrepare("empty")
                              .Put(0, "at commit time", "5")
                              .Commit("x")
                              .Commit("empty")
                              .Delete(0, "b")) == 6u);
  BOOST_TEST(Text(reading.changes[0]) == "p:a=1 p:d=4 p:at commit time=5 p:b=2 p:c=3 D:b");
}

BOOST_AUTO_TEST_CASE(asks_for_a_transaction_that_was_prepared_before) {
  Reading reading({0}, [](std::string_view name) -> absl::StatusOr<PreparedTransaction> {
    if (name != "x") return absl::NotFoundError("no such transaction");
    PreparedTransaction found;
    found.count = 2;
    found.changes.resize(1);
    found.changes[0].Put("from", "before");
    return found;
  });
  BOOST_TEST(reading.Read(BatchBytes().Commit("x").Put(0, "a", "1")) == 3u);
  BOOST_TEST(Text(reading.changes[0]) == "p:from=before p:a=1");
  BOOST_TEST(absl::IsNotFound(reading.Error(BatchBytes().Commit("z"))));

  Reading alone({0});
  const absl::Status s = alone.Error(BatchBytes().Commit("the one"));
  BOOST_TEST(absl::IsFailedPrecondition(s));
  BOOST_TEST(s.ToString().find("'the one'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(takes_only_what_is_wanted_of_a_batch) {
  Reading reading({0});
  const auto batch =
      BatchBytes().Put(0, "a", "11").Put(1, "b", "12").Put(0, "c", "13").Put(0, "d", "14").batch();
  const auto count =
      RequireOk(reading.reader.Read(batch, 11, 11, 13, absl::MakeSpan(reading.changes)));
  BOOST_TEST(count == 4u);
  BOOST_TEST(Text(reading.changes[0]) == "p:c=13");
}

BOOST_AUTO_TEST_CASE(takes_a_transaction_as_a_whole_or_not_at_all) {
  const auto prepare =
      BatchBytes().BeginPrepare().Put(0, "a", "1").Put(0, "b", "2").EndPrepare("x");
  const auto commit = BatchBytes().Commit("x").batch();
  const auto read_between = [&](SequenceNumber after, SequenceNumber until) {
    Reading reading({0});
    reading.Read(prepare);
    const auto count =
        reading.reader.Read(commit, 11, after, until, absl::MakeSpan(reading.changes));
    if (!count.ok()) return std::string(absl::StatusCodeToString(count.status().code()));
    BOOST_TEST(*count == 2u);
    return Text(reading.changes[0]);
  };
  BOOST_TEST(read_between(10, 12) == "p:a=1 p:b=2");
  BOOST_TEST(read_between(12, 20) == "");
  BOOST_TEST(read_between(2, 10) == "");
  BOOST_TEST(read_between(11, 20) == "FAILED_PRECONDITION");
  BOOST_TEST(read_between(2, 11) == "FAILED_PRECONDITION");
}

BOOST_AUTO_TEST_CASE(refuses_transactions_that_are_written_before_they_commit) {
  Reading reading({0});
  for (const auto& bytes : {BatchBytes().BeginPersistedPrepare().Put(0, "a", "1").EndPrepare("x"),
                            BatchBytes().BeginUnprepare().Put(0, "a", "1").EndPrepare("x")}) {
    const absl::Status s = reading.Error(bytes);
    BOOST_TEST(absl::IsUnimplemented(s), s.ToString());
  }
  BOOST_TEST(reading.changes[0].empty());
}

BOOST_AUTO_TEST_CASE(refuses_batches_that_are_damaged) {
  Reading reading({0});
  const std::string good = BatchBytes().Put(0, "a", "1").PutEntity(0, "b", kEntity).batch().Data();
  for (size_t size = 0; size < good.size(); ++size) {
    const rocksdb::WriteBatch batch(good.substr(0, size));
    const auto count = reading.reader.Read(batch, absl::MakeSpan(reading.changes));
    BOOST_TEST(absl::IsDataLoss(count.status()), count.status().ToString());
  }
  BOOST_TEST(absl::IsDataLoss(reading.Error(BatchBytes().BeginPrepare().Put(0, "a", "1"))));
  BOOST_TEST(absl::IsDataLoss(reading.Error(BatchBytes().PutEntity(0, "a", "\x01\x09"))));
  BOOST_TEST(reading.Read(BatchBytes().Put(0, "still", "works")) == 1u);
}

// RocksDB applies only the part of such a batch before the range, whichever family the range is of.
BOOST_AUTO_TEST_CASE(rejects_followed_rows_after_an_inverted_range) {
  for (const uint32_t family : {0u, 5u}) {
    BOOST_TEST_CONTEXT("range of family " << family) {
      WriteBatchReader reader({FollowedFamily{}});
      std::vector<RowChanges> changes(1);
      BatchBytes batch;
      batch.Put(0, "a", "1").DeleteRange(family, "z", "p").Put(0, "b", "2");
      BOOST_TEST(
          absl::IsFailedPrecondition(reader.Read(batch.batch(), absl::MakeSpan(changes)).status()));
      // Changes that are not read, and rows before the range, are right.
      changes = std::vector<RowChanges>(1);
      BOOST_TEST(RequireOk(reader.Read(batch.batch(), 10, 12, 20, absl::MakeSpan(changes))) == 3u);
      BOOST_TEST(RequireOk(reader.Read(batch.batch(), 10, 9, 10, absl::MakeSpan(changes))) == 3u);
    }
  }
  // RocksDB's order decides.
  for (const bool ascends : {false, true}) {
    for (const uint32_t family : {0u, 5u}) {
      const auto order_of = [](uint32_t id) {
        BOOST_TEST(id == 5u);
        return KeyOrder::kReverseBytewise;
      };
      WriteBatchReader reader({{0, KeyOrder::kReverseBytewise}}, nullptr, order_of);
      std::vector<RowChanges> changes(1);
      BatchBytes batch;
      batch.DeleteRange(family, ascends ? "p" : "z", ascends ? "z" : "p").Put(0, "b", "2");
      const absl::Status read = reader.Read(batch.batch(), absl::MakeSpan(changes)).status();
      BOOST_TEST(absl::IsFailedPrecondition(read) == ascends);
      if (ascends) continue;
      RequireOk(read);
      if (family != 0) continue;
      // The keys after "p" up to and including "z".
      BOOST_TEST((changes[0][0].key == std::string("p\0", 2)));
      BOOST_TEST((changes[0][0].value == std::string("z\0", 2)));
    }
  }
  // An inverted range matters only if a followed row comes after it.
  WriteBatchReader reader({FollowedFamily{}});
  std::vector<RowChanges> changes(1);
  BatchBytes batch;
  batch.Put(0, "a", "1").DeleteRange(5, "z", "p").Put(5, "b", "2");
  BOOST_TEST(RequireOk(reader.Read(batch.batch(), absl::MakeSpan(changes))) == 3u);
}

// RocksDB may assign the number of the last record again unless a flush keeps that record.
BOOST_AUTO_TEST_CASE(tells_the_family_of_the_last_record_that_a_flush_keeps) {
  const auto last_of = [](const BatchBytes& batch) {
    WriteBatchReader reader({FollowedFamily{}});
    std::vector<RowChanges> changes(1);
    RequireOk(reader.Read(batch.batch(), absl::MakeSpan(changes)));
    return reader.last_kept_family();
  };
  BOOST_TEST((last_of(BatchBytes()) == std::nullopt));
  BOOST_TEST((last_of(BatchBytes().Put(0, "a", "1").Put(7, "b", "2")) == 7u));
  BOOST_TEST((last_of(BatchBytes().Put(7, "b", "2").Delete(0, "a").LogData("x")) == 0u));
  BOOST_TEST((last_of(BatchBytes().Put(7, "b", "2").SingleDelete(7, "b")) == std::nullopt));
  BOOST_TEST((last_of(BatchBytes().Put(7, "b", "2").DeleteRange(7, "c", "c")) == std::nullopt));
  BOOST_TEST((last_of(BatchBytes().SingleDelete(7, "b").DeleteRange(3, "c", "d")) == 3u));
  BatchBytes transaction;
  transaction.BeginPrepare().Put(7, "b", "2").EndPrepare("t").Put(0, "a", "1").Commit("t");
  BOOST_TEST((last_of(transaction) == 7u));
}

BOOST_AUTO_TEST_CASE(needs_a_place_for_every_column_family) {
  Reading reading({0, 1});
  reading.changes.pop_back();
  BOOST_TEST(absl::IsInvalidArgument(reading.Error(BatchBytes())));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
