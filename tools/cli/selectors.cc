#include "tools/cli/selectors.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <istream>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"
#include "tools/cli/command.h"

namespace cairn::tools {
namespace {

constexpr char kSelectors[] = "Entries (at least one)";

template <typename T>
std::string BigEndian(T number) {
  std::string bytes(sizeof number, '\0');
  for (size_t i = sizeof number; i-- > 0; number = static_cast<T>(number >> 8)) {
    bytes[i] = static_cast<char>(number & 0xff);
  }
  return bytes;
}

template <typename T>
T FromBigEndian(std::string_view bytes) {
  T number = 0;
  for (const char c : bytes) number = static_cast<T>(number << 8 | static_cast<uint8_t>(c));
  return number;
}

std::string AsBytes(const EncodedKeys& keys, size_t i) {
  switch (keys.kind()) {
    case PhysicalType::kU32:
      return BigEndian(keys.u32(i));
    case PhysicalType::kU64:
      return BigEndian(keys.u64(i));
    case PhysicalType::kBytes:
      return std::string(keys.bytes(i));
  }
  return "";
}

// The range of one key.
KeyRange Only(PhysicalType kind, std::string key) {
  KeyRange range{key, std::move(key), false};
  if (kind == PhysicalType::kBytes) {
    range.upper.push_back('\0');
    return range;
  }
  // The number's successor: a carry runs through the trailing bytes of FF.
  const size_t last = range.upper.find_last_not_of('\xff');
  if (last == std::string::npos) {
    range.open = true;
    return range;
  }
  ++range.upper[last];
  std::fill(range.upper.begin() + static_cast<ptrdiff_t>(last) + 1, range.upper.end(), '\0');
  return range;
}

// A usage error that names the selector that the codec rejects, and the reason.
absl::Status Refused(std::string_view selector, std::string_view text, const absl::Status& why) {
  return UsageError(absl::StrFormat("%s '%s': %s", selector, text, std::string(why.message())));
}

absl::StatusOr<KeyRange> ParseEqual(const KeyCodec& codec, std::string_view selector,
                                    std::string_view text) {
  EncodedKeys keys(codec.kind());
  if (absl::Status s = codec.Parse(text, &keys); !s.ok()) return Refused(selector, text, s);
  return Only(codec.kind(), AsBytes(keys, 0));
}

absl::StatusOr<KeyRange> ParsePrefix(const KeyCodec& codec, std::string_view text) {
  EncodedKeys lower(codec.kind()), upper(codec.kind());
  bool open = false;
  if (absl::Status s = codec.ParsePrefix(text, &lower, &upper, &open); !s.ok()) {
    return Refused("--prefix", text, s);
  }
  return KeyRange{AsBytes(lower, 0), open ? "" : AsBytes(upper, 0), open};
}

// Parses one end of --range: a whole key, or leading parts, which mean the lowest key that starts
// with them.
absl::StatusOr<std::string> ParseEnd(const KeyCodec& codec, std::string_view range,
                                     std::string_view end) {
  EncodedKeys keys(codec.kind()), upper(codec.kind());
  const absl::Status whole = codec.Parse(end, &keys);
  if (whole.ok()) return AsBytes(keys, 0);
  bool open = false;
  if (codec.parts().size() == 1 || !codec.ParsePrefix(end, &keys, &upper, &open).ok()) {
    return Refused("--range", range, whole);
  }
  return AsBytes(keys, 0);
}

absl::StatusOr<KeyRange> ParseRange(const KeyCodec& codec, std::string_view text) {
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    return UsageError(absl::StrFormat("--range '%s': expected LO..HI, LO.., ..HI or ..", text));
  }
  const std::string_view lower = text.substr(0, dots);
  const std::string_view upper = text.substr(dots + 2);
  KeyRange range;
  range.open = upper.empty();
  if (!lower.empty()) {
    ASSIGN_OR_RETURN(range.lower, ParseEnd(codec, text, lower));
  }
  if (!upper.empty()) {
    ASSIGN_OR_RETURN(range.upper, ParseEnd(codec, text, upper));
  }
  return range;
}

absl::Status ParseFile(const KeyCodec& codec, const std::string& file,
                       std::vector<KeyRange>* ranges) {
  std::ifstream opened;
  if (file != "-") {
    opened.open(file);
    if (!opened) return absl::NotFoundError(absl::StrFormat("cannot read '%s'", file));
  }
  std::istream& lines = file == "-" ? std::cin : opened;
  uint64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    ASSIGN_OR_RETURN(KeyRange range,
                     ParseEqual(codec, absl::StrFormat("%s, line %d,", file, number), line));
    ranges->push_back(std::move(range));
  }
  if (lines.bad()) return absl::DataLossError(absl::StrFormat("cannot read '%s' to its end", file));
  return absl::OkStatus();
}

}  // namespace

void SelectorOptions::AddTo(CLI::App* app) {
  app_ = app;
  eq_ = AddValues(app, "--eq", "KEY", "This key")->group(kSelectors);
  range_ =
      AddValues(app, "--range", "LO..HI",
                "Keys from LO, below HI; either may be omitted ('..' is everything). Write two "
                "dots inside a key as \\x2e\\x2e")
          ->group(kSelectors);
  prefix_ = AddValues(app, "--prefix", "PREFIX",
                      "Keys with these leading parts; the last one, of text or bytes, may be a "
                      "prefix")
                ->group(kSelectors);
  keys_ =
      AddValues(app, "--keys", "FILE", "The keys in a file, one per line; '-' is standard input")
          ->group(kSelectors);
}

bool SelectorOptions::given() const {
  return eq_->count() + range_->count() + prefix_->count() + keys_->count() > 0;
}

absl::StatusOr<std::vector<KeyRange>> SelectorOptions::Parse(const KeyCodec& codec) const {
  std::vector<KeyRange> ranges;
  std::map<const CLI::Option*, size_t> used;
  bool any = false;
  for (const CLI::Option* option : app_->parse_order()) {
    if (option != eq_ && option != range_ && option != prefix_ && option != keys_) continue;
    any = true;
    const std::string text = option->results()[used[option]++];
    if (option == keys_) {
      RETURN_IF_ERROR(ParseFile(codec, text, &ranges));
      continue;
    }
    ASSIGN_OR_RETURN(KeyRange range, option == eq_      ? ParseEqual(codec, "--eq", text)
                                     : option == range_ ? ParseRange(codec, text)
                                                        : ParsePrefix(codec, text));
    ranges.push_back(std::move(range));
  }
  if (!any) {
    return UsageError(
        "no entries selected: expected --eq, --range, --prefix or --keys (--range=.. selects all)");
  }
  return ranges;
}

std::vector<KeyRange> Disjoint(std::vector<KeyRange> ranges) {
  ranges.erase(std::remove_if(ranges.begin(), ranges.end(),
                              [](const KeyRange& range) { return range.empty(); }),
               ranges.end());
  std::sort(ranges.begin(), ranges.end(),
            [](const KeyRange& a, const KeyRange& b) { return a.lower < b.lower; });
  std::vector<KeyRange> disjoint;
  for (KeyRange& range : ranges) {
    if (disjoint.empty() || (!disjoint.back().open && disjoint.back().upper < range.lower)) {
      disjoint.push_back(std::move(range));
      continue;
    }
    KeyRange& last = disjoint.back();
    if (last.open) break;
    if (range.open || last.upper < range.upper) {
      last.upper = std::move(range.upper);
      last.open = range.open;
    }
  }
  return disjoint;
}

void RangeColumns::Clear() {
  lower_.Clear(lower_.kind());
  upper_.Clear(upper_.kind());
  upper_bounds_.clear();
}

void RangeColumns::Append(const std::string& key, EncodedKeys* keys) {
  switch (keys->kind()) {
    case PhysicalType::kU32:
      return keys->AppendU32(FromBigEndian<uint32_t>(key));
    case PhysicalType::kU64:
      return keys->AppendU64(FromBigEndian<uint64_t>(key));
    case PhysicalType::kBytes:
      return keys->AppendBytes(key);
  }
}

void RangeColumns::Add(const KeyRange& range) {
  Append(range.lower, &lower_);
  Append(range.open ? "" : range.upper, &upper_);
  upper_bounds_.push_back(range.open ? Bound::kOpen : Bound::kExclusive);
}

void RangeColumns::AddEqual(const EncodedKeys& keys, size_t i) {
  const std::string key = AsBytes(keys, i);
  Append(key, &lower_);
  Append(key, &upper_);
  upper_bounds_.push_back(Bound::kInclusive);
}

RangeBatch RangeColumns::Batch() {
  RangeBatch batch;
  batch.lower = lower_.Batch();
  batch.upper = upper_.Batch();
  batch.upper_bounds = upper_bounds_;
  return batch;
}

bool SameKey(const EncodedKeys& keys, size_t i, size_t j) {
  switch (keys.kind()) {
    case PhysicalType::kU32:
      return keys.u32(i) == keys.u32(j);
    case PhysicalType::kU64:
      return keys.u64(i) == keys.u64(j);
    case PhysicalType::kBytes:
      return keys.bytes(i) == keys.bytes(j);
  }
  return false;
}

}  // namespace cairn::tools
