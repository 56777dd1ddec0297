#if defined(__x86_64__)
#include <algorithm>
#include <cstring>

#include "index/machine/parallel.h"
#include "index/machine/prefetch.h"
#include "tools/bench/papers/paper_partial_keys.h"

namespace cairn::bench {

FullKeyPages::FullKeyPages(const FixedKeys& keys, int threads)
    : keys_(keys),
      first_layout_(keys.pages(), keys.bytes),
      layout_(kPaperPageKeys, keys.bytes),
      first_page_(first_layout_.slots() * keys.bytes + 16),
      leaves_(keys.pages() * layout_.slots() * keys.bytes + 16) {
  FillPage(0, kPaperPageKeys, first_layout_, keys.pages(), first_page_.data());
  ParallelFor(threads, keys.pages(), [&](size_t page) {
    const size_t first = page * kPaperPageKeys;
    FillPage(first, 1, layout_, std::min(kPaperPageKeys, keys_.size - first),
             leaves_.data() + page * layout_.slots() * keys_.bytes);
  });
}

void FullKeyPages::FillPage(size_t first, size_t stride, const PaperPageLayout& layout,
                            size_t count, char* page) {
  std::memset(page, 0xFF, layout.slots() * keys_.bytes);
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(page + layout.SlotOf(i) * keys_.bytes, keys_[first + i * stride], keys_.bytes);
  }
}

void FullKeyPages::LowerBound(const FixedKeys& queries, size_t first, size_t count,
                              Position* positions) const {
  const size_t bytes = keys_.bytes;
  size_t page[kPaperInFlight], rank[kPaperInFlight];
  const char* slots[kPaperInFlight];
  for (size_t done = 0; done < count; done += kPaperInFlight) {
    const size_t size = std::min(kPaperInFlight, count - done);
    const char* query = queries[first + done];
    const auto order = [&](size_t i, size_t slot) {
      return ComparePaperKeys(slots[i] + slot * bytes, query + i * bytes, bytes);
    };
    const auto ask = [&](size_t i, size_t slot) { Prefetch(slots[i] + slot * bytes); };
    std::fill_n(slots, size, first_page_.data());
    first_layout_.Search(
        size, page, [&](size_t i, size_t slot) { return order(i, slot) <= 0; }, ask);
    for (size_t i = 0; i < size; ++i) {
      page[i] = std::min(page[i], keys_.pages());
      if (page[i] > 0) --page[i];
      slots[i] = leaves_.data() + page[i] * layout_.slots() * bytes;
      Prefetch(slots[i]);
    }
    layout_.Search(
        size, rank, [&](size_t i, size_t slot) { return order(i, slot) < 0; }, ask);
    for (size_t i = 0; i < size; ++i) {
      positions[done + i] =
          static_cast<Position>(std::min(page[i] * kPaperPageKeys + rank[i], keys_.size));
    }
  }
}

}  // namespace cairn::bench
#endif
