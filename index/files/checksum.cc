#include "index/files/checksum.h"

#include <xxhash.h>

#include <new>

namespace cairn {

uint64_t Checksum(const void* data, size_t size) {
  return XXH3_64bits(data, size);
}

StreamingChecksum::StreamingChecksum() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state_.get());
}

void StreamingChecksum::Update(const void* data, size_t size) {
  if (size > 0) XXH3_64bits_update(state_.get(), data, size);
}

uint64_t StreamingChecksum::Digest() const {
  return XXH3_64bits_digest(state_.get());
}

void StreamingChecksum::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

}  // namespace cairn
