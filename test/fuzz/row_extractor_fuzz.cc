// Arbitrary bytes as rows under a set of specs. The first byte is the length of the primary key;
// the rest is the value, and a column of an entity. Keys must ascend, and their codec must decode
// them; a second extraction must return the same keys.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "engine/extract/row_extractor.h"

namespace {

using cairn::ColumnView;
using cairn::EncodedKeys;
using cairn::IndexSpec;
using cairn::PhysicalType;
using cairn::RowExtractor;
using cairn::RowView;

constexpr std::string_view kSpecs[] = {
    "value[0:8]:u64be",
    "value[3:2]:i16le",
    "value[1:]:text",
    "value:f32le",
    "key[1:4]:f32be,nulls=last",
    "key:bytes,value:bytes,nulls=first",
    "value.field('|',2):text",
    "value.field(',',1):f64",
    "value.field(',',0):i8,value.field(',',1):u8,nulls=last",
    "value.json(''):text",
    "value.json('/a'):i64",
    "value.json('/a/0'):f32,nulls=first",
    "value.json('/a'):text,value.json('/b'):f64",
    "value.json('/a'):u8,value.json('/b'):i16,nulls=last",
    "column('c'):text",
    "column('d'):u32le,key:text,nulls=first",
    "column(''):bytes",
};

const std::vector<RowExtractor>& Extractors() {
  static const auto* const extractors = [] {
    auto* compiled = new std::vector<RowExtractor>;
    for (const std::string_view text : kSpecs) {
      const auto spec = IndexSpec::Parse(text);
      if (!spec.ok()) std::abort();
      auto extractor = RowExtractor::Create(*spec);
      if (!extractor.ok()) std::abort();
      compiled->push_back(*std::move(extractor));
    }
    return compiled;
  }();
  return *extractors;
}

void Require(bool condition) {
  if (!condition) std::abort();
}

int Compare(const EncodedKeys& keys, size_t i, const EncodedKeys& others, size_t j) {
  if (keys.kind() == PhysicalType::kBytes) return keys.bytes(i).compare(others.bytes(j));
  const bool narrow = keys.kind() == PhysicalType::kU32;
  const uint64_t a = narrow ? keys.u32(i) : keys.u64(i);
  const uint64_t b = narrow ? others.u32(j) : others.u64(j);
  return a < b ? -1 : a > b;
}

void CheckRow(const RowView& row, RowExtractor::Scratch* scratch) {
  bool first = true;
  for (const RowExtractor& extractor : Extractors()) {
    EncodedKeys keys(extractor.codec().kind());
    EncodedKeys again(extractor.codec().kind());
    const absl::Status status = first ? extractor.Extract(row, scratch, &keys)
                                      : extractor.ExtractAgain(row, scratch, &keys);
    first = false;
    RowExtractor::Scratch fresh;
    Require(extractor.Extract(row, &fresh, &again) == status && keys.size() == again.size());
    Require(status.ok() || (absl::IsInvalidArgument(status) && keys.empty()));
    for (size_t i = 0; i < keys.size(); ++i) {
      Require(Compare(keys, i, again, i) == 0);
      Require(i == 0 || Compare(keys, i - 1, keys, i) < 0);
      Require(extractor.codec().Format(keys, i).ok());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static auto* const scratch = new RowExtractor::Scratch;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t split = std::min<size_t>(data[0], input.size());
  const std::string_view value = input.substr(split);
  const ColumnView columns[] = {{"", value}, {"c", input}, {"d", input.substr(0, split)}};
  CheckRow({input.substr(0, split), value, {}}, scratch);
  CheckRow({input.substr(0, split), value, columns}, scratch);
  return 0;
}
