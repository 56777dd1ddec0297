#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

struct ZSTD_DCtx_s;

namespace cairn {

// Uncompresses what Zstandard has compressed. Not thread-safe.
class ZstdUncompressor {
 public:
  ZstdUncompressor();
  ~ZstdUncompressor();
  ZstdUncompressor(const ZstdUncompressor&) = delete;
  ZstdUncompressor& operator=(const ZstdUncompressor&) = delete;

  // What `frame`, which is one whole frame, holds; valid until the next call. DataLoss where it is
  // not one, or holds more than `most` bytes.
  absl::StatusOr<std::string_view> Uncompress(std::string_view frame, size_t most);

 private:
  ZSTD_DCtx_s* const context_;
  std::string buffer_;  // as large as was needed so far
};

}  // namespace cairn
