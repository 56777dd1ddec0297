#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cairn/query.h"
#include "cairn/types.h"
#include "index/machine/mutex.h"

namespace cairn {

// Rows and all the keys that each of them has, column-wise; a row without keys has been deleted.
struct KeysOfRows {
  explicit KeysOfRows(PhysicalType kind = PhysicalType::kU32) : keys(kind) {}

  std::vector<RowId> rows;  // each once
  // Row i's keys are keys[key_ends[i - 1]] … keys[key_ends[i] - 1], ascending.
  std::vector<uint64_t> key_ends;
  EncodedKeys keys;

  uint64_t KeysBegin(size_t i) const { return i == 0 ? 0 : key_ends[i - 1]; }
  uint64_t Keys(size_t i) const { return key_ends[i] - KeysBegin(i); }  // how many it has
  void EndRow(RowId row) {
    rows.push_back(row);
    key_ends.push_back(keys.size());
  }
};

// What the updates of an index changed, one after the other, for those who want the difference of
// two versions at the price of what came between them. A version has its place in the log; what
// came behind a place is kept for as long as the place is, and is gone with the last one before it.
//
// So the log has what is in use: updates that no place parts are made one, in which a row has its
// last state only, whenever the later is as large as the earlier one (LSM-trees), so that a row is
// copied a logarithmic number of times and takes room once between any two places.
//
// One thread appends; places and their differences are safe from any number of threads.
class ChangeLog {
 public:
  // Where a version stands.
  class Place {
   public:
    Place(std::shared_ptr<ChangeLog> log, uint64_t number)
        : log_(std::move(log)), number_(number) {}
    ~Place() { log_->Release(number_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // Whether both are of one log, and the other is this one or behind it.
    bool IsUpTo(const Place& other) const { return log_ == other.log_ && number_ <= other.number_; }
    // Bytes of what is kept, for all places.
    uint64_t memory_bytes() const { return log_->memory_bytes(); }

   private:
    friend class ChangeLog;

    const std::shared_ptr<ChangeLog> log_;
    const uint64_t number_;
  };

  // A log without changes, and the first place in it. Throws std::bad_alloc, as what follows does.
  static std::shared_ptr<const Place> Begin();

  // The place behind `last`, the last one, and what changes from there to it: rows in any order.
  static std::shared_ptr<const Place> Append(const Place& last, KeysOfRows changes);
  // Takes back what came behind `last`: nobody may ask for it any more.
  static void Truncate(const Place& last) { last.log_->RemoveBehind(last.number_); }

  // The rows that changed from one place to another that it is up to, by row id, as they were then;
  // and perhaps rows that changed and are what they were. Takes time for these alone.
  static KeysOfRows Between(const Place& since, const Place& until, PhysicalType kind);
  // At most so many rows; takes no time.
  static uint64_t MostRowsBetween(const Place& since, const Place& until);

 private:
  // What changed on the way to a place.
  struct Step {
    uint64_t number;  // the place's
    bool is_place;    // and there is somebody at it; the first one always is
    uint64_t bytes = 0;
    std::shared_ptr<const KeysOfRows> changes;
  };

  ChangeLog() = default;

  void Release(uint64_t number);
  void RemoveBehind(uint64_t number);
  void MakeOneOfSmall();
  uint64_t memory_bytes() const;
  std::vector<Step>::iterator Find(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::shared_ptr<const KeysOfRows>> StepsBetween(uint64_t since, uint64_t until);

  mutable Mutex mutex_;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  // Ascending by number; the first one's changes are null.
  std::vector<Step> steps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
