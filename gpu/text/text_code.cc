#include "gpu/text/text_code.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "index/layout/wide_key.h"
#include "index/machine/parallel.h"

namespace cairn::gpu {
namespace {

constexpr size_t kMinForATask = size_t{1} << 16, kMaxTasks = 64;

// The symbols of some keys: bytes by position, and the lengths of the keys.
struct SymbolsSeen {
  std::array<std::array<bool, 256>, TextCode::kMaxPositions> bytes{};
  std::array<bool, TextCode::kMaxPositions + 1> lengths{};

  void Add(std::string_view key) {
    for (size_t p = 0; p < key.size(); ++p) bytes[p][static_cast<unsigned char>(key[p])] = true;
    lengths[key.size()] = true;
  }
  void Add(const SymbolsSeen& other) {
    for (size_t p = 0; p < bytes.size(); ++p) {
      for (size_t byte = 0; byte < 256; ++byte) bytes[p][byte] |= other.bytes[p][byte];
    }
    for (size_t length = 0; length < lengths.size(); ++length) {
      lengths[length] |= other.lengths[length];
    }
  }
};

// The symbols of all keys; nullopt if a key is too long.
std::optional<SymbolsSeen> FindSymbols(const BytesColumn& keys, int threads) {
  const size_t tasks = std::clamp<size_t>(keys.size() / kMinForATask, 1, kMaxTasks);
  std::vector<SymbolsSeen> seen(tasks);
  std::atomic<bool> too_long = false;
  const auto look = [&](size_t task) {
    const size_t end = keys.size() * (task + 1) / tasks;
    for (size_t i = keys.size() * task / tasks; i < end; ++i) {
      const std::string_view key = keys[i];
      if (key.size() > TextCode::kMaxPositions) too_long = true;
      if (too_long.load(std::memory_order_relaxed)) return;
      seen[task].Add(key);
    }
  };
  if (tasks == 1) {
    look(0);
  } else {
    ParallelFor(threads, tasks, look);
  }
  if (too_long) return std::nullopt;
  for (size_t task = 1; task < tasks; ++task) seen[0].Add(seen[task]);
  return seen[0];
}

TextPosition MakePosition(const std::array<bool, 256>& bytes, bool has_end) {
  TextPosition position = {};
  position.radix = has_end ? 1 : 0;
  for (size_t byte = 0; byte < bytes.size(); ++byte) {
    TextPosition::Bytes& word = position.bytes[byte / 32];
    if (byte % 32 == 0) word.before = position.radix;
    if (!bytes[byte]) continue;
    word.bits |= uint32_t{1} << byte % 32;
    ++position.radix;
  }
  return position;
}

}  // namespace

std::optional<TextCode> TextCode::Of(const BytesColumn& keys, int threads) {
  const std::optional<SymbolsSeen> seen = FindSymbols(keys, threads);
  if (!seen.has_value()) return std::nullopt;
  TextCode code;
  size_t longest = kMaxPositions;
  while (longest > 0 && !seen->lengths[longest]) --longest;
  WideKey greatest = 0;
  bool has_end = false;
  for (size_t p = 0; p < longest; ++p) {
    has_end |= seen->lengths[p];
    const TextPosition position = MakePosition(seen->bytes[p], has_end);
    const uint32_t last = position.radix - 1;
    if (greatest > (~WideKey{0} - last) / position.radix) return std::nullopt;
    greatest = greatest * position.radix + last;
    code.positions_.push_back(position);
  }
  code.narrow_ = greatest <= UINT64_MAX;
  uint64_t group = 1;
  for (size_t p = 0; p < longest; ++p) {
    group *= code.positions_[p].radix;
    const bool last = p + 1 == longest || group * code.positions_[p + 1].radix > UINT32_MAX;
    if (!last) continue;
    code.positions_[p].group = static_cast<uint32_t>(group);
    group = 1;
  }
  while (code.shortest_ < longest && !seen->lengths[code.shortest_]) ++code.shortest_;
  code.MakeShares();
  return code;
}

void TextCode::MakeShares() {
  const size_t words = (positions_.size() + 3) / 4;
  shares_.assign(2 * words + 256 * positions_.size(), kNoSymbol);
  for (size_t word = 0; word < words; ++word) {
    uint64_t product = 1;
    for (size_t p = std::min(4 * word + 4, positions_.size()); p-- > 4 * word;) {
      const TextPosition& position = positions_[p];
      uint32_t rank = position.HasEnd() ? 1 : 0;
      for (size_t byte = 0; byte < 256; ++byte) {
        if ((position.bytes[byte / 32].bits >> byte % 32 & 1) == 0) continue;
        shares_[2 * words + 256 * p + byte] = static_cast<uint32_t>(rank++ * product);
      }
      product *= position.radix;
    }
    if (product > uint64_t{1} << 32) {
      shares_.clear();
      return;
    }
    shares_[2 * word] = static_cast<uint32_t>(product);
    shares_[2 * word + 1] = static_cast<uint32_t>(product >> 32);
  }
}

bool TextCode::is_plain() const {
  return std::all_of(positions_.begin(), positions_.end(), [](const TextPosition& position) {
    return position.radix == 256 && !position.HasEnd();
  });
}

template <typename Key>
TextNumber<Key> TextCode::Number(std::string_view key, TextEdge edge) const {
  const size_t most = positions_.size() + 1;  // one more byte shows that a string is longer
  const size_t size = std::min(key.size(), most);
  return NumberOfText<Key>(positions_.data(), static_cast<uint32_t>(positions_.size()),
                           static_cast<uint32_t>(size), edge, [key](uint32_t i) {
                             uint32_t word = 0;
                             std::memcpy(&word, key.data() + 4 * i,
                                         std::min(sizeof(word), key.size() - 4 * i));
                             return word;
                           });
}

template <typename Key>
bool TextCode::Number(const BytesColumn& keys, size_t first, absl::Span<Key> numbers) const {
  bool exact = true;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const TextNumber<Key> number = Number<Key>(keys[first + i]);
    numbers[i] = number.number;
    exact &= number.exact;
  }
  return exact;
}

template <typename Key>
KeySurvey<Key> SurveyNumbers(const TextCode& code, const BytesColumn& keys, int threads) {
  return SurveyOnHost<Key>(
      keys.size(),
      [&](size_t first, absl::Span<Key> numbers) { (void)code.Number(keys, first, numbers); },
      threads);
}

template TextNumber<uint64_t> TextCode::Number(std::string_view, TextEdge) const;
template TextNumber<WideKey> TextCode::Number(std::string_view, TextEdge) const;
template bool TextCode::Number(const BytesColumn&, size_t, absl::Span<uint64_t>) const;
template bool TextCode::Number(const BytesColumn&, size_t, absl::Span<WideKey>) const;
template KeySurvey<uint64_t> SurveyNumbers(const TextCode&, const BytesColumn&, int);
template KeySurvey<WideKey> SurveyNumbers(const TextCode&, const BytesColumn&, int);

}  // namespace cairn::gpu
