#pragma once

// Ranges of keys from Python: two ends, equal keys, prefixes or leading parts.

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <vector>

#include "cairn/query.h"
#include "python/src/in/keys_in.h"

namespace cairn::python {

// The arguments that define ranges; None if not given. If all are None, there is one range of all
// keys.
struct RangeArguments {
  nb::handle lower, upper;  // the ends
  nb::handle keys;          // or: entries with exactly these keys
  nb::handle prefix;        // or: text that starts with it, after equal leading parts
  nb::handle leading;       // or: keys whose first parts are these
  std::string bounds;       // of the ends: "[)", "[]", "(]", "()"
  nb::handle after;         // cursors
};

// The ranges of a batch. Keeps their keys alive.
class RangesIn {
 public:
  // Throws KeyTypeError, InvalidArgument.
  RangesIn(const RangeArguments& arguments, const KeyCodec& codec);
  RangesIn(const RangesIn&) = delete;
  RangesIn& operator=(const RangesIn&) = delete;

  RangeBatch batch() const { return batch_; }
  // As KeysIn::overlaps.
  bool overlaps(const void* data, size_t bytes) const {
    return (lower_.has_value() && lower_->overlaps(data, bytes)) ||
           (upper_.has_value() && upper_->overlaps(data, bytes));
  }

 private:
  void ReadEnds(const RangeArguments& arguments, const KeyCodec& codec);
  void ReadPrefixes(nb::handle object, bool last_is_prefix, const KeyCodec& codec,
                    const char* argument);
  KeyBatch ReadEnd(nb::handle object, char bound, const KeyCodec& codec, const char* argument,
                   std::optional<KeysIn>* keys, EncodedKeys* encoded);

  RangeBatch batch_;
  std::optional<KeysIn> lower_, upper_;
  EncodedKeys lower_encoded_, upper_encoded_;
  std::vector<Bound> upper_bounds_;
  std::vector<std::string> after_;
};

}  // namespace cairn::python
