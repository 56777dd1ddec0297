#include "engine/rows/row_block.h"

namespace cairn {
namespace {

void AppendNumber(uint64_t n, uint32_t width, std::string* out) {
  char bytes[sizeof n];
  std::memcpy(bytes, &n, sizeof n);
  out->append(bytes, width);
}

// Compares the leading prefix.size() bytes of `key` with `prefix`: negative where the key sorts
// before every string with that prefix, positive where it sorts behind, 0 where it has it.
int CompareWithPrefix(std::string_view key, std::string_view prefix) {
  const size_t common = std::min(key.size(), prefix.size());
  const int order = common == 0 ? 0 : std::memcmp(key.data(), prefix.data(), common);
  if (order != 0) return order;
  return key.size() < prefix.size() ? -1 : 0;
}

}  // namespace

void RowBlock::Encode(absl::Span<const std::string_view> keys, std::string* out) {
  // Of ascending keys, the first and the last have in common what all of them have.
  const std::string_view first = keys.front();
  const std::string_view last = keys.back();
  const auto prefix_bytes = static_cast<size_t>(
      std::mismatch(first.begin(), first.end(), last.begin(), last.end()).first - first.begin());
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

  out->push_back(static_cast<char>(log2_width | (one_length ? kOneLength : 0)));
  AppendNumber(prefix_bytes, width, out);
  if (one_length) {
    AppendNumber(first.size() - prefix_bytes, width, out);
  } else {
    uint64_t end = 0;
    for (std::string_view key : keys) {
      AppendNumber(end += key.size() - prefix_bytes, width, out);
    }
  }
  out->append(first.data(), prefix_bytes);
  for (std::string_view key : keys) out->append(key.substr(prefix_bytes));
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
