#include "engine/util/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace cairn {
namespace {

// tables[k][b]: the change of the CRC by byte b if k more bytes follow it ("slicing by 8").
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78u : 0u);
    }
    tables[0][i] = value;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t i = 0; i < 256; ++i) {
      const uint32_t shorter = tables[k - 1][i];
      tables[k][i] = (shorter >> 8) ^ tables[0][shorter & 0xFF];
    }
  }
  return tables;
}

// Appends to a CRC that is not yet inverted, like the functions below.
[[maybe_unused]] uint32_t AppendByTable(const char* p, size_t size, uint32_t crc) {
  static constexpr Tables kTables = MakeTables();
  for (; size >= 8; p += 8, size -= 8) {
    uint32_t next = 0;
    for (size_t i = 0; i < 8; ++i) {
      const uint32_t byte = static_cast<uint8_t>(p[i]) ^ (i < 4 ? (crc >> (8 * i)) & 0xFF : 0);
      next ^= kTables[7 - i][byte];
    }
    crc = next;
  }
  for (; size > 0; ++p, --size) {
    crc = kTables[0][(crc ^ static_cast<uint8_t>(*p)) & 0xFF] ^ (crc >> 8);
  }
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t AppendByInstruction(const char* p, size_t size,
                                                               uint32_t crc) {
  uint64_t wide = crc;
  for (; size >= 8; p += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, p, sizeof word);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; size > 0; ++p, --size) crc = _mm_crc32_u8(crc, static_cast<uint8_t>(*p));
  return crc;
}
#elif defined(__ARM_FEATURE_CRC32)
uint32_t AppendByInstruction(const char* p, size_t size, uint32_t crc) {
  for (; size >= 8; p += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, p, sizeof word);
    crc = __crc32cd(crc, word);
  }
  for (; size > 0; ++p, --size) crc = __crc32cb(crc, static_cast<uint8_t>(*p));
  return crc;
}
#endif

}  // namespace

uint32_t Crc32c(std::string_view bytes, uint32_t crc) {
#if defined(__x86_64__)
  static const bool instruction = __builtin_cpu_supports("sse4.2");
  if (instruction) return ~AppendByInstruction(bytes.data(), bytes.size(), ~crc);
#elif defined(__ARM_FEATURE_CRC32)
  return ~AppendByInstruction(bytes.data(), bytes.size(), ~crc);
#endif
#if !defined(__ARM_FEATURE_CRC32)
  return ~AppendByTable(bytes.data(), bytes.size(), ~crc);
#endif
}

}  // namespace cairn
