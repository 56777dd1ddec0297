#include "engine/rows/row_block.h"

#include "index/machine/byte_copy.h"
#include "index/strings/string_compare.h"

namespace cairn {
namespace {

// Writes the lower `width` bytes of `n`, and returns the address after them.
char* PutNumber(uint64_t n, uint32_t width, char* to) {
  for (uint32_t i = 0; i < width; ++i, n >>= 8) *to++ = static_cast<char>(n);
  return to;
}

// Compares the leading prefix.size() bytes of `key` with `prefix`. Returns a negative number if the
// key sorts before all strings with that prefix, a positive number if it sorts after them, and 0 if
// it has the prefix.
int CompareWithPrefix(std::string_view key, std::string_view prefix) {
  const size_t common = std::min(key.size(), prefix.size());
  const int order = common == 0 ? 0 : std::memcmp(key.data(), prefix.data(), common);
  if (order != 0) return order;
  return key.size() < prefix.size() ? -1 : 0;
}

}  // namespace

void RowBlock::Encode(absl::Span<const std::string_view> keys, std::string* out) {
  // In ascending keys, the common prefix of the first and the last is that of all.
  const std::string_view first = keys.front();
  const size_t prefix_bytes = CommonPrefix(first, keys.back(), 0);
  uint64_t total = 0;
  bool one_length = true;
  for (std::string_view key : keys) {
    total += key.size() - prefix_bytes;
    one_length &= key.size() == first.size();
  }
  const uint64_t largest =
      std::max<uint64_t>(prefix_bytes, one_length ? first.size() - prefix_bytes : total);
  const uint32_t log2_width = largest < 1 << 8 ? 0 : largest < 1 << 16 ? 1 : 2;
  const uint32_t width = 1 << log2_width;

  const size_t begin = out->size();
  out->resize(begin + 1 + width * (one_length ? 2 : 1 + keys.size()) + prefix_bytes + total);
  char* at = out->data() + begin;
  *at++ = static_cast<char>(log2_width | (one_length ? kOneLength : 0));
  at = PutNumber(prefix_bytes, width, at);
  if (one_length) {
    at = PutNumber(first.size() - prefix_bytes, width, at);
  } else {
    uint64_t end = 0;
    for (std::string_view key : keys) at = PutNumber(end += key.size() - prefix_bytes, width, at);
  }
  at = CopyBytes(first.substr(0, prefix_bytes), at);
  for (std::string_view key : keys) at = CopyBytes(key.substr(prefix_bytes), at);
}

bool RowBlock::LowerBound(std::string_view key, uint32_t* i, bool* found) const {
  *found = false;
  const int order = CompareWithPrefix(key, prefix());
  if (order != 0) {
    *i = order < 0 ? 0 : rows_;
    return true;
  }
  key.remove_prefix(prefix_bytes_);
  uint32_t begin = 0;
  uint32_t end = rows_;
  while (begin < end) {
    const uint32_t middle = (begin + end) / 2;
    std::string_view rest;
    if (!Rest(middle, &rest)) return false;
    const int less = rest.compare(key);
    if (less == 0) *found = true;
    if (less < 0) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  *i = begin;
  return true;
}

bool RowBlock::FirstAtMost(std::string_view key, bool* at_most) const {
  const int order = CompareWithPrefix(key, prefix());
  if (order != 0) {
    *at_most = order > 0;
    return true;
  }
  std::string_view rest;
  if (!Rest(0, &rest)) return false;
  *at_most = rest <= key.substr(prefix_bytes_);
  return true;
}

}  // namespace cairn
