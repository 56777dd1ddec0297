#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

struct ZSTD_DCtx_s;

namespace cairn {

// Decompresses Zstandard frames. Not thread-safe.
class ZstdUncompressor {
 public:
  ZstdUncompressor();
  ~ZstdUncompressor();
  ZstdUncompressor(const ZstdUncompressor&) = delete;
  ZstdUncompressor& operator=(const ZstdUncompressor&) = delete;

  // Returns the contents of `frame`, which must be one whole frame. Valid until the next call.
  // DataLoss: it is not a frame, or contains more than `most` bytes.
  absl::StatusOr<std::string_view> Uncompress(std::string_view frame, size_t most);

 private:
  ZSTD_DCtx_s* const context_;
  std::string buffer_;  // as large as needed so far
};

}  // namespace cairn
