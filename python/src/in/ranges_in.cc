#include "python/src/in/ranges_in.h"

#include <string_view>

#include "python/src/base/errors.h"
#include "python/src/in/arguments.h"
#include "python/src/in/values.h"

namespace cairn::python {
namespace {

// Whether `object` is a list of keys, or a range of integers.
bool IsSequence(nb::handle object) {
  return PyList_Check(object.ptr()) || PyRange_Check(object.ptr());
}

// The keys of a list, or a single key.
nb::object KeysOf(nb::handle object) {
  if (IsSequence(object)) return nb::borrow(object);
  nb::list one;
  one.append(object);
  return one;
}

// Whether `object` may contain keys with fewer parts than the index: a list of tuples or values, or
// a single one. Columns contain whole keys.
bool MayBePartial(nb::handle object, const KeyCodec& codec) {
  if (codec.parts().size() == 1) return false;
  if (IsSequence(object)) return true;
  if (!PyTuple_Check(object.ptr())) return IsValue(object);
  for (nb::handle value : object) {
    if (!IsValue(value)) return false;
  }
  return true;
}

std::string At(const char* argument, size_t i) {
  return std::string(argument) + "[" + std::to_string(i) + "]";
}

}  // namespace

RangesIn::RangesIn(const RangeArguments& arguments, const KeyCodec& codec)
    : lower_encoded_(codec.kind()), upper_encoded_(codec.kind()) {
  const bool ends = !arguments.lower.is_none() || !arguments.upper.is_none();
  const int ways = (ends ? 1 : 0) + (arguments.keys.is_none() ? 0 : 1) +
                   (arguments.prefix.is_none() ? 0 : 1) + (arguments.leading.is_none() ? 0 : 1);
  if (ways > 1)
    ThrowInvalid("lower and upper, keys, prefix, leading: expected one of these, found several");
  if (ends) {
    ReadEnds(arguments, codec);
  } else if (!arguments.keys.is_none()) {
    lower_.emplace(arguments.keys, codec, "keys");
    batch_ = RangeBatch::Equal(lower_->batch());
  } else if (!arguments.prefix.is_none()) {
    ReadPrefixes(arguments.prefix, /*last_is_prefix=*/true, codec, "prefix");
  } else if (!arguments.leading.is_none()) {
    ReadPrefixes(arguments.leading, /*last_is_prefix=*/false, codec, "leading");
  } else {
    batch_ = RangeBatch::Everything(codec.kind());
  }
  if (arguments.after.is_none()) return;
  if (!PyList_Check(arguments.after.ptr()) && !PyTuple_Check(arguments.after.ptr())) {
    throw PythonError("ArgumentTypeError",
                      "after: expected a list, the cursors of an earlier call, found " +
                          Described(arguments.after));
  }
  for (nb::handle cursor : arguments.after) {
    after_.push_back(ReadBytes(cursor, ("after[" + std::to_string(after_.size()) + "]").c_str()));
  }
  if (after_.size() != batch_.size()) {
    ThrowInvalid("after: expected " + std::to_string(batch_.size()) +
                 " cursors, one per range, found " + std::to_string(after_.size()));
  }
  batch_.after = after_;
}

KeyBatch RangesIn::ReadEnd(nb::handle object, char bound, const KeyCodec& codec,
                           const char* argument, std::optional<KeysIn>* keys,
                           EncodedKeys* encoded) {
  if (!MayBePartial(object, codec)) {
    keys->emplace(object, codec, argument);
    return (*keys)->batch();
  }
  std::vector<DataValue> values;
  EncodedKeys unused(codec.kind());
  size_t i = 0;
  for (nb::handle key : KeysOf(object)) {
    const nb::object held = ValuesOfKey(key, codec, /*partial=*/true, At(argument, i), &values);
    bool open = false;
    if (values.size() < codec.parts().size() && bound != '[' && bound != ')') {
      ThrowInvalid(At(argument, i) +
                   ": a key with fewer parts means the first one that begins "
                   "with it, so bounds must be '[)'; leading= finds all such keys");
    }
    const absl::Status status =
        values.size() == codec.parts().size()
            ? codec.Append(values, encoded)
            : codec.AppendPrefixRange(values, /*last_is_prefix=*/false, encoded, &unused, &open);
    if (!status.ok()) ThrowInvalid(At(argument, i) + ": " + std::string(status.message()));
    ++i;
  }
  return encoded->Batch();
}

void RangesIn::ReadEnds(const RangeArguments& arguments, const KeyCodec& codec) {
  const std::string_view bounds = arguments.bounds;
  if (bounds.size() != 2 || (bounds[0] != '[' && bounds[0] != '(') ||
      (bounds[1] != ']' && bounds[1] != ')')) {
    ThrowInvalid("bounds: expected '[)', '[]', '(]' or '()', found '" + std::string(bounds) + "'");
  }
  const bool lower = !arguments.lower.is_none();
  const bool upper = !arguments.upper.is_none();
  if (lower) {
    batch_.lower = ReadEnd(arguments.lower, bounds[0], codec, "lower", &lower_, &lower_encoded_);
  }
  if (upper) {
    batch_.upper = ReadEnd(arguments.upper, bounds[1], codec, "upper", &upper_, &upper_encoded_);
  }
  // A missing end is open, and its keys are ignored.
  if (!lower) batch_.lower = batch_.upper;
  if (!upper) batch_.upper = batch_.lower;
  if (batch_.lower.size() != batch_.upper.size()) {
    ThrowInvalid("upper: expected the number of ends in lower, " +
                 std::to_string(batch_.lower.size()) + ", found " +
                 std::to_string(batch_.upper.size()));
  }
  batch_.lower_bound = !lower             ? Bound::kOpen
                       : bounds[0] == '[' ? Bound::kInclusive
                                          : Bound::kExclusive;
  batch_.upper_bound = !upper             ? Bound::kOpen
                       : bounds[1] == ']' ? Bound::kInclusive
                                          : Bound::kExclusive;
}

void RangesIn::ReadPrefixes(nb::handle object, bool last_is_prefix, const KeyCodec& codec,
                            const char* argument) {
  if (last_is_prefix && KeysAreValues(codec) && IsText(codec.parts()[0])) {
    lower_.emplace(object, codec, argument);
    batch_ = RangeBatch::Prefix(lower_->batch());
    return;
  }
  if (!MayBePartial(object, codec) && !IsSequence(object) && !IsValue(object) &&
      PyTuple_Check(object.ptr()) == 0) {
    ThrowKeyType(std::string(argument) + ": expected a list of tuples of leading values, found " +
                 Described(object));
  }
  std::vector<DataValue> values;
  size_t i = 0;
  for (nb::handle key : KeysOf(object)) {
    const nb::object held = ValuesOfKey(key, codec, /*partial=*/true, At(argument, i), &values);
    bool open = false;
    const absl::Status status =
        codec.AppendPrefixRange(values, last_is_prefix, &lower_encoded_, &upper_encoded_, &open);
    if (!status.ok()) ThrowInvalid(At(argument, i) + ": " + std::string(status.message()));
    upper_bounds_.push_back(open ? Bound::kOpen : Bound::kExclusive);
    ++i;
  }
  batch_.lower = lower_encoded_.Batch();
  batch_.upper = upper_encoded_.Batch();
  batch_.upper_bounds = upper_bounds_;
}

}  // namespace cairn::python
