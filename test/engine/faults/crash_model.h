#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/write_batch.h"

namespace cairn {

// Rows are "number,word" or only the number. An operand is a number that is added to the row's.
class AddOperator final : public rocksdb::AssociativeMergeOperator {
 public:
  static std::string Sum(const std::string& value, const std::string& operand) {
    const uint64_t sum = std::stoull(value) + std::stoull(operand);
    return absl::StrCat(sum % 1000, value.substr(std::min(value.find(','), value.size())));
  }
  bool Merge(const rocksdb::Slice& /*key*/, const rocksdb::Slice* value,
             const rocksdb::Slice& operand, std::string* merged,
             rocksdb::Logger* /*logger*/) const override {
    *merged = value == nullptr ? operand.ToString() : Sum(value->ToString(), operand.ToString());
    return true;
  }
  const char* Name() const override { return "Add"; }
};

// The rows of two column families. Each row of the second one has a unique word.
struct TwoFamilies {
  std::map<std::string, std::string> rows[2];

  bool HasDuplicate() const {
    std::set<std::string> words;
    for (const auto& [key, value] : rows[1]) {
      if (!words.insert(value.substr(value.find(','))).second) return true;
    }
    return false;
  }
  bool operator==(const TwoFamilies& other) const {
    return rows[0] == other.rows[0] && rows[1] == other.rows[1];
  }
};

// One call that writes, which can be applied to a database or to a model of it.
class WriteCall {
 public:
  enum class Kind { kPut, kDelete, kSingleDelete, kMerge, kDeleteRange };
  struct Update {
    Kind kind;
    size_t family;
    std::string key;
    std::string value;  // or the operand, or the end of the range
  };

  std::vector<Update> updates;  // none: a flush
  size_t flushed = 0;           // the column family
  bool batch = false;
  bool sync = false;
  bool unlogged = false;  // with WriteOptions::disableWAL

  rocksdb::Status MakeOf(rocksdb::DB* db,
                         const std::vector<rocksdb::ColumnFamilyHandle*>& families) const {
    if (updates.empty()) return db->Flush({}, families[flushed]);
    rocksdb::WriteOptions options;
    options.sync = sync;
    options.disableWAL = unlogged;
    if (!batch) return Apply(updates[0], db, options, families[updates[0].family]);
    rocksdb::WriteBatch all;
    for (const Update& update : updates) {
      BatchWriter writer{&all};
      RETURN_IF_ERROR(Apply(update, &writer, options, families[update.family]));
    }
    return db->Write(options, &all);
  }

  void MakeOf(TwoFamilies* model) const {
    for (const Update& update : updates) {
      auto& rows = model->rows[update.family];
      const auto row = rows.find(update.key);
      switch (update.kind) {
        case Kind::kPut:
          rows[update.key] = update.value;
          break;
        case Kind::kMerge:
          rows[update.key] =
              row == rows.end() ? update.value : AddOperator::Sum(row->second, update.value);
          break;
        case Kind::kDelete:
        case Kind::kSingleDelete:
          rows.erase(update.key);
          break;
        case Kind::kDeleteRange:
          rows.erase(rows.lower_bound(update.key), rows.lower_bound(update.value));
          break;
      }
    }
  }

  // Whether a flush may write none of its records to a table file: an empty range, or a single
  // deletion together with its row. If RocksDB recovers such a call last, it reuses its sequence
  // number. An index that was stored with this number is rebuilt.
  bool MayLeaveNothing() const {
    return std::any_of(updates.begin(), updates.end(), [](const Update& update) {
      return update.kind == Kind::kSingleDelete ||
             (update.kind == Kind::kDeleteRange && update.key == update.value);
    });
  }
  // Whether it would make a word of the second family occur twice.
  bool MakesDuplicate(const TwoFamilies& model) const {
    TwoFamilies next;
    next.rows[1] = model.rows[1];
    MakeOf(&next);
    return next.HasDuplicate();
  }

 private:
  // A batch with a database's methods.
  struct BatchWriter {
    using Options = rocksdb::WriteOptions;
    using Family = rocksdb::ColumnFamilyHandle*;
    rocksdb::WriteBatch* batch;
    rocksdb::Status Put(const Options&, Family f, const std::string& key,
                        const std::string& value) {
      return batch->Put(f, key, value);
    }
    rocksdb::Status Merge(const Options&, Family f, const std::string& key,
                          const std::string& operand) {
      return batch->Merge(f, key, operand);
    }
    rocksdb::Status Delete(const Options&, Family f, const std::string& key) {
      return batch->Delete(f, key);
    }
    rocksdb::Status SingleDelete(const Options&, Family f, const std::string& key) {
      return batch->SingleDelete(f, key);
    }
    rocksdb::Status DeleteRange(const Options&, Family f, const std::string& lower,
                                const std::string& upper) {
      return batch->DeleteRange(f, lower, upper);
    }
  };

  template <typename Writer>
  static rocksdb::Status Apply(const Update& update, Writer* writer,
                               const rocksdb::WriteOptions& options,
                               rocksdb::ColumnFamilyHandle* family) {
    switch (update.kind) {
      case Kind::kPut:
        return writer->Put(options, family, update.key, update.value);
      case Kind::kDelete:
        return writer->Delete(options, family, update.key);
      case Kind::kSingleDelete:
        return writer->SingleDelete(options, family, update.key);
      case Kind::kMerge:
        return writer->Merge(options, family, update.key, update.value);
      case Kind::kDeleteRange:
        return writer->DeleteRange(options, family, update.key, update.value);
    }
    return rocksdb::Status::InvalidArgument("no such update");
  }
};

// Random calls, the same ones for the same seed. `has_unlogged`: most calls of runs of up to 64 of
// them that write only to the first family have no log. The other family has a unique index, which
// could not be built if a crash lost a deletion.
class WriteStream {
 public:
  explicit WriteStream(uint64_t seed, bool has_unlogged = false)
      : seed_(seed), has_unlogged_(has_unlogged), random_(seed) {}

  WriteCall Next() {
    WriteCall call;
    const uint64_t what = random_() % 1000;
    if (what < 4) {
      call.flushed = random_() % 2;
      return call;
    }
    call.sync = random_() % 64 == 0;
    call.batch = what < 250;
    for (uint64_t left = call.batch ? 1 + random_() % 30 : 1; left > 0; --left) {
      call.updates.push_back(Update());
    }
    if (!has_unlogged_) return call;
    if (random_() % 64 == 0) in_unlogged_run_ = !in_unlogged_run_;
    call.unlogged = in_unlogged_run_ && std::all_of(call.updates.begin(), call.updates.end(),
                                                    [](const auto& u) { return u.family == 0; });
    call.sync &= !call.unlogged;
    return call;
  }

 private:
  using Kind = WriteCall::Kind;
  // Keys are few enough that they are written, deleted and written again.
  static constexpr uint64_t kKeys[] = {3000, 300};
  // Words of the second family: enough that most writes find an unused one.
  static constexpr uint64_t kUniqueWords = 2000;

  std::string Key(size_t family) { return absl::StrFormat("k%04d", random_() % kKeys[family]); }
  std::string Number() { return absl::StrCat(random_() % 1000); }

  WriteCall::Update Update() {
    const uint64_t what = random_() % 1000;
    const size_t family = random_() % 5 == 0 ? 1 : 0;
    const std::string key = Key(family);
    if (what < 120) return {Kind::kDelete, family, key, ""};
    if (what < 125) return {Kind::kDeleteRange, family, key, key.substr(0, 4) + "9"};
    // The result of a merge of a row with a unique index is unknown before the write.
    if (what < 250 && family == 0) return {Kind::kMerge, 0, key, Number()};
    // Single deletion requires that the key was put only once: these rows are separate.
    if (what < 300) return {Kind::kPut, 0, Single(singles_++), Number() + ",single"};
    if (what < 340 && deleted_singles_ < singles_) {
      return {Kind::kSingleDelete, 0, Single(deleted_singles_++), ""};
    }
    const uint64_t words = family == 0 ? 150 : kUniqueWords;
    return {Kind::kPut, family, key, absl::StrFormat("%s,w%d", Number(), random_() % words)};
  }
  std::string Single(uint64_t number) { return absl::StrFormat("s%d-%d", seed_, number); }

  const uint64_t seed_;
  const bool has_unlogged_;
  bool in_unlogged_run_ = true;
  std::mt19937_64 random_;
  uint64_t singles_ = 0;
  uint64_t deleted_singles_ = 0;
};

}  // namespace cairn
