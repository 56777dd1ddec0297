#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/delta/position_set.h"
#include "index/machine/prefetch.h"

namespace cairn {

// A measure of any range of a run's entries that are not removed. Its cost depends neither on the
// range's length nor on the number of removed entries. It does not subtract floats or extremes.
//
// The run is divided into the pages of the set of removed positions. Each page has the total of its
// remaining entries, and a tree adds up the totals. A page with removed entries also has the
// stretches of remaining entries between them, the total of each stretch, and a tree over these.
//
// A range is added up from five pieces: the tree of its first page, the tree over the pages
// between, the tree of its last page, and a partial stretch at each end. The run's own structure
// measures the partial stretches.
//
// A version's masked run is built from that of an earlier version. Pages with an unchanged number
// of removed entries are reused: a removed entry of a run with values never comes back
// (DeltaWriter). So the cost is linear in the pages plus the removed entries of changed pages.
// Immutable; thread-safe.
template <typename Measure>
class MaskedRun {
 public:
  using Value = typename Measure::Value;
  using Structure = typename Measure::Structure;
  using Sequence = typename Measure::Sequence;

  // `before` belongs to the same run, or is null. Throws std::bad_alloc.
  MaskedRun(const Structure& structure, const PositionSet& removed, const MaskedRun* before)
      : page_size_(removed.page_size()), pages_(removed.page_count()) {
    std::vector<Value> totals(pages_.size());
    std::vector<size_t> clean;
    std::vector<Position> begin, end;
    for (size_t i = 0; i < pages_.size(); ++i) {
      const uint64_t first = i * page_size_;
      const uint64_t behind = std::min(first + page_size_, removed.universe());
      const uint64_t members = removed.page_members(i);
      if (before != nullptr && before->Members(i) == members) {
        pages_[i] = before->pages_[i];
        before->totals_.Add(i, i + 1, &totals[i]);
      } else if (members == 0) {
        clean.push_back(i);
        begin.push_back(static_cast<Position>(first));
        end.push_back(static_cast<Position>(behind));
      } else {
        pages_[i] = std::make_shared<const Page>(structure, removed, first, behind, members);
        pages_[i]->tree.Add(0, pages_[i]->tree.size(), &totals[i]);
      }
    }
    std::vector<Value> values(clean.size());
    Measure::Of(structure, begin, end, absl::MakeSpan(values));
    for (size_t i = 0; i < clean.size(); ++i) totals[clean[i]] = values[i];
    totals_ = Sequence(std::move(totals));
  }

  // Adds the total of the remaining entries in [begin, end) to *value, except for at most two
  // stretches, for which it calls rest(begin, end).
  template <typename Rest>
  void Add(uint64_t begin, uint64_t end, Value* value, Rest rest) const {
    if (begin >= end) return;
    const uint64_t first = begin / page_size_, last = (end - 1) / page_size_;
    if (first == last) {
      AddInPage(first, begin, end, value, rest);
      return;
    }
    AddInPage(first, begin, (first + 1) * page_size_, value, rest);
    totals_.Add(first + 1, last, value);
    AddInPage(last, last * page_size_, end, value, rest);
  }

  // Prefetch the memory that Add reads at position `p`, in three steps. Each step reads the memory
  // that the previous one prefetched.
  void PrefetchPage(uint64_t p) const { Prefetch(pages_[p / page_size_].get()); }
  void PrefetchWord(uint64_t p) const {
    const Page* const page = pages_[p / page_size_].get();
    if (page != nullptr) Prefetch(page->first_of_word.data() + p % page_size_ / kWord);
  }
  void PrefetchStretch(uint64_t p) const {
    const Page* const page = pages_[p / page_size_].get();
    if (page == nullptr) return;
    const uint32_t stretch = page->first_of_word[p % page_size_ / kWord];
    Prefetch(page->begin.data() + stretch);
    Prefetch(page->end.data() + stretch);
    page->tree.Prefetch(stretch);
  }

  uint64_t memory_bytes() const {
    uint64_t bytes = pages_.capacity() * sizeof pages_[0] + totals_.memory_bytes();
    for (const auto& page : pages_) {
      if (page != nullptr) bytes += sizeof(Page) + page->memory_bytes();
    }
    return bytes;
  }

 private:
  static constexpr uint64_t kWord = 64;

  // A page that has removed entries.
  struct Page {
    Page(const Structure& structure, const PositionSet& removed, uint64_t first, uint64_t behind,
         uint64_t in_all)
        : members(in_all) {
      for (uint64_t at = removed.FirstAbsent(first, behind); at < behind;) {
        const uint64_t stop = removed.FirstMember(at, behind);
        begin.push_back(static_cast<Position>(at));
        end.push_back(static_cast<Position>(stop));
        at = removed.FirstAbsent(stop, behind);
      }
      for (uint64_t word = first; word < behind; word += kWord) {
        uint32_t at = first_of_word.empty() ? 0 : first_of_word.back();
        while (at < end.size() && end[at] <= word) ++at;
        first_of_word.push_back(at);
      }
      std::vector<Value> values(begin.size());
      Measure::Of(structure, begin, end, absl::MakeSpan(values));
      tree = Sequence(std::move(values));
    }
    uint64_t memory_bytes() const {
      return (begin.capacity() + end.capacity() + first_of_word.capacity()) * sizeof(Position) +
             tree.memory_bytes();
    }

    uint64_t members;                  // number of removed entries
    std::vector<Position> begin, end;  // the remaining stretches
    // For each kWord entries, the first stretch that ends after their beginning.
    std::vector<uint32_t> first_of_word;
    Sequence tree;  // over the total of each stretch
  };

  uint64_t Members(size_t page) const {
    return pages_[page] == nullptr ? 0 : pages_[page]->members;
  }

  // The same for entries of one page.
  template <typename Rest>
  void AddInPage(size_t i, uint64_t begin, uint64_t end, Value* value, Rest rest) const {
    const Page* const page = pages_[i].get();
    if (page == nullptr) {
      rest(begin, end);
      return;
    }
    // `first` is the first stretch that ends after position `begin`. `behind` follows the last one
    // that begins before `end`.
    const size_t stretches = page->begin.size();
    size_t first = page->first_of_word[(begin - i * page_size_) / kWord];
    while (first < stretches && page->end[first] <= begin) ++first;
    size_t behind = page->first_of_word[(end - 1 - i * page_size_) / kWord];
    while (behind < stretches && page->begin[behind] < end) ++behind;
    if (first >= behind) return;
    if (page->begin[first] < begin || page->end[first] > end) {
      rest(std::max<uint64_t>(begin, page->begin[first]),
           std::min<uint64_t>(end, page->end[first]));
      ++first;
    }
    if (first < behind && page->end[behind - 1] > end) {
      --behind;
      rest(uint64_t{page->begin[behind]}, end);
    }
    page->tree.Add(first, behind, value);
  }

  uint64_t page_size_;
  std::vector<std::shared_ptr<const Page>> pages_;  // null: no entry is removed
  Sequence totals_;                                 // the total of each page
};

}  // namespace cairn
