#pragma once

// Batches of keys from Python: converts the caller's objects to the physical keys of an index.

#include <nanobind/nanobind.h>

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "python/src/in/arrow_in.h"
#include "python/src/in/buffer.h"
#include "python/src/in/exact_integers.h"

namespace cairn::python {

namespace nb = nanobind;

// The keys of a batch. Keeps their memory alive until it is destroyed, which takes the GIL. Arrays
// of u32 and u64 keys, text from Arrow, str and bytes are used in place; other types are encoded
// into a column. Integers of another type than the key's are converted if that is exact.
class KeysIn {
 public:
  // Throws KeyTypeError if `object` does not contain keys of `codec`; the message begins with
  // `argument`. `read` contains the Arrow data that was read before, per column of a tuple or of
  // `object`, or null; it is moved from.
  KeysIn(nb::handle object, const KeyCodec& codec, const char* argument,
         std::vector<std::unique_ptr<ArrowIn>> read = {})
      : KeysIn(object, codec, argument, std::move(read), /*convert=*/true) {}
  // Row ids: keys of one part whose arrays must have exactly its type, since the width of a row id
  // distinguishes a sharded index from others.
  static KeysIn OfRows(nb::handle object, const KeyCodec& codec, const char* argument) {
    return {object, codec, argument, {}, /*convert=*/false};
  }
  KeysIn(const KeysIn&) = delete;
  KeysIn& operator=(const KeysIn&) = delete;

  KeyBatch batch() const { return batch_; }
  size_t size() const { return batch_.size(); }
  // Whether the search reads the caller's memory that overlaps this, which may also be an output.
  bool overlaps(const void* data, size_t bytes) const;

 private:
  KeysIn(nb::handle object, const KeyCodec& codec, const char* argument,
         std::vector<std::unique_ptr<ArrowIn>> read, bool convert);
  void ReadList(nb::handle list, const KeyCodec& codec, const char* argument);
  void ReadColumns(nb::handle tuple, const KeyCodec& codec, const char* argument);
  void ReadArrow(std::unique_ptr<ArrowIn> arrow, const KeyCodec& codec, const char* argument);
  ColumnSpan ReadColumn(nb::handle object, size_t part, DataType type, const std::string& where);
  std::unique_ptr<ArrowIn> ArrowOf(nb::handle object, size_t part);
  ColumnSpan ReadArrowColumn(const ArrowIn& arrow, size_t i, DataType type,
                             const std::string& where);
  void Encode(const KeyCodec& codec, absl::Span<const ColumnSpan> parts, const char* argument);
  void Append(const KeyCodec& codec, nb::handle key, const std::string& where);

  const bool convert_;  // convert integers of other types
  KeyBatch batch_;
  std::vector<std::unique_ptr<ArrowIn>> read_;
  std::deque<Buffer> buffers_;
  std::vector<std::unique_ptr<ArrowIn>> arrows_;
  std::deque<ArrowValues> columns_;
  std::deque<ExactIntegers> integers_;
  nb::object items_;  // of a list whose text is searched in place
  std::vector<std::string_view> views_;
  std::vector<DataValue> values_;
  EncodedKeys encoded_;
};

// A ColumnSpan of `type` over NumPy's buffer.
ColumnSpan PartOf(const Buffer& buffer, DataType type);

}  // namespace cairn::python
