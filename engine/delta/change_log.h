#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cairn/query.h"
#include "cairn/types.h"
#include "index/machine/mutex.h"

namespace cairn {

// Rows and all keys of each row, column-wise. A row without keys has been deleted.
struct KeysOfRows {
  explicit KeysOfRows(PhysicalType kind = PhysicalType::kU32) : keys(kind) {}

  std::vector<RowId> rows;  // each once
  // Row i's keys are keys[key_ends[i - 1]] … keys[key_ends[i] - 1], ascending.
  std::vector<uint64_t> key_ends;
  EncodedKeys keys;

  uint64_t KeysBegin(size_t i) const { return i == 0 ? 0 : key_ends[i - 1]; }
  uint64_t Keys(size_t i) const { return key_ends[i] - KeysBegin(i); }  // of row i
  void EndRow(RowId row) {
    rows.push_back(row);
    key_ends.push_back(keys.size());
  }
};

// The changes of an index's updates, in order. The log yields the difference of two versions in
// time proportional to the changes between them. Each version has a place in the log. The changes
// after a place are kept until that place and all places before it are released.
//
// The log keeps only the changes that a place needs. Adjacent steps with no place between them are
// merged once the later step is at least as large as the earlier one, as in an LSM-tree. The merged
// step has the last state of each row. So a row is copied a logarithmic number of times, and
// between any two places it is stored once.
//
// Only one thread may append. Places and their differences are safe from any number of threads.
class ChangeLog {
 public:
  // The position of a version in the log.
  class Place {
   public:
    Place(std::shared_ptr<ChangeLog> log, uint64_t number)
        : log_(std::move(log)), number_(number) {}
    ~Place() { log_->Release(number_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // Returns whether both places are in one log and `other` is this place or a later one.
    bool IsUpTo(const Place& other) const { return log_ == other.log_ && number_ <= other.number_; }
    // Bytes of all changes in the log, for all places together.
    uint64_t memory_bytes() const { return log_->memory_bytes(); }

   private:
    friend class ChangeLog;

    const std::shared_ptr<ChangeLog> log_;
    const uint64_t number_;
  };

  // Creates a log without changes and returns its first place. Throws std::bad_alloc, as do the
  // functions below.
  static std::shared_ptr<const Place> Begin();

  // Appends `changes` after `last`, which must be the last place, and returns the new last place.
  // The rows may be in any order.
  static std::shared_ptr<const Place> Append(const Place& last, KeysOfRows changes);
  // Removes the changes after `last`. No caller may use the places after `last` any more.
  static void Truncate(const Place& last) { last.log_->RemoveBehind(last.number_); }

  // Returns the rows that changed between `since` and a later place `until`, by row id, as they are
  // at `until`. The result may include rows that changed and then changed back. The time is
  // proportional to these changes.
  static KeysOfRows Between(const Place& since, const Place& until, PhysicalType kind);
  // Upper bound of the number of rows that Between returns; reads no changes.
  static uint64_t MostRowsBetween(const Place& since, const Place& until);

 private:
  // The changes between the previous step and a place.
  struct Step {
    uint64_t number;  // of the place
    bool is_place;    // whether the place is in use; always true for the first step
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
