#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "index/machine/prefetch.h"

namespace cairn {

// A set of numbers in [0, universe), such as the positions of removed entries in a run. Immutable;
// every const method is safe from any number of threads. A copy shares the memory.
//
// The set is a bitmap in pages. A set and the set that With makes from it share all unchanged
// pages. Pages that no version uses any more are reused. So for each page, a writer that makes one
// set after the other takes memory only for the versions in use.
class PositionSet {
 public:
  PositionSet() = default;  // empty, with an empty universe
  explicit PositionSet(uint64_t universe) : universe_(universe) {}

  uint64_t universe() const { return universe_; }
  uint64_t size() const { return state_ == nullptr ? 0 : state_->ranks.back(); }
  bool empty() const { return size() == 0; }

  // Requires p < universe().
  bool Contains(uint64_t p) const {
    return state_ != nullptr && (Word(p / 64) >> (p % 64) & 1) != 0;
  }
  // Prefetches the cache line that Contains reads; does nothing if p is universe().
  void Prefetch(uint64_t p) const {
    if (state_ == nullptr || p >= universe_) return;
    const uint64_t* page = state_->pages[p / 64 >> state_->log2_page_words];
    if (page != nullptr) {
      cairn::Prefetch(page + (p / 64 & ((uint64_t{1} << state_->log2_page_words) - 1)));
    }
  }
  // The number of members less than `p`; requires p <= universe().
  uint64_t Rank(uint64_t p) const;
  // The number of members in [begin, end).
  uint64_t Count(uint64_t begin, uint64_t end) const {
    return state_ == nullptr || begin >= end ? 0 : CountBetween(begin, end);
  }

  // The first member, or the first non-member, in [begin, end); `end` if there is none.
  uint64_t FirstMember(uint64_t begin, uint64_t end) const { return First<false>(begin, end); }
  uint64_t FirstAbsent(uint64_t begin, uint64_t end) const { return First<true>(begin, end); }
  // One more than the last member, or the last non-member, in [begin, end); `begin` if there is
  // none.
  uint64_t BehindLastMember(uint64_t begin, uint64_t end) const {
    return Behind<false>(begin, end);
  }
  uint64_t BehindLastAbsent(uint64_t begin, uint64_t end) const { return Behind<true>(begin, end); }

  // Returns this set with the numbers in `more` added and those in `less` removed, in any order; no
  // number may be in both. Members in `more` and non-members in `less` have no effect. Only one
  // thread at a time may call With on sets that were made from one another. A call
  // copies the pages that change, and 12 bytes for each page of the set. Each further call on the
  // same set copies all its pages. Throws std::bad_alloc.
  PositionSet With(absl::Span<const Position> more, absl::Span<const Position> less) const;
  // Returns the same set in its own memory, so that another thread may call With on it. Throws
  // std::bad_alloc.
  PositionSet Copy() const;

  // The number of positions per page. The last page may have fewer.
  uint64_t page_size() const { return uint64_t{64} << log2_page_words(); }
  size_t page_count() const { return (universe_ + page_size() - 1) / page_size(); }
  // The number of members in page `i`.
  uint64_t page_members(size_t i) const {
    return state_ == nullptr ? 0 : state_->ranks[i + 1] - state_->ranks[i];
  }

  // Bytes of this set and of all sets that share pages with it, together.
  uint64_t memory_bytes() const;

 private:
  class Pages;
  class Lease;

  struct State {
    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State();

    int log2_page_words = 0;
    std::vector<const uint64_t*> pages;  // null: no member
    std::vector<uint32_t> ranks;         // members before each page; at the end, all members
    std::shared_ptr<Pages> memory;
    Lease* lease = nullptr;  // keeps this version's pages from being reused
  };

  uint64_t Word(uint64_t i) const {
    const uint64_t* page = state_->pages[i >> state_->log2_page_words];
    return page == nullptr ? 0 : page[i & ((uint64_t{1} << state_->log2_page_words) - 1)];
  }
  uint64_t CountBetween(uint64_t begin, uint64_t end) const;
  template <bool kAbsent>
  uint64_t First(uint64_t begin, uint64_t end) const;
  // Returns the start of the first page at or after `from` that has a member, or a non-member if
  // kAbsent. `from` must be the start of a page. The result may be greater than `end`.
  template <bool kAbsent>
  uint64_t SkipPages(uint64_t from, uint64_t end) const;
  template <bool kAbsent>
  uint64_t Behind(uint64_t begin, uint64_t end) const;

  static std::shared_ptr<State> NewState(uint64_t universe);
  int log2_page_words() const;

  uint64_t universe_ = 0;
  std::shared_ptr<const State> state_;  // null: empty
};

template <bool kAbsent>
uint64_t PositionSet::First(uint64_t begin, uint64_t end) const {
  if (state_ == nullptr) return kAbsent ? std::min(begin, end) : end;
  for (uint64_t from = begin; from < end;) {
    const uint64_t word = (kAbsent ? ~Word(from / 64) : Word(from / 64)) >> (from % 64);
    if (word != 0) return std::min(end, from + static_cast<uint64_t>(std::countr_zero(word)));
    from = (from / 64 + 1) * 64;
    if (from % page_size() == 0) from = SkipPages<kAbsent>(from, end);
  }
  return end;
}

template <bool kAbsent>
uint64_t PositionSet::SkipPages(uint64_t from, uint64_t end) const {
  const uint64_t page_bits = page_size();
  while (from < end && page_members(from / page_bits) == (kAbsent ? page_bits : 0)) {
    from += page_bits;
  }
  return from;
}

template <bool kAbsent>
uint64_t PositionSet::Behind(uint64_t begin, uint64_t end) const {
  if (state_ == nullptr) return kAbsent ? std::max(begin, end) : begin;
  for (uint64_t to = end; to > begin; to = (to - 1) / 64 * 64) {
    const uint64_t last = to - 1;
    const uint64_t word = (kAbsent ? ~Word(last / 64) : Word(last / 64)) << (63 - last % 64);
    if (word != 0) return std::max(begin, to - static_cast<uint64_t>(std::countl_zero(word)));
  }
  return begin;
}

}  // namespace cairn
