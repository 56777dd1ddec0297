#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace cairn::gpu {

// A byte string to search for: a string plus an optional extra byte.
struct StringKey {
  static constexpr int kNoByte = -1;

  std::string_view bytes;
  int last = kNoByte;

  size_t size() const { return bytes.size() + (last == kNoByte ? 0 : 1); }
};

// The byte strings of a batch, in the form in which they are copied to a device. Thread-safe.
class StringSource {
 public:
  virtual ~StringSource() = default;
  // The total length of strings [first, first + count).
  virtual uint64_t Bytes(size_t first, size_t count) const = 0;
  // Copies the strings consecutively to strings[at] and after, and writes the offset of each to
  // offsets[0] … offsets[count - 1].
  virtual void Copy(size_t first, size_t count, uint32_t at, uint32_t* offsets,
                    char* strings) const = 0;
};

// Like memcpy, but without a function call for strings of up to 32 bytes, which are the most
// frequent.
inline void CopyShort(std::string_view from, char* to) {
  const size_t size = from.size();
  const auto copy = [&](auto word) {
    const size_t last = size - sizeof(word);
    std::memcpy(&word, from.data() + last, sizeof(word));
    auto first = word;
    std::memcpy(&first, from.data(), sizeof(first));
    std::memcpy(to, &first, sizeof(first));
    std::memcpy(to + last, &word, sizeof(word));
  };
  struct Sixteen {
    uint64_t words[2];
  };
  if (size > 2 * sizeof(Sixteen)) {
    std::memcpy(to, from.data(), size);
  } else if (size >= sizeof(Sixteen)) {
    copy(Sixteen());
  } else if (size >= sizeof(uint64_t)) {
    copy(uint64_t());
  } else if (size >= sizeof(uint32_t)) {
    copy(uint32_t());
  } else {
    for (size_t i = 0; i < size; ++i) to[i] = from[i];
  }
}

// The strings that key(i) returns as StringKeys, truncated for an index whose longest key has
// `longest_key` bytes: one byte more is enough to show that a string is not a key, and where it
// would be.
template <typename Key>
class StringsOf : public StringSource {
 public:
  StringsOf(Key key, size_t longest_key) : key_(std::move(key)), longest_key_(longest_key) {}

  uint64_t Bytes(size_t first, size_t count) const override {
    uint64_t bytes = 0;
    for (size_t i = first; i < first + count; ++i) bytes += KeyAt(i).size();
    return bytes;
  }
  void Copy(size_t first, size_t count, uint32_t at, uint32_t* offsets,
            char* strings) const override {
    for (size_t i = 0; i < count; ++i) {
      const StringKey key = KeyAt(first + i);
      offsets[i] = at;
      CopyShort(key.bytes, strings + at);
      at += static_cast<uint32_t>(key.bytes.size());
      if (key.last != StringKey::kNoByte) strings[at++] = static_cast<char>(key.last);
    }
  }

 private:
  StringKey KeyAt(size_t i) const {
    const StringKey key = key_(i);
    if (key.bytes.size() <= longest_key_) return key;
    return {key.bytes.substr(0, longest_key_ + 1)};
  }

  const Key key_;
  const size_t longest_key_;
};

}  // namespace cairn::gpu
