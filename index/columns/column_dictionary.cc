#include "index/columns/column_dictionary.h"

#include <algorithm>

#include "index/columns/column_format.h"
#include "index/columns/packed_numbers.h"
#include "index/files/checksum.h"

namespace cairn {
namespace {

// After this many consecutive blocks that are smaller without the dictionary, it takes no further
// ones.
constexpr uint32_t kMaxRefusals = 16;

// At these numbers of rows, the dictionary gives up if the values hardly repeat. So columns of
// unique values are recognized early, and those of up to 65,536 distinct values later.
constexpr uint64_t kFewRows = 8 * kRowsPerColumnBlock;
constexpr uint64_t kManyRows = 64 * kRowsPerColumnBlock;

}  // namespace

std::string_view ColumnDictionary::value(uint32_t code) const {
  const uint32_t begin = code == 0 ? 0 : ends_[code - 1];
  return std::string_view(heap_).substr(begin, ends_[code] - begin);
}

// The slot that has the value, or else the empty one for it.
size_t ColumnDictionary::SlotOf(std::string_view value, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    const uint32_t code = slots_[slot] - 1;
    if (hashes_[code] == hash && this->value(code) == value) break;
  }
  return slot;
}

void ColumnDictionary::Grow() {
  slots_.assign(std::max<size_t>(64, slots_.size() * 2), 0);
  const size_t mask = slots_.size() - 1;
  for (uint32_t code = 0; code < size(); ++code) {
    size_t slot = hashes_[code] & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = code + 1;
  }
}

// False if the value is new and there is no room for it.
bool ColumnDictionary::FindOrAdd(std::string_view value, uint32_t* code) {
  if (size() * size_t{2} >= slots_.size()) Grow();
  const auto hash = static_cast<uint32_t>(Checksum(value.data(), value.size()));
  const size_t slot = SlotOf(value, hash);
  if (slots_[slot] == 0) {
    if (size() == kMaxValues || value.size() > kMaxBytes - heap_.size()) return false;
    heap_.append(value);
    hashes_.push_back(hash);
    ends_.push_back(static_cast<uint32_t>(heap_.size()));
    slots_[slot] = size();
  }
  *code = slots_[slot] - 1;
  return true;
}

// Removes the values that were added last; no search for an older value passes their slots.
void ColumnDictionary::RemoveFrom(uint32_t size) {
  while (this->size() > size) {
    const uint32_t code = this->size() - 1;
    slots_[SlotOf(value(code), hashes_[code])] = 0;
    heap_.resize(code == 0 ? 0 : ends_[code - 1]);
    ends_.pop_back();
    hashes_.pop_back();
  }
}

bool ColumnDictionary::FindAll(const ColumnValues& values, size_t first, size_t count,
                               uint64_t* codes) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t code = 0;
    if (!values.is_null(first + i) && !FindOrAdd(values.bytes(first + i), &code)) return false;
    codes[i] = code;
  }
  return true;
}

bool ColumnDictionary::Refuse() {
  if (++refused_ == kMaxRefusals) closed_ = true;
  return false;
}

bool ColumnDictionary::HardlyRepeats() const {
  return (rows_ == kFewRows && size() > rows_ / 8 * 7) ||
         (rows_ == kManyRows && size() > rows_ / 2);
}

bool ColumnDictionary::Encode(const ColumnValues& values, size_t first, size_t count,
                              uint64_t plain_bytes, uint64_t* codes) {
  if (closed_) return false;
  const uint32_t size_before = size();
  const size_t bytes_before = heap_.size();
  bool worth_it = FindAll(values, first, count, codes);
  if (worth_it) {
    const auto [least, most] = std::minmax_element(codes, codes + count);
    const uint64_t added = heap_.size() - bytes_before + sizeof(uint32_t) * (size() - size_before);
    worth_it = PackedBytes(count, PackedWidth(*most - *least)) + added / 2 < plain_bytes;
  }
  if (!worth_it) {
    RemoveFrom(size_before);
    return Refuse();
  }
  refused_ = 0;
  rows_ += count;
  closed_ = HardlyRepeats();
  return true;
}

}  // namespace cairn
