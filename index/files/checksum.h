#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

struct XXH3_state_s;

namespace cairn {

// XXH3-64 with seed 0 of `size` bytes: the checksum in every file.
uint64_t Checksum(const void* data, size_t size);

// The same checksum for bytes in several pieces. Movable; not thread-safe.
class StreamingChecksum {
 public:
  StreamingChecksum();  // throws std::bad_alloc

  void Update(const void* data, size_t size);
  // The checksum of all bytes so far.
  uint64_t Digest() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace cairn
