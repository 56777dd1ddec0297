#include "engine/delta/position_set.h"
#include "index/machine/mutex.h"

#include <atomic>
#include <cstring>
#include <utility>

namespace cairn {
namespace {

// std::popcount, inline where the instruction set has none, as here by default.
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

// The bits that are set in so many words: half a page for a rank, and so by the processor's own
// instruction where it has one.
uint64_t CountIn(const uint64_t* words, uint64_t size) {
#if defined(__x86_64__)
  if (kHasPopCount) return CountInFast(words, size);
#endif
  return CountInPlain(words, size);
}

// A commit that changes so many scattered positions shall cost least: it copies a page for each,
// and what a set holds of every page, kBytesOfPage.
constexpr uint64_t kScatteredChanges = 100;
constexpr uint64_t kBytesOfPage = sizeof(uint64_t*) + sizeof(uint32_t);
constexpr int kLeastLog2PageWords = 6;  // 512 bytes
constexpr int kMostLog2PageWords = 12;  // 32 KiB

int ChooseLog2PageWords(uint64_t universe) {
  const auto bytes_copied = [&](int log2_words) {
    const uint64_t page_bytes = sizeof(uint64_t) << log2_words;
    return kScatteredChanges * page_bytes + universe / (8 * page_bytes) * kBytesOfPage;
  };
  int log2_words = kLeastLog2PageWords;
  while (log2_words < kMostLog2PageWords &&
         bytes_copied(log2_words + 1) < bytes_copied(log2_words)) {
    ++log2_words;
  }
  return log2_words;
}

}  // namespace

// The pages of all sets that come of one.
class PositionSet::Pages {
 public:
  explicit Pages(size_t page_words) : page_words_(page_words) {}

  // A page of unspecified contents.
  uint64_t* Take() {
    const MutexLock lock(&mutex_);
    if (free_.empty()) {
      free_.reserve(all_.size() + 1);  // so that Give need not allocate
      all_.push_back(std::make_unique_for_overwrite<uint64_t[]>(page_words_));
      return all_.back().get();
    }
    uint64_t* page = free_.back();
    free_.pop_back();
    return page;
  }
  void Give(const std::vector<uint64_t*>& pages) {
    const MutexLock lock(&mutex_);
    free_.insert(free_.end(), pages.begin(), pages.end());
  }
  uint64_t memory_bytes() {
    const MutexLock lock(&mutex_);
    return all_.size() * page_words_ * sizeof(uint64_t);
  }

 private:
  const size_t page_words_;
  Mutex mutex_;
  std::vector<std::unique_ptr<uint64_t[]>> all_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t*> free_ ABSL_GUARDED_BY(mutex_);
};

// A version's hold on its pages. A page that the next version replaced can be seen by this one and
// those before: it is free when all of them are gone, and so each version holds the next one's
// lease.
class PositionSet::Lease {
 public:
  explicit Lease(std::shared_ptr<Pages> memory) : memory_(std::move(memory)) {}

  bool has_next() const { return next_ != nullptr; }
  void SetNext(Lease* next, std::vector<uint64_t*> replaced) {
    replaced_ = std::move(replaced);
    next_ = next;
    next->users_.fetch_add(1, std::memory_order_relaxed);
  }
  // Ends one use of the lease and of those that end with it: a loop, as there may be many.
  static void Release(Lease* lease) {
    while (lease != nullptr && lease->users_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      lease->memory_->Give(lease->replaced_);
      Lease* const next = lease->next_;
      delete lease;
      lease = next;
    }
  }

 private:
  std::atomic<uint32_t> users_{1};  // the version and the lease before
  std::vector<uint64_t*> replaced_;
  Lease* next_ = nullptr;
  std::shared_ptr<Pages> memory_;
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
  // Ranks read half a page each.
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
    next->lease = new Lease(next->memory);
    next->pages = state_->pages;
  }
  std::vector<uint64_t*> replaced;
  std::vector<uint64_t*> own(next->pages.size());  // the pages that may be written
  const auto own_page = [&](size_t page) {
    uint64_t* words = next->memory->Take();
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

  std::vector<uint32_t>& counts = next->ranks;  // of page i at i + 1, for now
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

  if (shares) state_->lease->SetNext(next->lease, std::move(replaced));
  PositionSet set(universe_);
  set.state_ = next;
  return set;
}

uint64_t PositionSet::memory_bytes() const {
  if (state_ == nullptr) return 0;
  return state_->memory->memory_bytes() + state_->pages.size() * kBytesOfPage;
}

}  // namespace cairn
