#include "cpu_fast/strings/partial_key.h"

#include <optional>

#include "absl/types/span.h"

namespace cairn {
namespace {

constexpr uint64_t kWindowBits = 64;

bool Contains(const PartialKeyBits& bits, uint32_t bit) {
  for (int w = 0; w < 2; ++w) {
    const uint64_t within = uint64_t{bit} - uint64_t{bits.offset[w]} * 8;
    if (within < kWindowBits && (bits.mask[w] << within >> (kWindowBits - 1)) != 0) return true;
  }
  return false;
}

// The windows of ascending bits, or nullopt if two windows cannot hold them. Each window starts at
// the first bit that the previous one does not hold.
std::optional<PartialKeyBits> Windows(absl::Span<const uint32_t> sorted) {
  PartialKeyBits bits;
  size_t next = 0;
  for (int w = 0; w < 2 && next < sorted.size(); ++w) {
    bits.offset[w] = sorted[next] / 8;
    const uint64_t start = uint64_t{bits.offset[w]} * 8;
    for (; next < sorted.size() && sorted[next] - start < kWindowBits; ++next) {
      bits.mask[w] |= uint64_t{1} << (kWindowBits - 1 - (sorted[next] - start));
    }
  }
  if (next < sorted.size()) return std::nullopt;
  return bits;
}

}  // namespace

bool PartialKeyBitSet::Add(uint32_t bit) {
  if (Contains(bits_, bit)) return true;
  if (size_ == most_) return false;
  uint32_t* const at = std::lower_bound(sorted_, sorted_ + size_, bit);
  std::copy_backward(at, sorted_ + size_, sorted_ + size_ + 1);
  *at = bit;
  if (const auto bits = Windows({sorted_, size_ + 1}); bits.has_value()) {
    bits_ = *bits;
    ++size_;
    return true;
  }
  std::copy(at + 1, sorted_ + size_ + 1, at);
  return false;
}

}  // namespace cairn
