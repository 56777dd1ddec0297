#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cairn/sorted_run.h"
#include "index/machine/prefetch.h"

namespace cairn {

// The keys of a run of byte strings by position, and prefetches of their memory. If all
// have one length, their offsets are computed, not read. A view of the run's column.
class KeyReader {
 public:
  KeyReader() = default;
  // Reads the offsets.
  explicit KeyReader(const BytesColumn& keys) : keys_(keys), length_(CommonLength(keys)) {}

  // The length of each key, if all have the same.
  const std::optional<uint64_t>& length() const { return length_; }

  uint64_t Offset(size_t position) const {
    return length_.has_value() ? *length_ * position : keys_.offset(position);
  }
  std::string_view operator[](size_t position) const {
    const uint64_t offset = Offset(position);
    return {keys_.heap() + offset, static_cast<size_t>(Offset(position + 1) - offset)};
  }

  void PrefetchOffset(size_t position) const {
    if (length_.has_value()) return;
    if (keys_.offsets32() != nullptr) {
      Prefetch(keys_.offsets32() + position);
      Prefetch(keys_.offsets32() + position + 1);
    } else {
      Prefetch(keys_.offsets64() + position);
      Prefetch(keys_.offsets64() + position + 1);
    }
  }
  void PrefetchKey(size_t position, size_t bytes) const {
    PrefetchBytes(keys_.heap() + Offset(position), bytes);
  }

 private:
  static std::optional<uint64_t> CommonLength(const BytesColumn& keys) {
    if (keys.size() == 0) return std::nullopt;
    const uint64_t length = keys.offset(1);
    if (keys.offset(keys.size()) != length * keys.size()) return std::nullopt;
    for (size_t i = 2; i < keys.size(); ++i) {
      if (keys.offset(i) != length * i) return std::nullopt;
    }
    return length;
  }

  BytesColumn keys_;
  std::optional<uint64_t> length_;
};

}  // namespace cairn
