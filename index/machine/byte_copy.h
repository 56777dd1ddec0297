#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace cairn {

// Copies `from` to `to` and returns the end of the copy. Copies of up to 32 bytes, as most keys
// have, need no call: they use two words that may overlap, or four.
inline char* CopyBytes(std::string_view from, char* to) {
  const auto copy = [&](auto word, size_t at) {
    std::memcpy(&word, from.data() + at, sizeof word);
    std::memcpy(to + at, &word, sizeof word);
  };
  const size_t size = from.size();
  if (size > 32) {
    std::memcpy(to, from.data(), size);
  } else if (size >= 16) {
    copy(uint64_t{}, 0);
    copy(uint64_t{}, 8);
    copy(uint64_t{}, size - 16);
    copy(uint64_t{}, size - 8);
  } else if (size >= 8) {
    copy(uint64_t{}, 0);
    copy(uint64_t{}, size - 8);
  } else if (size >= 4) {
    copy(uint32_t{}, 0);
    copy(uint32_t{}, size - 4);
  } else if (size >= 2) {
    copy(uint16_t{}, 0);
    copy(uint16_t{}, size - 2);
  } else if (size == 1) {
    *to = from.front();
  }
  return to + size;
}

}  // namespace cairn
