#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/c/base.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "engine/c/arrow_in.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {

// The codec of keys that have the columns' types. InvalidArgument for more parts than a key has.
absl::StatusOr<KeyCodec> CodecOf(absl::Span<const ArrowColumn> columns, NullPolicy nulls);

// One value of a column.
KeyValue ValueOf(const ArrowColumn& column, size_t i);

// Whether the columns are of the types of the codec's leading parts, as many as there are columns.
absl::Status CheckTypes(const KeyCodec& codec, absl::Span<const ArrowColumn> columns);

// `status` with the key that it is about before its message.
absl::Status InKey(size_t key, const absl::Status& status);

// A batch of logical keys as physical ones: where they are, or encoded.
class KeysIn {
 public:
  KeysIn() = default;
  KeysIn(const KeysIn&) = delete;
  KeysIn& operator=(const KeysIn&) = delete;

  // Requires CheckTypes of as many columns as the codec has parts. What the columns show must
  // outlive this. InvalidArgument, naming the key, for a value that the codec does not take.
  absl::Status Encode(const KeyCodec& codec, absl::Span<const ArrowColumn> columns);
  // ReadColumns and Encode; InvalidArgument for another number of parts than the codec's.
  absl::Status Read(const KeyCodec& codec, const ArrowSchema* schema, const ArrowArray* array);

  KeyBatch batch() const { return batch_; }

 private:
  bool TakeNumbers(const KeyCodec& codec, const ArrowColumn& column);

  KeyColumn encoded_;
  AlignedBuffer<std::string_view> views_;  // in huge pages where they are many
  KeyBatch batch_;
};

}  // namespace cairn
