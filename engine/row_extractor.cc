#include "engine/row_extractor.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/json_row.h"
#include "engine/key_part.h"
#include "index/escaped_text.h"
#include "index/key_encoding.h"

namespace cairn {
namespace {

constexpr uint64_t kToTheEnd = std::numeric_limits<uint64_t>::max();

enum class Located : uint8_t { kFound, kMissing, kCutShort };

uint64_t LoadNumber(const char* bytes, size_t width, Endian endian) {
  switch (width) {
    case 1:
      return static_cast<unsigned char>(*bytes);
    case 2: {
      uint16_t number;
      std::memcpy(&number, bytes, sizeof(number));
      return endian == Endian::kLittle ? number : __builtin_bswap16(number);
    }
    case 4: {
      uint32_t number;
      std::memcpy(&number, bytes, sizeof(number));
      return endian == Endian::kLittle ? number : __builtin_bswap32(number);
    }
    default: {
      uint64_t number;
      std::memcpy(&number, bytes, sizeof(number));
      return endian == Endian::kLittle ? number : __builtin_bswap64(number);
    }
  }
}

Located LocateRange(std::string_view source, uint64_t offset, uint64_t length,
                    std::string_view* bytes) {
  // What starts at the end is there, and empty, where it has no length of its own.
  if (offset > source.size() || (offset == source.size() && length != kToTheEnd)) {
    return Located::kMissing;
  }
  const size_t rest = source.size() - offset;
  if (length != kToTheEnd && length > rest) return Located::kCutShort;
  *bytes = std::string_view(source.data() + offset, std::min<uint64_t>(length, rest));
  return Located::kFound;
}

Located LocateField(std::string_view value, char delimiter, uint32_t field,
                    std::string_view* bytes) {
  for (; field != 0; --field) {
    const size_t end = value.find(delimiter);
    if (end == std::string_view::npos) return Located::kMissing;
    value.remove_prefix(end + 1);
  }
  *bytes = value.substr(0, value.find(delimiter));
  return Located::kFound;
}

Located LocateColumn(const RowView& row, std::string_view name, std::string_view* bytes) {
  if (row.columns.empty() && name.empty()) {
    *bytes = row.value;
    return Located::kFound;
  }
  for (const ColumnView& column : row.columns) {
    if (column.name != name) continue;
    *bytes = column.value;
    return Located::kFound;
  }
  return Located::kMissing;
}

}  // namespace

struct RowExtractor::Part {
  // Where the part's bytes are in the row; for sources that have one value at most.
  Located Locate(const RowView& row, std::string_view* bytes) const {
    switch (kind) {
      case KeySource::Kind::kKey:
        return LocateRange(row.primary_key, offset, length, bytes);
      case KeySource::Kind::kValue:
        return LocateRange(row.value, offset, length, bytes);
      case KeySource::Kind::kField:
        return LocateField(row.value, delimiter, field, bytes);
      default:
        return LocateColumn(row, name, bytes);
    }
  }

  // The OrderedBits of a number that was located.
  absl::Status ReadNumber(std::string_view bytes, uint64_t* ordered) const {
    uint64_t bits = 0;
    if (kind == KeySource::Kind::kField) {
      KeyValue value;
      if (absl::Status status = ParseNumber(bytes, layout.type, &value); !status.ok()) {
        return status;
      }
      if (absl::Status status = NumberBits(value, layout.type, &bits); !status.ok()) return status;
    } else {
      if (bytes.size() != width) {
        return absl::InvalidArgumentError(
            absl::StrFormat("expected %d bytes, found %d", width, bytes.size()));
      }
      bits = LoadNumber(bytes.data(), width, endian);
    }
    *ordered = OrderedBits(bits, layout.type);
    return absl::OkStatus();
  }

  absl::Status CutShort(const RowView& row) const {
    const size_t size = kind == KeySource::Kind::kKey ? row.primary_key.size() : row.value.size();
    return absl::InvalidArgumentError(absl::StrFormat("expected %d bytes from offset %d, found %d",
                                                      length, offset, size - offset));
  }

  // `status` with this part's position and text before its message.
  absl::Status Here(const absl::Status& status) const {
    return absl::Status(status.code(), absl::StrFormat("%s: %s", title, status.message()));
  }

  KeySource::Kind kind = KeySource::Kind::kValue;
  Endian endian = Endian::kBig;
  char delimiter = 0;
  uint32_t field = 0;
  size_t width = 0;             // of a number in bytes, else 0
  uint64_t offset = 0;          // of a range
  uint64_t length = kToTheEnd;  // of a range
  std::string name;             // of a column
  JsonPointer pointer;
  std::shared_ptr<const KeyExtractor> custom;
  PartLayout layout;
  std::string title;  // "part 2 (value[8:4]:u32le)"
};

// The values of a row's parts, encoded.
struct RowExtractor::Scratch::State {
  struct Slice {
    size_t offset;  // in `heap`
    size_t size;
  };
  std::string_view bytes(const Slice& slice) const {
    return std::string_view(heap).substr(slice.offset, slice.size);
  }

  JsonRow json;
  bool json_is_parsed = false;  // of the row at hand
  std::string heap;
  std::vector<Slice> slices;        // of all parts, one behind the other
  std::vector<size_t> part_begins;  // in `slices`, of each part and behind the last one
  std::vector<size_t> chosen;       // of each part, while combinations are made
  std::string key;
};

// Encodes one part's values into a scratch. Once a value does not fit, it takes no more.
class RowExtractor::PartSink : public KeySink {
 public:
  PartSink(const Part& part, Scratch::State* state)
      : part_(part), state_(state), first_(state->slices.size()) {}

  void Add(const KeyValue& value) override {
    const bool null = std::holds_alternative<std::monostate>(value);
    if (!status_.ok() || (null && part_.layout.nulls == NullPolicy::kSkip)) return;
    const size_t offset = state_->heap.size();
    status_ = AppendPart(part_.layout, value, &state_->heap);
    if (status_.ok()) Keep(offset);
  }

  void AddNumber(uint64_t ordered) {
    const size_t offset = state_->heap.size();
    AppendPartNumber(part_.layout, ordered, &state_->heap);
    Keep(offset);
  }

  // The number of values so far.
  size_t size() const { return state_->slices.size() - first_; }
  const absl::Status& status() const { return status_; }

  // Sorts the values and drops those that are there twice.
  void Finish() {
    if (size() < 2) return;
    auto& slices = state_->slices;
    const auto begin = slices.begin() + static_cast<ptrdiff_t>(first_);
    std::sort(begin, slices.end(),
              [this](const auto& a, const auto& b) { return state_->bytes(a) < state_->bytes(b); });
    slices.erase(std::unique(begin, slices.end(),
                             [this](const auto& a, const auto& b) {
                               return state_->bytes(a) == state_->bytes(b);
                             }),
                 slices.end());
  }

 private:
  void Keep(size_t offset) {
    state_->slices.push_back({offset, state_->heap.size() - offset});
    if (size() > kMaxKeysPerRow) {
      status_ = absl::InvalidArgumentError(
          absl::StrFormat("expected at most %d values in a row, found more", kMaxKeysPerRow));
    } else if (state_->heap.size() > kMaxKeyBytesPerRow) {
      status_ = absl::InvalidArgumentError(absl::StrFormat(
          "expected at most %d bytes of values in a row, found more", kMaxKeyBytesPerRow));
    }
  }

  const Part& part_;
  Scratch::State* const state_;
  const size_t first_;
  absl::Status status_;
};

RowExtractor::Scratch::Scratch() : state_(std::make_unique<State>()) {}
RowExtractor::Scratch::~Scratch() = default;
RowExtractor::Scratch::Scratch(Scratch&&) noexcept = default;
RowExtractor::Scratch& RowExtractor::Scratch::operator=(Scratch&&) noexcept = default;

absl::StatusOr<RowExtractor> RowExtractor::Create(const IndexSpec& spec) {
  absl::StatusOr<KeyCodec> codec = spec.Codec();
  if (!codec.ok()) return codec.status();
  RowExtractor extractor(*std::move(codec));
  std::vector<Part> parts;
  for (size_t i = 0; i < spec.parts.size(); ++i) {
    const KeySource& source = spec.parts[i].source;
    Part part;
    part.kind = source.kind;
    part.endian = spec.parts[i].endian;
    part.delimiter = source.delimiter;
    part.field = source.field;
    part.width = FixedWidth(spec.parts[i].type);
    part.offset = source.offset;
    part.length = source.length.value_or(kToTheEnd);
    part.name = source.name;
    part.layout = PartLayout::Of(extractor.codec_, i);
    part.title = absl::StrFormat("part %d (%s)", i + 1, PartText(spec.parts[i]));
    if (absl::Status sound = CheckPart(spec.parts[i]); !sound.ok()) return part.Here(sound);
    if (part.kind == KeySource::Kind::kJson) {
      absl::StatusOr<JsonPointer> pointer = JsonPointer::Parse(source.name);
      if (!pointer.ok()) return part.Here(pointer.status());
      part.pointer = *std::move(pointer);
    } else if (part.kind == KeySource::Kind::kCustom) {
      absl::StatusOr<std::shared_ptr<const KeyExtractor>> custom = FindExtractor(source.name);
      if (!custom.ok()) return part.Here(custom.status());
      part.custom = *std::move(custom);
    }
    parts.push_back(std::move(part));
  }
  extractor.plain_ = parts.size() == 1 && spec.nulls == NullPolicy::kSkip &&
                     parts[0].kind != KeySource::Kind::kJson &&
                     parts[0].kind != KeySource::Kind::kCustom;
  extractor.parts_ = std::make_shared<const std::vector<Part>>(std::move(parts));
  return extractor;
}

absl::Status RowExtractor::Extract(const RowView& row, Scratch* scratch, KeyColumn* keys) const {
  scratch->state_->json_is_parsed = false;
  return ExtractAgain(row, scratch, keys);
}

absl::Status RowExtractor::ExtractAgain(const RowView& row, Scratch* scratch,
                                        KeyColumn* keys) const {
  assert(keys->kind() == codec_.kind());
  return plain_ ? ExtractPlain(row, keys) : ExtractCombined(row, scratch, keys);
}

absl::Status RowExtractor::ExtractPlain(const RowView& row, KeyColumn* keys) const {
  const Part& part = parts_->front();
  std::string_view bytes;
  switch (part.Locate(row, &bytes)) {
    case Located::kMissing:
      return absl::OkStatus();
    case Located::kCutShort:
      return part.Here(part.CutShort(row));
    case Located::kFound:
      break;
  }
  if (part.width == 0) {
    if (bytes.size() > KeyCodec::kMaxKeyBytes) {
      return part.Here(absl::InvalidArgumentError(absl::StrFormat(
          "expected at most %d bytes in a key, found %d", KeyCodec::kMaxKeyBytes, bytes.size())));
    }
    keys->AppendBytes(bytes);
    return absl::OkStatus();
  }
  uint64_t ordered = 0;
  if (absl::Status status = part.ReadNumber(bytes, &ordered); !status.ok()) {
    return part.Here(status);
  }
  if (codec_.kind() == KeyKind::kU32) {
    keys->AppendU32(static_cast<uint32_t>(ordered));
  } else {
    keys->AppendU64(ordered);
  }
  return absl::OkStatus();
}

absl::Status RowExtractor::ExtractCombined(const RowView& row, Scratch* scratch,
                                           KeyColumn* keys) const {
  Scratch::State& state = *scratch->state_;
  state.heap.clear();
  state.slices.clear();
  state.part_begins.clear();
  for (const Part& part : *parts_) {
    state.part_begins.push_back(state.slices.size());
    PartSink sink(part, &state);
    absl::Status status;
    if (part.kind == KeySource::Kind::kJson) {
      // An empty value is no document; where it was not parsed, the last error is found again.
      if (!state.json_is_parsed) status = state.json.Parse(row.value);
      state.json_is_parsed = status.ok();
      if (status.ok()) status = state.json.Values(part.pointer, part.layout.type, &sink);
    } else if (part.kind == KeySource::Kind::kCustom) {
      status = part.custom->Extract(row, &sink);
    } else {
      std::string_view bytes;
      const Located located = part.Locate(row, &bytes);
      if (located == Located::kCutShort) {
        status = part.CutShort(row);
      } else if (located == Located::kFound && part.width == 0) {
        sink.Add(bytes);
      } else if (located == Located::kFound) {
        uint64_t ordered = 0;
        status = part.ReadNumber(bytes, &ordered);
        if (status.ok()) sink.AddNumber(ordered);
      }
    }
    // No value at all is one null.
    if (status.ok() && sink.status().ok() && sink.size() == 0) sink.Add(std::monostate());
    if (status.ok()) status = sink.status();
    if (!status.ok()) return part.Here(status);
    if (sink.size() == 0) return absl::OkStatus();
    sink.Finish();
  }
  state.part_begins.push_back(state.slices.size());
  return AppendCombinations(scratch, keys);
}

// Since every part's values are distinct and in order, and encodings keep the order of tuples, the
// combinations come out distinct and in order when the last part's value changes fastest.
absl::Status RowExtractor::AppendCombinations(Scratch* scratch, KeyColumn* keys) const {
  Scratch::State& state = *scratch->state_;
  const size_t parts = parts_->size();
  size_t combinations = 1;
  size_t longest = 0;  // key in bytes
  for (size_t part = 0; part < parts; ++part) {
    combinations *= state.part_begins[part + 1] - state.part_begins[part];
    if (combinations > kMaxKeysPerRow) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "expected at most %d keys in a row, found more, the combinations of the values of its "
          "parts",
          kMaxKeysPerRow));
    }
    size_t longest_value = 0;
    for (size_t i = state.part_begins[part]; i < state.part_begins[part + 1]; ++i) {
      longest_value = std::max(longest_value, state.slices[i].size);
    }
    longest += longest_value;
  }
  if (longest > KeyCodec::kMaxKeyBytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "expected at most %d bytes in a key, found %d", KeyCodec::kMaxKeyBytes, longest));
  }
  if (longest > kMaxKeyBytesPerRow / combinations) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected at most %d bytes of keys in a row, found %d keys of up to %d",
                        kMaxKeyBytesPerRow, combinations, longest));
  }
  state.chosen.assign(state.part_begins.begin(), state.part_begins.end() - 1);
  for (size_t n = 0; n < combinations; ++n) {
    state.key.clear();
    for (const size_t slice : state.chosen) state.key.append(state.bytes(state.slices[slice]));
    if (codec_.kind() == KeyKind::kBytes) {
      keys->AppendBytes(state.key);
    } else if (codec_.kind() == KeyKind::kU32) {
      keys->AppendU32(static_cast<uint32_t>(ReadBigEndian(state.key)));
    } else {
      keys->AppendU64(ReadBigEndian(state.key));
    }
    for (size_t part = parts; part-- > 0;) {
      if (++state.chosen[part] < state.part_begins[part + 1]) break;
      state.chosen[part] = state.part_begins[part];
    }
  }
  return absl::OkStatus();
}

}  // namespace cairn
