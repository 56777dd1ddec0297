#include "cpu_fast/partial_key.h"

namespace cairn {
namespace {

constexpr uint32_t kWindowBytes = 8;

}  // namespace

bool PartialKeyBitSet::Add(uint32_t bit) {
  uint32_t* const at = std::lower_bound(bits_, bits_ + size_, bit);
  if (at != bits_ + size_ && *at == bit) return true;
  if (size_ == most_) return false;
  std::copy_backward(at, bits_ + size_, bits_ + size_ + 1);
  *at = bit;
  ++size_;
  if (FitsWindows()) return true;
  std::copy(at + 1, bits_ + size_, at);
  --size_;
  return false;
}

bool PartialKeyBitSet::FitsWindows() const {
  const uint32_t* const end = bits_ + size_;
  const uint32_t* next = bits_;
  for (int w = 0; w < 2 && next != end; ++w) {
    const uint32_t first_byte = *next / 8;
    while (next != end && *next / 8 - first_byte < kWindowBytes) ++next;
  }
  return next == end;
}

PartialKeyBits PartialKeyBitSet::bits() const {
  PartialKeyBits bits;
  const uint32_t* const end = bits_ + size_;
  const uint32_t* next = bits_;
  for (int w = 0; w < 2 && next != end; ++w) {
    bits.offset[w] = *next / 8;
    for (; next != end && *next / 8 - bits.offset[w] < kWindowBytes; ++next) {
      bits.mask[w] |= uint64_t{1} << (63 - (*next - bits.offset[w] * 8));
    }
  }
  return bits;
}

uint32_t PartialKeyBitSet::Place(uint32_t bit) const {
  const uint32_t* const at = std::lower_bound(bits_, bits_ + size_, bit);
  return uint32_t{1} << (bits_ + size_ - 1 - at);
}

}  // namespace cairn
