#include "engine/extract/row_extractor.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/extract/row_part.h"
#include "index/columns/tuple.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

absl::Status KeyTooLong(size_t bytes) {
  return absl::InvalidArgumentError(absl::StrFormat("expected at most %d bytes in a key, found %d",
                                                    KeyCodec::kMaxKeyBytes, bytes));
}

void AppendFixed(uint64_t key, EncodedKeys* keys) {
  if (keys->kind() == PhysicalType::kU32) {
    keys->AppendU32(static_cast<uint32_t>(key));
  } else {
    keys->AppendU64(key);
  }
}

}  // namespace

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
  std::string heap;
  std::vector<Slice> slices;        // of all parts, one after the other
  std::vector<size_t> part_begins;  // in `slices`: begin of each part, then the end
  std::vector<size_t> chosen;       // value of each part in the current combination
  std::string key;
};

// Encodes one part's values into a scratch. Accepts no more values after one that does not fit.
class RowExtractor::PartSink : public KeySink {
 public:
  PartSink(const RowPart& part, Scratch::State* state)
      : part_(part), state_(state), first_(state->slices.size()) {}

  void Add(const DataValue& value) override {
    const bool null = std::holds_alternative<std::monostate>(value);
    if (!status_.ok() || (null && part_.layout.nulls == NullPolicy::kSkip)) return;
    const size_t offset = state_->heap.size();
    status_ = AppendPart(part_.layout, value, &state_->heap);
    if (status_.ok()) Keep(offset);
  }

  // Adds the value that a single-valued part has in the row, if any. Returns false if it is
  // unreadable.
  bool AddFrom(const RowView& row) {
    std::string_view bytes;
    uint64_t ordered = 0;
    const PartRead read =
        part_.width == 0 ? part_.ReadBytes(row, &bytes) : part_.ReadNumber(row, &ordered);
    if (read != PartRead::kFound) return read == PartRead::kMissing;
    if (part_.width == 0) {
      Add(bytes);
    } else {
      const size_t offset = state_->heap.size();
      AppendPartNumber(part_.layout, ordered, &state_->heap);
      Keep(offset);
    }
    return true;
  }

  // Returns the number of values so far.
  size_t size() const { return state_->slices.size() - first_; }
  const absl::Status& status() const { return status_; }

  // Sorts the values and removes duplicates.
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

  const RowPart& part_;
  Scratch::State* const state_;
  const size_t first_;
  absl::Status status_;
};

// Writes a column's value. A row has at most one.
class RowExtractor::TupleSink : public KeySink {
 public:
  explicit TupleSink(TupleWriter* tuple) : tuple_(tuple), column_(tuple->size()) {}

  void Add(const DataValue& value) override {
    if (!status_.ok()) return;
    status_ = tuple_->size() == column_
                  ? tuple_->Add(value)
                  : absl::InvalidArgumentError("expected one value in a row, found several");
  }
  // A row without a value has a null.
  absl::Status Finish() {
    if (status_.ok() && tuple_->size() == column_) Add(std::monostate());
    return status_;
  }

 private:
  TupleWriter* const tuple_;
  const size_t column_;
  absl::Status status_;
};

RowExtractor::Scratch::Scratch() : state_(std::make_unique<State>()) {}
RowExtractor::Scratch::~Scratch() = default;
RowExtractor::Scratch::Scratch(Scratch&&) noexcept = default;
RowExtractor::Scratch& RowExtractor::Scratch::operator=(Scratch&&) noexcept = default;

absl::StatusOr<RowExtractor> RowExtractor::Create(const IndexSpec& spec) {
  ASSIGN_OR_RETURN(KeyCodec codec, spec.Codec());
  RowExtractor extractor(std::move(codec));
  std::vector<RowPart> parts;
  for (size_t i = 0; i < spec.parts.size(); ++i) {
    ASSIGN_OR_RETURN(RowPart part,
                     RowPart::Compile(spec.parts[i], absl::StrFormat("part %d", i + 1),
                                      PartLayout::Of(extractor.codec_, i)));
    extractor.single_valued_ = extractor.single_valued_ && part.single_valued();
    parts.push_back(std::move(part));
  }
  extractor.plain_ =
      extractor.single_valued_ && parts.size() == 1 && spec.nulls == NullPolicy::kSkip;
  extractor.parts_ = std::make_shared<const std::vector<RowPart>>(std::move(parts));

  std::vector<RowPart> included;
  for (const IncludedColumn& column : spec.include) {
    PartLayout layout;
    layout.type = column.value.type;
    ASSIGN_OR_RETURN(
        RowPart part,
        RowPart::Compile(column.value, absl::StrFormat("column '%s'", column.name), layout));
    extractor.plain_columns_ = extractor.plain_columns_ && part.single_valued();
    included.push_back(std::move(part));
    extractor.included_types_.push_back(column.value.type);
  }
  extractor.included_ = std::make_shared<const std::vector<RowPart>>(std::move(included));
  return extractor;
}

absl::Status RowExtractor::ExtractAny(const RowView& row, Scratch* scratch, EncodedKeys* keys,
                                      std::string* tuple) const {
  if (tuple == nullptr) return ExtractKeys(row, scratch, keys);
  tuple->clear();
  const size_t before = keys->size();
  RETURN_IF_ERROR(ExtractKeys(row, scratch, keys));
  if (keys->size() == before) return absl::OkStatus();
  absl::Status status = ExtractTuple(row, scratch, tuple);
  if (!status.ok()) keys->Truncate(before);
  return status;
}

absl::Status RowExtractor::ExtractKeys(const RowView& row, Scratch* scratch,
                                       EncodedKeys* keys) const {
  assert(keys->kind() == codec_.kind());
  if (plain_) return ExtractPlain(row, keys);
  if (!single_valued_) return ExtractCombined(row, scratch, keys);
  return codec_.kind() == PhysicalType::kBytes ? ExtractBytes(row, scratch, keys)
                                               : ExtractPacked(row, keys);
}

absl::Status RowExtractor::ExtractPlain(const RowView& row, EncodedKeys* keys) const {
  const RowPart& part = parts_->front();
  std::string_view bytes;
  uint64_t ordered = 0;
  switch (part.width == 0 ? part.ReadBytes(row, &bytes) : part.ReadNumber(row, &ordered)) {
    case PartRead::kMissing:
      return absl::OkStatus();
    case PartRead::kUnreadable:
      return part.Unreadable(row);
    case PartRead::kFound:
      break;
  }
  if (part.width != 0) {
    AppendFixed(ordered, keys);
  } else {
    if (bytes.size() > KeyCodec::kMaxKeyBytes) return part.Here(KeyTooLong(bytes.size()));
    keys->AppendBytes(bytes);
  }
  return absl::OkStatus();
}

absl::Status RowExtractor::ExtractPacked(const RowView& row, EncodedKeys* keys) const {
  uint64_t key = 0;
  for (const RowPart& part : *parts_) {
    uint64_t ordered = 0;
    const PartRead read = part.ReadNumber(row, &ordered);
    if (read == PartRead::kUnreadable) return part.Unreadable(row);
    const bool found = read == PartRead::kFound;
    if (!found && part.layout.nulls == NullPolicy::kSkip) return absl::OkStatus();
    // The shift is less than 64: a part among several, or one with a byte for nulls, has fewer than
    // 64 bits.
    key = key << (8 * part.layout.width()) |
          (found ? PackedNumber(part.layout, ordered) : PackedNull(part.layout));
  }
  AppendFixed(key, keys);
  return absl::OkStatus();
}

absl::Status RowExtractor::ExtractBytes(const RowView& row, Scratch* scratch,
                                        EncodedKeys* keys) const {
  std::string& key = scratch->state_->key;
  key.clear();
  for (const RowPart& part : *parts_) {
    std::string_view bytes;
    uint64_t ordered = 0;
    absl::Status status;
    switch (part.width == 0 ? part.ReadBytes(row, &bytes) : part.ReadNumber(row, &ordered)) {
      case PartRead::kUnreadable:
        return part.Unreadable(row);
      case PartRead::kMissing:
        if (part.layout.nulls == NullPolicy::kSkip) return absl::OkStatus();
        status = AppendPart(part.layout, std::monostate(), &key);
        break;
      case PartRead::kFound:
        if (part.width == 0) {
          status = AppendPart(part.layout, bytes, &key);
        } else {
          AppendPartNumber(part.layout, ordered, &key);
        }
        break;
    }
    if (status.ok() && key.size() > KeyCodec::kMaxKeyBytes) status = KeyTooLong(key.size());
    if (!status.ok()) return part.Here(status);
  }
  keys->AppendBytes(key);
  return absl::OkStatus();
}

absl::Status RowExtractor::ExtractCombined(const RowView& row, Scratch* scratch,
                                           EncodedKeys* keys) const {
  Scratch::State& state = *scratch->state_;
  state.heap.clear();
  state.slices.clear();
  state.part_begins.clear();
  for (const RowPart& part : *parts_) {
    state.part_begins.push_back(state.slices.size());
    PartSink sink(part, &state);
    absl::Status status;
    if (!part.single_valued()) {
      status = ReadSeveral(part, row, scratch, &sink);
    } else if (!sink.AddFrom(row)) {
      return part.Unreadable(row);
    }
    // A row without a value has one null.
    if (status.ok() && sink.status().ok() && sink.size() == 0) sink.Add(std::monostate());
    if (status.ok()) status = sink.status();
    if (!status.ok()) return part.Here(status);
    if (sink.size() == 0) return absl::OkStatus();
    sink.Finish();
  }
  state.part_begins.push_back(state.slices.size());
  return AppendCombinations(scratch, keys);
}

absl::Status RowExtractor::ReadSeveral(const RowPart& part, const RowView& row, Scratch* scratch,
                                       KeySink* sink) {
  if (part.source.kind == KeySource::Kind::kCustom) return part.custom->Extract(row, sink);
  Scratch::State& state = *scratch->state_;
  if (!scratch->json_is_parsed_) {
    RETURN_IF_ERROR(state.json.Parse(row.value));
    scratch->json_is_parsed_ = true;
  }
  return state.json.Values(*part.pointer, part.layout.type, sink);
}

absl::Status RowExtractor::ExtractTuple(const RowView& row, Scratch* scratch,
                                        std::string* tuple) const {
  TupleWriter writer(included_types_, tuple);
  for (const RowPart& part : *included_) {
    if (part.single_valued()) {
      DataValue value;
      if (part.ReadValue(row, &value) == PartRead::kUnreadable) return part.Unreadable(row);
      if (absl::Status status = writer.Add(value); !status.ok()) return part.Here(status);
    } else {
      TupleSink sink(&writer);
      absl::Status status = ReadSeveral(part, row, scratch, &sink);
      if (status.ok()) status = sink.Finish();
      if (!status.ok()) return part.Here(status);
    }
  }
  return absl::OkStatus();
}

absl::Status RowExtractor::ReadIncluded(const RowView& row, absl::Span<DataValue> values) const {
  for (size_t i = 0; i < values.size(); ++i) {
    const RowPart& part = (*included_)[i];
    switch (part.ReadValue(row, &values[i])) {
      case PartRead::kUnreadable:
        return part.Unreadable(row);
      case PartRead::kMissing:
        values[i] = std::monostate();
        continue;
      case PartRead::kFound:
        break;
    }
    const auto* const text = std::get_if<std::string_view>(&values[i]);
    if (text != nullptr && text->size() > KeyCodec::kMaxKeyBytes) {
      return part.Here(absl::InvalidArgumentError(absl::StrFormat(
          "expected at most %d bytes, found %d", KeyCodec::kMaxKeyBytes, text->size())));
    }
  }
  return absl::OkStatus();
}

// Each part's values are distinct and in order, and encodings keep the order of tuples. So the
// combinations are distinct and in order if the last part's value changes fastest.
absl::Status RowExtractor::AppendCombinations(Scratch* scratch, EncodedKeys* keys) const {
  Scratch::State& state = *scratch->state_;
  const size_t parts = parts_->size();
  size_t combinations = 1;
  size_t longest = 0;  // size of the longest key in bytes
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
  if (longest > KeyCodec::kMaxKeyBytes) return KeyTooLong(longest);
  if (longest > kMaxKeyBytesPerRow / combinations) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected at most %d bytes of keys in a row, found %d keys of up to %d",
                        kMaxKeyBytesPerRow, combinations, longest));
  }
  state.chosen.assign(state.part_begins.begin(), state.part_begins.end() - 1);
  for (size_t n = 0; n < combinations; ++n) {
    state.key.clear();
    for (const size_t slice : state.chosen) state.key.append(state.bytes(state.slices[slice]));
    if (codec_.kind() == PhysicalType::kBytes) {
      keys->AppendBytes(state.key);
    } else {
      AppendFixed(ReadBigEndian(state.key), keys);
    }
    for (size_t part = parts; part-- > 0;) {
      if (++state.chosen[part] < state.part_begins[part + 1]) break;
      state.chosen[part] = state.part_begins[part];
    }
  }
  return absl::OkStatus();
}

}  // namespace cairn
