#pragma once

#include <cstdint>
#include <string_view>

namespace cairn {

// Returns the CRC-32C (Castagnoli) of some bytes followed by `bytes`; `crc` is the CRC of the
// former (0: no bytes). Uses the processor's instruction if there is one: SSE 4.2, or that of ARM
// if the build targets it.
uint32_t Crc32c(std::string_view bytes, uint32_t crc = 0);

// Returns a CRC as RocksDB stores it: rotated and shifted, since the CRC of bytes that contain CRCs
// is weak.
inline uint32_t MaskedCrc32c(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

}  // namespace cairn
