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

// A compiled spec, which extracts physical keys from rows. Immutable and thread-safe; each thread
// uses its own Scratch.
//
// Rules for reading a row, in addition to those of cairn/index_spec.h:
//   - A byte range is null if the value ends before it: it starts past the end, or at the end with
//     an explicit length. An empty value, field or column is an empty text.
//   - Numbers in delimited fields are decimal, in the format of KeyCodec::Parse.
//   - Without an entity, the column named '' is the row's value, and the others are missing.
//   - JSON is validated as a whole (RFC 8259, UTF-8). json_row.h describes how values become keys.
//   - Parts with several values produce every combination.
//   - Parts are read in order. Under NullPolicy::kSkip, a part without a value ends the row, and
//     later parts are not read.
class RowExtractor {
 public:
  // The working memory of Extract. Reuse one for many rows and several specs. Not thread-safe.
  class Scratch;

  // The maximum number of keys per row, and of bytes of its byte-string keys.
  static constexpr size_t kMaxKeysPerRow = 65536;
  static constexpr size_t kMaxKeyBytesPerRow = size_t{64} << 20;

  // InvalidArgument, naming the part: no row could satisfy the spec. NotFound: a custom extractor
  // is not registered.
  static absl::StatusOr<RowExtractor> Create(const IndexSpec& spec);

  const KeyCodec& codec() const { return codec_; }

  bool includes() const { return !included_->empty(); }
  // Returns whether ReadIncluded may be called: no included column is from JSON or a custom
  // extractor.
  bool has_plain_columns() const { return plain_columns_; }

  // Appends the row's distinct keys in ascending order; none if the row has no entry. Requires that
  // keys->kind() is codec().kind(). If `tuple` is not null, sets it to the tuple (tuple.h) of the
  // row's included columns. If the row has no key, `tuple` becomes empty and the columns are not
  // read. On error no key is appended. InvalidArgument, naming the part or the column, with the
  // expected and the found value: the row cannot be read. A custom extractor's error is returned in
  // the same way.
  absl::Status Extract(const RowView& row, Scratch* scratch, EncodedKeys* keys,
                       std::string* tuple = nullptr) const;

  // The same, if the last Extract with this scratch, for any spec, was of this same row. JSON that
  // was parsed then is not parsed again.
  absl::Status ExtractAgain(const RowView& row, Scratch* scratch, EncodedKeys* keys,
                            std::string* tuple = nullptr) const;

  // Sets values[i] to the row's value in included column i; text points into the row. Requires
  // has_plain_columns() and one value per column. Errors: those of Extract.
  absl::Status ReadIncluded(const RowView& row, absl::Span<DataValue> values) const;

 private:
  class PartSink;
  class TupleSink;

  explicit RowExtractor(KeyCodec codec) : codec_(std::move(codec)) {}

  absl::Status ExtractAny(const RowView& row, Scratch* scratch, EncodedKeys* keys,
                          std::string* tuple) const;
  absl::Status ExtractKeys(const RowView& row, Scratch* scratch, EncodedKeys* keys) const;
  absl::Status ExtractTuple(const RowView& row, Scratch* scratch, std::string* tuple) const;
  // One function per kind of spec, the cheapest first.
  absl::Status ExtractPlain(const RowView& row, EncodedKeys* keys) const;
  absl::Status ExtractPacked(const RowView& row, EncodedKeys* keys) const;
  absl::Status ExtractBytes(const RowView& row, Scratch* scratch, EncodedKeys* keys) const;
  absl::Status ExtractCombined(const RowView& row, Scratch* scratch, EncodedKeys* keys) const;
  absl::Status AppendCombinations(Scratch* scratch, EncodedKeys* keys) const;
  // Passes the values of a part that may have several to the sink.
  static absl::Status ReadSeveral(const RowPart& part, const RowView& row, Scratch* scratch,
                                  KeySink* sink);

  KeyCodec codec_;
  // Shared by copies of this extractor, so copying is cheap.
  std::shared_ptr<const std::vector<RowPart>> parts_;
  std::shared_ptr<const std::vector<RowPart>> included_;
  std::vector<DataType> included_types_;
  bool plain_columns_ = true;
  bool single_valued_ = true;  // every part has at most one value
  bool plain_ = false;         // and there is one part, without nulls, whose value is the key
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
  bool json_is_parsed_ = false;  // the current row's
};

// Inline, so that a plain key costs no additional call.

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
