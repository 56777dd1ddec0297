// Batch lookups in a KeyFilter, compiled once for each instruction set that Highway supports.
#include "cpu_fast/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_fast/simd/key_filter.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"

#include "cpu_fast/simd/key_filter.h"
#include "cpu_fast/simd/simd_dispatch.h"
#include "index/machine/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace cairn {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// KeyFilter::Hash in every lane.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Hash(D d, V keys) {
  const hn::Repartition<uint32_t, D> halves;
  const auto times = [&](V lows, uint32_t factor) {
    return hn::MulEven(hn::BitCast(halves, lows), hn::Set(halves, factor));
  };
  const V mixed = hn::Add(times(keys, KeyFilter::kLowFactor),
                          times(hn::ShiftRight<32>(keys), KeyFilter::kHighFactor));
  const V product = times(hn::Xor(mixed, hn::ShiftRight<32>(mixed)), KeyFilter::kFactor);
  return hn::BitCast(d, hn::Reverse2(halves, hn::BitCast(halves, product)));
}

// Tests as many keys as d has lanes; returns one bit per key, set if the key passes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE uint64_t Test(D d, V keys, const uint64_t* words, int shift) {
  const hn::RebindToSigned<D> indices;
  const V hashes = Hash(d, keys);
  const V bit_numbers = hn::Set(d, 63);
  const V one = hn::Set(d, 1);
  const auto bit = [&](V hash) { return hn::Shl(one, hn::And(hash, bit_numbers)); };
  const V bits = hn::Or(bit(hn::ShiftRight<KeyFilter::kFirstBit>(hashes)),
                        hn::Or(bit(hn::ShiftRight<KeyFilter::kSecondBit>(hashes)),
                               bit(hn::ShiftRight<KeyFilter::kThirdBit>(hashes))));
  const V found =
      hn::GatherIndex(d, words, hn::BitCast(indices, hn::ShiftRightSame(hashes, shift)));
  const auto passed = hn::Eq(hn::And(found, bits), bits);
  uint64_t mask = 0;
  hn::StoreMaskBits(d, passed, reinterpret_cast<uint8_t*>(&mask));
  return mask;
}

// Prefetches the words of as many keys as d has lanes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void PrefetchWords(D d, V keys, const uint64_t* words, int shift) {
  HWY_ALIGN uint64_t indices[hn::MaxLanes(d)];
  hn::Store(hn::ShiftRightSame(Hash(d, keys), shift), d, indices);
  for (size_t i = 0; i < hn::Lanes(d); ++i) Prefetch(words + indices[i]);
}

// Keys that are tested before those that pass are written to the output. A branch on gathered words
// is often mispredicted, and the gathers after it then start again.
constexpr size_t kBlock = 256;
// The shift of filters larger than 128 KB is less than this.
constexpr int kFarCacheShift = 64 - 14;

template <typename Key>
size_t SelectKeys(const uint64_t* words, int shift, absl::Span<const Key> keys, uint32_t* passed,
                  size_t* tested) {
  const hn::CappedTag<uint64_t, 8> d;
  const hn::Rebind<Key, decltype(d)> d_keys;
  const size_t end = keys.size() / hn::Lanes(d) * hn::Lanes(d);
  // If the words are not in a near cache, a gather waits for them one after the other.
  const bool in_far_cache = shift < kFarCacheShift;
  size_t size = 0;
  for (size_t first = 0; first < end; first += kBlock) {
    const size_t count = std::min(kBlock, end - first);
    const auto load = [&](size_t i) {
      if constexpr (sizeof(Key) == sizeof(uint64_t)) {
        return hn::LoadU(d, keys.data() + first + i);
      } else {
        return hn::PromoteTo(d, hn::LoadU(d_keys, keys.data() + first + i));
      }
    };
    if (in_far_cache) {
      for (size_t i = 0; i < count; i += hn::Lanes(d)) PrefetchWords(d, load(i), words, shift);
    }
    uint64_t masks[kBlock / 64] = {};  // one bit per key
    for (size_t i = 0; i < count; i += hn::Lanes(d)) {
      masks[i / 64] |= Test(d, load(i), words, shift) << (i % 64);
    }
    for (size_t i = 0; i < count; i += 64) {
      for (uint64_t mask = masks[i / 64]; mask != 0; mask &= mask - 1) {
        passed[size++] =
            static_cast<uint32_t>(first + i) + static_cast<uint32_t>(__builtin_ctzll(mask));
      }
    }
  }
  *tested = end;
  return size;
}

}  // namespace HWY_NAMESPACE
}  // namespace cairn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn {
namespace {

// Selects from the first keys, and sets *tested to how many of them it tested.
template <typename Key>
size_t SelectFirst(SimdLevel level, const uint64_t* words, int shift, absl::Span<const Key> keys,
                   uint32_t* passed, size_t* tested) {
  switch (level) {
    CAIRN_SIMD_CASES(SelectKeys<Key>(words, shift, keys, passed, tested))
    default:  // HWY_SCALAR cannot multiply halves of a lane, so MayHold tests all keys
      *tested = 0;
      return 0;
  }
}

}  // namespace

KeyFilter::KeyFilter(uint64_t capacity)
    : shift_(64 - std::bit_width(std::max(capacity, kMinCapacity) / kKeysPerWord - 1)),
      words_(size_t{1} << (64 - shift_)) {
  std::fill(words_.begin(), words_.end(), 0);
#ifndef __SANITIZE_THREAD__
  // A gather reads each word atomically, like a plain load does. But ThreadSanitizer, like the C++
  // standard, recognizes atomic loads only.
  level_ = DefaultSimdLevel().value_or(SimdLevel::kScalar);
#endif
}

std::unique_ptr<KeyFilter> KeyFilter::Copy() const {
  auto copy = std::make_unique<KeyFilter>(capacity());
  for (size_t i = 0; i < words_.size(); ++i) {
    std::atomic_ref<uint64_t> word(const_cast<uint64_t&>(words_[i]));
    copy->words_[i] = word.load(std::memory_order_relaxed);
  }
  return copy;
}

template <typename Key>
size_t KeyFilter::SelectAll(absl::Span<const Key> keys, uint32_t* passed) const {
  size_t first = 0;
  size_t size = SelectFirst(level_, words_.data(), shift_, keys, passed, &first);
  for (size_t i = first; i < keys.size(); ++i) {
    passed[size] = static_cast<uint32_t>(i);
    size += MayHold(Hash(keys[i])) ? 1 : 0;
  }
  return size;
}

size_t KeyFilter::Select(absl::Span<const uint32_t> keys, uint32_t* passed) const {
  return SelectAll(keys, passed);
}

size_t KeyFilter::Select(absl::Span<const uint64_t> keys, uint32_t* passed) const {
  return SelectAll(keys, passed);
}

size_t KeyFilter::Select(absl::Span<const std::string_view> keys, uint32_t* passed) const {
  size_t size = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    passed[size] = static_cast<uint32_t>(i);
    size += MayHold(Hash(keys[i])) ? 1 : 0;
  }
  return size;
}

}  // namespace cairn
#endif  // HWY_ONCE
