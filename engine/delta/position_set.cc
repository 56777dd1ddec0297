#include "engine/delta/position_set.h"
#include "index/machine/mutex.h"

#include <cstring>
#include <utility>

namespace cairn {
namespace {

// std::popcount, but inline even if the instruction set lacks it, as the default target does.
uint64_t PopCount(uint64_t word) {
  word -= word >> 1 & 0x5555555555555555;
  word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
  word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
  return word * 0x0101010101010101 >> 56;
}

uint64_t CountInPlain(const uint64_t* words, uint64_t size) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < size; ++i) count += PopCount(words[i]);
  return count;
}

#if defined(__x86_64__)
[[gnu::target("popcnt")]] uint64_t CountInFast(const uint64_t* words, uint64_t size) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < size; ++i) count += static_cast<uint64_t>(std::popcount(words[i]));
  return count;
}
const bool kHasPopCount = __builtin_cpu_supports("popcnt");
#endif

// Returns the number of bits set in `size` words. A rank counts half a page, so this uses the
// popcnt instruction if the processor has it.
uint64_t CountIn(const uint64_t* words, uint64_t size) {
#if defined(__x86_64__)
  if (kHasPopCount) return CountInFast(words, size);
#endif
  return CountInPlain(words, size);
}

// Page sizes are chosen for commits that change this many scattered positions. Such a commit copies
// one page per position, and kBytesOfPage for every page of the set.
constexpr uint64_t kScatteredChanges = 100;
constexpr uint64_t kBytesOfPage = sizeof(uint64_t*) + sizeof(uint32_t);
constexpr int kMinLog2PageWords = 6;   // 512 bytes
constexpr int kMaxLog2PageWords = 12;  // 32 KiB

int ChooseLog2PageWords(uint64_t universe) {
  const auto bytes_copied = [&](int log2_words) {
    const uint64_t page_bytes = sizeof(uint64_t) << log2_words;
    return kScatteredChanges * page_bytes + universe / (8 * page_bytes) * kBytesOfPage;
  };
  int log2_words = kMinLog2PageWords;
  while (log2_words < kMaxLog2PageWords &&
         bytes_copied(log2_words + 1) < bytes_copied(log2_words)) {
    ++log2_words;
  }
  return log2_words;
}

}  // namespace

// The pages and the leases of all sets that were made from one another. Only predecessors of the
// set that replaces a page still use it, back to the set that the page was made for. The page is
// kept in the list of the last such predecessor in use. When that one is released, the page moves
// to the one before if that uses it, too. So each set in use keeps its own pages, however many sets
// follow.
class PositionSet::Pages {
 public:
  explicit Pages(size_t page_words) : page_words_(page_words) {}

  // Returns a page of unspecified contents for the set with this number.
  uint64_t* Take(uint64_t number) {
    const MutexLock lock(&mutex_);
    if (free_ == nullptr) {
      all_.push_back(std::make_unique_for_overwrite<uint64_t[]>(kHeaderWords + page_words_));
      free_ = reinterpret_cast<Header*>(all_.back().get());
      free_->next = nullptr;
    }
    Header* const page = std::exchange(free_, free_->next);
    page->number = number;
    return reinterpret_cast<uint64_t*>(page) + kHeaderWords;
  }
  uint64_t memory_bytes() {
    const MutexLock lock(&mutex_);
    return all_.size() * (kHeaderWords + page_words_) * sizeof(uint64_t);
  }

 private:
  friend class PositionSet::Lease;

  struct Header {
    uint64_t number;  // of the set that the page was made for
    Header* next;     // in a list
  };
  static constexpr size_t kHeaderWords = sizeof(Header) / sizeof(uint64_t);
  static Header* HeaderOf(uint64_t* page) { return reinterpret_cast<Header*>(page - kHeaderWords); }
  static void Push(Header* page, Header** list) {
    page->next = *list;
    *list = page;
  }

  const size_t page_words_;
  Mutex mutex_;
  std::vector<std::unique_ptr<uint64_t[]>> all_ ABSL_GUARDED_BY(mutex_);
  Header* free_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Lease* last_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the last lease in use
};

// A set's hold on its pages.
class PositionSet::Lease {
 public:
  // For the first set that has pages in `memory`.
  explicit Lease(std::shared_ptr<Pages> memory) : Lease(std::move(memory), 1) {}
  // For the set after `before`, which must not have a next one yet.
  static Lease* After(const Lease& before) { return new Lease(before.memory_, before.number_ + 1); }

  uint64_t* Take() { return memory_->Take(number_); }
  bool has_next() const { return has_next_; }
  // Records that the next set exists and does not use the pages `replaced` of this set.
  void SetNext(const std::vector<uint64_t*>& replaced) {
    has_next_ = true;
    const MutexLock lock(&memory_->mutex_);
    for (uint64_t* const page : replaced) Pages::Push(Pages::HeaderOf(page), &replaced_);
  }
  static void Release(Lease* lease) {
    if (lease == nullptr) return;
    const std::shared_ptr<Pages> memory = lease->memory_;
    const MutexLock lock(&memory->mutex_);
    Lease* const before = lease->before_;
    while (lease->replaced_ != nullptr) {
      Pages::Header* const page = std::exchange(lease->replaced_, lease->replaced_->next);
      const bool is_seen = before != nullptr && page->number <= before->number_;
      Pages::Push(page, is_seen ? &before->replaced_ : &memory->free_);
    }
    if (before != nullptr) before->after_ = lease->after_;
    (lease->after_ != nullptr ? lease->after_->before_ : memory->last_) = before;
    delete lease;
  }

 private:
  Lease(std::shared_ptr<Pages> memory, uint64_t number)
      : memory_(std::move(memory)), number_(number) {
    const MutexLock lock(&memory_->mutex_);
    before_ = std::exchange(memory_->last_, this);
    if (before_ != nullptr) before_->after_ = this;
  }

  const std::shared_ptr<Pages> memory_;
  const uint64_t number_;
  bool has_next_ = false;
  // Guarded by the memory's mutex: the pages that no later set in use needs, and the neighboring
  // leases in use.
  Pages::Header* replaced_ = nullptr;
  Lease* before_ = nullptr;
  Lease* after_ = nullptr;
};

PositionSet::State::~State() {
  Lease::Release(lease);
}

std::shared_ptr<PositionSet::State> PositionSet::NewState(uint64_t universe) {
  auto state = std::make_shared<State>();
  state->log2_page_words = ChooseLog2PageWords(universe);
  const uint64_t page_bits = uint64_t{64} << state->log2_page_words;
  const size_t pages = (universe + page_bits - 1) / page_bits;
  state->pages.resize(pages);
  state->ranks.resize(pages + 1);
  state->memory = std::make_shared<Pages>(size_t{1} << state->log2_page_words);
  state->lease = new Lease(state->memory);
  return state;
}

int PositionSet::log2_page_words() const {
  return state_ != nullptr ? state_->log2_page_words : ChooseLog2PageWords(universe_);
}

uint64_t PositionSet::Rank(uint64_t p) const {
  if (state_ == nullptr) return 0;
  const uint64_t word = p / 64;
  const uint64_t page = word >> state_->log2_page_words;
  uint64_t rank = state_->ranks[page];
  if (page == state_->pages.size() || state_->pages[page] == nullptr) return rank;
  const uint64_t* const words = state_->pages[page];
  const uint64_t last = word & ((uint64_t{1} << state_->log2_page_words) - 1);
  rank += CountIn(words, last);
  const uint64_t below = (uint64_t{1} << (p % 64)) - 1;
  return rank + (below == 0 ? 0 : PopCount(words[last] & below));
}

uint64_t PositionSet::CountBetween(uint64_t begin, uint64_t end) const {
  const uint64_t first = begin / 64, last = (end - 1) / 64;
  // Each Rank reads half a page on average.
  if (last - first >= uint64_t{1} << state_->log2_page_words) return Rank(end) - Rank(begin);
  const uint64_t from_begin = ~uint64_t{0} << (begin % 64);
  const uint64_t to_end = ~uint64_t{0} >> (63 - (end - 1) % 64);
  if (first == last) return PopCount(Word(first) & from_begin & to_end);
  uint64_t count = PopCount(Word(first) & from_begin) + PopCount(Word(last) & to_end);
  for (uint64_t i = first + 1; i < last; ++i) count += PopCount(Word(i));
  return count;
}

PositionSet PositionSet::With(absl::Span<const Position> more,
                              absl::Span<const Position> less) const {
  if (more.empty() && less.empty()) return *this;
  const std::shared_ptr<State> next = NewState(universe_);
  const size_t page_words = size_t{1} << next->log2_page_words;
  const size_t page_bytes = page_words * sizeof(uint64_t);
  const bool shares = state_ != nullptr && !state_->lease->has_next();
  if (shares) {
    next->memory = state_->memory;
    Lease::Release(std::exchange(next->lease, nullptr));
    next->lease = Lease::After(*state_->lease);
    next->pages = state_->pages;
  }
  std::vector<uint64_t*> replaced;
  std::vector<uint64_t*> own(next->pages.size());  // the pages that may be written
  const auto own_page = [&](size_t page) {
    uint64_t* words = next->lease->Take();
    const uint64_t* old = state_ == nullptr ? nullptr : state_->pages[page];
    if (old == nullptr) {
      std::memset(words, 0, page_bytes);
    } else {
      std::memcpy(words, old, page_bytes);
      if (shares) replaced.push_back(const_cast<uint64_t*>(old));
    }
    next->pages[page] = own[page] = words;
    return words;
  };
  if (!shares && state_ != nullptr) {
    for (size_t page = 0; page < own.size(); ++page) {
      if (state_->pages[page] != nullptr) own_page(page);
    }
  }

  std::vector<uint32_t>& counts = next->ranks;  // of page i at i + 1, until they are summed up
  for (size_t page = 0; state_ != nullptr && page < own.size(); ++page) {
    counts[page + 1] = state_->ranks[page + 1] - state_->ranks[page];
  }
  const auto flip = [&](Position p, bool member) {
    const size_t page = p / 64 >> next->log2_page_words;
    const uint64_t bit = uint64_t{1} << (p % 64);
    const size_t word = p / 64 & (page_words - 1);
    const uint64_t* const now = next->pages[page];
    if ((now != nullptr && (now[word] & bit) != 0) == member) return;
    (own[page] != nullptr ? own[page] : own_page(page))[word] ^= bit;
    counts[page + 1] += member ? 1 : UINT32_MAX;
  };
  for (Position p : more) flip(p, true);
  for (Position p : less) flip(p, false);
  for (size_t page = 0; page < own.size(); ++page) counts[page + 1] += counts[page];

  if (shares) state_->lease->SetNext(replaced);
  PositionSet set(universe_);
  set.state_ = next;
  return set;
}

PositionSet PositionSet::Copy() const {
  PositionSet copy(universe_);
  if (state_ == nullptr) return copy;
  const std::shared_ptr<State> own = NewState(universe_);
  const size_t page_bytes = sizeof(uint64_t) << own->log2_page_words;
  own->ranks = state_->ranks;
  for (size_t page = 0; page < own->pages.size(); ++page) {
    if (page_members(page) == 0) continue;
    uint64_t* const words = own->lease->Take();
    std::memcpy(words, state_->pages[page], page_bytes);
    own->pages[page] = words;
  }
  copy.state_ = own;
  return copy;
}

uint64_t PositionSet::memory_bytes() const {
  if (state_ == nullptr) return 0;
  return state_->memory->memory_bytes() + state_->pages.size() * kBytesOfPage;
}

}  // namespace cairn
