#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/extractor.h"
#include "cairn/index_spec.h"

namespace cairn {

struct RowPart;

// A spec, compiled: takes the physical keys from a row. Immutable and thread-safe; each thread
// brings a Scratch of its own.
//
// How a row is read, beyond what cairn/index_spec.h says:
//   - A byte range is null where none of it is there: it starts behind the end, or at the end and
//     has a length. An empty value, field or column is an empty text.
//   - Numbers in delimited fields are decimal, as KeyCodec::Parse takes them.
//   - Without an entity, the column named '' is the row's value, and others are missing.
//   - JSON is checked as a whole, RFC 8259 in UTF-8 (json_row.h says how values become keys).
//   - Parts with several values give every combination.
//   - Parts are read in order. Under NullPolicy::kSkip a part without a value ends the row: what
//     stands behind it is not looked at.
class RowExtractor {
 public:
  // What Extract works in. Reuse one for many rows, and for several specs; not thread-safe.
  class Scratch;

  // The most keys, and the most bytes of byte-string keys, that one row may give.
  static constexpr size_t kMaxKeysPerRow = 65536;
  static constexpr size_t kMaxKeyBytesPerRow = size_t{64} << 20;

  // InvalidArgument, naming the part, for a spec that no row could satisfy; NotFound for a custom
  // extractor that is not registered.
  static absl::StatusOr<RowExtractor> Create(const IndexSpec& spec);

  const KeyCodec& codec() const { return codec_; }

  // Whether the spec includes columns.
  bool includes() const { return !included_->empty(); }
  // Whether ReadIncluded may be called: no column's value is made of JSON or by custom code.
  bool has_plain_columns() const { return plain_columns_; }

  // Appends the row's distinct keys in ascending order: none where it has no entry. Requires that
  // keys->kind() be codec().kind(). If `tuple` is not null, sets it to the tuple (tuple.h) of the
  // row's included columns; to nothing where the row has no key, and is not looked at any further.
  // InvalidArgument, naming the part or the column and what was expected and found there, for a row
  // that cannot be read; a custom extractor's own error, likewise. No key is appended on an error.
  absl::Status Extract(const RowView& row, Scratch* scratch, EncodedKeys* keys,
                       std::string* tuple = nullptr) const;

  // The same where the scratch's last Extract, of whatever spec, was of this very row: JSON that
  // was parsed then is not parsed again.
  absl::Status ExtractAgain(const RowView& row, Scratch* scratch, EncodedKeys* keys,
                            std::string* tuple = nullptr) const;

  // Sets values[i] to the row's value in included column i; text points into the row. Requires
  // has_plain_columns() and one value a column. Errors as Extract's.
  absl::Status ReadIncluded(const RowView& row, absl::Span<DataValue> values) const;

 private:
  class PartSink;
  class TupleSink;

  explicit RowExtractor(KeyCodec codec) : codec_(std::move(codec)) {}

  absl::Status ExtractAny(const RowView& row, Scratch* scratch, EncodedKeys* keys,
                          std::string* tuple) const;
  absl::Status ExtractKeys(const RowView& row, Scratch* scratch, EncodedKeys* keys) const;
  absl::Status ExtractTuple(const RowView& row, Scratch* scratch, std::string* tuple) const;
  // One for each way that a spec's keys come about, the cheapest first.
  absl::Status ExtractPlain(const RowView& row, EncodedKeys* keys) const;
  absl::Status ExtractPacked(const RowView& row, EncodedKeys* keys) const;
  absl::Status ExtractBytes(const RowView& row, Scratch* scratch, EncodedKeys* keys) const;
  absl::Status ExtractCombined(const RowView& row, Scratch* scratch, EncodedKeys* keys) const;
  absl::Status AppendCombinations(Scratch* scratch, EncodedKeys* keys) const;
  // Gives the sink the values of a part that may have several.
  static absl::Status ReadSeveral(const RowPart& part, const RowView& row, Scratch* scratch,
                                  KeySink* sink);

  KeyCodec codec_;
  // Shared by copies of this extractor, which are cheap.
  std::shared_ptr<const std::vector<RowPart>> parts_;
  std::shared_ptr<const std::vector<RowPart>> included_;
  std::vector<DataType> included_types_;
  bool plain_columns_ = true;
  bool single_valued_ = true;  // every part has one value at most
  bool plain_ = false;         // and there is one part, without nulls: its value is the key
};

class RowExtractor::Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(Scratch&&) noexcept;
  Scratch& operator=(Scratch&&) noexcept;

 private:
  friend class RowExtractor;
  struct State;
  std::unique_ptr<State> state_;
  bool json_is_parsed_ = false;  // of the row at hand
};

// Inline, so that a plain key costs no more calls than one.

inline absl::Status RowExtractor::Extract(const RowView& row, Scratch* scratch, EncodedKeys* keys,
                                          std::string* tuple) const {
  scratch->json_is_parsed_ = false;
  return ExtractAgain(row, scratch, keys, tuple);
}

inline absl::Status RowExtractor::ExtractAgain(const RowView& row, Scratch* scratch,
                                               EncodedKeys* keys, std::string* tuple) const {
  if (plain_ && tuple == nullptr) return ExtractPlain(row, keys);
  return ExtractAny(row, scratch, keys, tuple);
}

}  // namespace cairn
