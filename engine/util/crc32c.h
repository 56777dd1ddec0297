#pragma once

#include <cstdint>
#include <string_view>

namespace cairn {

// The CRC-32C (Castagnoli) of the bytes whose CRC is `crc` (0: of none) and of `bytes` behind them.
// By the processor's instruction where it has one: SSE 4.2, or ARM's where that is compiled for.
uint32_t Crc32c(std::string_view bytes, uint32_t crc = 0);

// A CRC as RocksDB stores it: rotated and shifted, since a CRC of bytes with CRCs in them is weak.
inline uint32_t MaskedCrc32c(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

}  // namespace cairn
