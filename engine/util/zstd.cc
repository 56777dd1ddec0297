#include "engine/util/zstd.h"

#include <zstd.h>

#include <algorithm>
#include <new>

#include "absl/strings/str_format.h"

namespace cairn {
namespace {

// The uncompressed size is unknown, so the buffer grows as needed.
constexpr size_t kMinRoom = size_t{64} << 10;

}  // namespace

ZstdUncompressor::ZstdUncompressor() : context_(ZSTD_createDCtx()) {
  if (context_ == nullptr) throw std::bad_alloc();
}

ZstdUncompressor::~ZstdUncompressor() {
  ZSTD_freeDCtx(context_);
}

absl::StatusOr<std::string_view> ZstdUncompressor::Uncompress(std::string_view frame, size_t most) {
  ZSTD_DCtx_reset(context_, ZSTD_reset_session_only);
  ZSTD_inBuffer from{frame.data(), frame.size(), 0};
  size_t size = 0;
  size_t left = 1;
  while (left > 0) {
    if (size == buffer_.size()) buffer_.resize(std::max(kMinRoom, 2 * size));
    ZSTD_outBuffer to{buffer_.data(), buffer_.size(), size};
    left = ZSTD_decompressStream(context_, &to, &from);
    if (ZSTD_isError(left)) return absl::DataLossError(ZSTD_getErrorName(left));
    const bool ends = from.pos == from.size && to.pos < to.size;
    if (left > 0 && ends) return absl::DataLossError("the data ends within a frame");
    size = to.pos;
    if (size > most) {
      return absl::DataLossError(absl::StrFormat("the frame contains more than %d bytes", most));
    }
  }
  if (from.pos < from.size) {
    return absl::DataLossError(absl::StrFormat("%d bytes follow the frame", from.size - from.pos));
  }
  return std::string_view(buffer_).substr(0, size);
}

}  // namespace cairn
