#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "index/build/sorted_yield.h"
#include "index/build/spill_file.h"
#include "index/machine/status_macros.h"
#include "index/sort/sort_entry.h"

namespace cairn {

// Reads a run in a spill file, with one block in memory at a time.
template <typename Key>
class RunCursor {
 public:
  RunCursor(const SpillFile* file, const RunOf* run) : file_(file), run_(run) {}

  bool exhausted() const { return exhausted_; }
  // The current entry; requires !exhausted(). A key of bytes is valid until the next block is read.
  const Key& key() const { return keys_[i_]; }
  RowId row_id() const { return row_ids_[i_]; }
  // Whether the next call of Next reads a block or ends the run.
  bool at_block_end() const { return i_ + 1 >= keys_.size(); }

  // Moves to the next entry; the first call moves to the first one.
  absl::Status Next() {
    if (++i_ < keys_.size()) return absl::OkStatus();
    if (next_block_ == run_->run.blocks.size()) {
      exhausted_ = true;
      return absl::OkStatus();
    }
    return ReadBlock();
  }

 private:
  absl::Status ReadBlock() {
    const SpillBlock& block = run_->run.blocks[next_block_++];
    block_.resize(block.bytes);
    RETURN_IF_ERROR(file_->Read(block, block_.data()));
    if (next_block_ < run_->run.blocks.size()) file_->WillRead(run_->run.blocks[next_block_]);
    const size_t n = block.entries;
    keys_.resize(n);
    row_ids_.resize(n);
    i_ = 0;
    if constexpr (std::is_same_v<Key, std::string_view>) {
      const char* at = block_.data();
      for (size_t i = 0; i < n; ++i) {
        keys_[i] = KeyRecord::GetKey(at);
        row_ids_[i] = KeyRecord::GetRowId(at);
        at += KeyRecord::Bytes(keys_[i].size());
      }
    } else {
      std::memcpy(keys_.data(), block_.data(), n * sizeof(Key));
      std::memcpy(row_ids_.data(), block_.data() + n * sizeof(Key), n * sizeof(RowId));
    }
    for (RowId& row_id : row_ids_) row_id += run_->base;
    return absl::OkStatus();
  }

  const SpillFile* file_;
  const RunOf* run_;
  size_t next_block_ = 0;
  size_t i_ = SIZE_MAX;  // so that the first Next wraps to 0
  bool exhausted_ = false;
  std::vector<char> block_;
  std::vector<Key> keys_;
  std::vector<RowId> row_ids_;
};

// Merges cursors by (key, row id) with a tree of losers (Knuth, TAOCP 3, 5.4.1), with one
// comparison per level and entry. Inner node v >= 1 of the tree holds the loser of the match at v,
// and node 0 the overall winner. Leaf i is node i + number of cursors. A cursor has key(), row_id()
// and exhausted().
template <typename Cursor>
class LoserTree {
 public:
  // All cursors must be at their first entry; there must be at least one cursor.
  explicit LoserTree(std::vector<Cursor>* cursors)
      : cursors_(*cursors), nodes_(cursors->size(), kNobody) {
    for (size_t i = 0; i < cursors_.size(); ++i) {
      size_t winner = i;
      size_t node = (i + cursors_.size()) / 2;
      for (; node > 0 && nodes_[node] != kNobody; node /= 2) {
        if (Less(nodes_[node], winner)) std::swap(nodes_[node], winner);
      }
      nodes_[node] = winner;  // waits for its opponent, or has won
    }
  }

  // The cursor of the lowest entry; exhausted if all are.
  Cursor& winner() { return cursors_[nodes_[0]]; }

  // Restores the order after the winner has moved.
  void Replay() {
    size_t winner = nodes_[0];
    for (size_t node = (winner + cursors_.size()) / 2; node > 0; node /= 2) {
      if (Less(nodes_[node], winner)) std::swap(nodes_[node], winner);
    }
    nodes_[0] = winner;
  }

 private:
  static constexpr size_t kNobody = SIZE_MAX;

  bool Less(size_t a, size_t b) const {
    const Cursor& x = cursors_[a];
    const Cursor& y = cursors_[b];
    if (x.exhausted() || y.exhausted()) return !x.exhausted();
    if constexpr (std::is_same_v<std::decay_t<decltype(x.key())>, std::string_view>) {
      const int order = x.key().compare(y.key());
      return order != 0 ? order < 0 : x.row_id() < y.row_id();
    } else {
      return x.key() < y.key() || (x.key() == y.key() && x.row_id() < y.row_id());
    }
  }

  std::vector<Cursor>& cursors_;
  std::vector<size_t> nodes_;
};

// Appends the entries of all runs, ascending, to `batch`, which it flushes. Takes the memory of one
// block per run. Returns the first error of reading or of the sink, or Cancelled.
template <typename Key>
absl::Status MergeRuns(const SpillFile& file, absl::Span<const RunOf> runs,
                       EntryBatch<Key>* batch) {
  std::vector<RunCursor<Key>> cursors;
  for (const RunOf& run : runs) cursors.emplace_back(&file, &run);
  for (RunCursor<Key>& cursor : cursors) {
    RETURN_IF_ERROR(cursor.Next());
  }
  if (!cursors.empty()) {
    LoserTree<RunCursor<Key>> tree(&cursors);
    while (!tree.winner().exhausted()) {
      RunCursor<Key>& cursor = tree.winner();
      batch->Add(cursor.key(), cursor.row_id());
      if (cursor.at_block_end()) {
        // The batch's keys of bytes point into the block that is about to be replaced.
        if (std::is_same_v<Key, std::string_view>) batch->Flush();
        if (!batch->status().ok()) return batch->status();
      }
      RETURN_IF_ERROR(cursor.Next());
      tree.Replay();
    }
  }
  batch->Flush();
  return batch->status();
}

}  // namespace cairn
