// Extract/<source>/<type>: a spec's keys from rows of about 100 bytes, each row once, in rows per
// second. Extract/baseline:load/u64 is the same loop with a hand-written load instead of a spec.
// The rows and their keys stay in the L2 cache: the measured time excludes reading from memory.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/extract/row_extractor.h"
#include "tools/bench/data.h"

namespace cairn::bench::extract {
namespace {

constexpr size_t kRows = size_t{1} << 12;

// Rows that contain a key for every spec below, and the fields from which they were made.
struct Rows {
  std::vector<std::string> primary_keys;
  std::vector<std::string> binary;     // number (8 bytes, big-endian), 12 letters, filler
  std::vector<std::string> delimited;  // five fields
  std::vector<std::string> json;
  std::vector<uint64_t> numbers;
  std::vector<uint32_t> small;
  std::vector<std::string> letters;
};

std::string Letters(Random* random, size_t size) {
  std::string letters(size, ' ');
  for (char& c : letters) c = static_cast<char>('a' + random->Below(26));
  return letters;
}

const Rows& TheRows() {
  static const Rows* const rows = [] {
    auto* made = new Rows;
    Random random(kSeed);
    for (size_t i = 0; i < kRows; ++i) {
      const uint64_t number = random();
      const uint32_t small = static_cast<uint32_t>(random.Below(100000));
      const std::string letters = Letters(&random, 12);
      std::string binary;
      for (int byte = 7; byte >= 0; --byte) {
        binary.push_back(static_cast<char>(number >> (8 * byte)));
      }
      binary += letters;
      binary += Letters(&random, 80);
      made->primary_keys.push_back(absl::StrFormat("row-%012d", i));
      made->binary.push_back(binary);
      made->delimited.push_back(absl::StrFormat("%s|%d|%s|%d|%s", Letters(&random, 30), number,
                                                letters, small, Letters(&random, 20)));
      made->json.push_back(absl::StrFormat(
          R"({"id":%d,"name":"%s","address":{"city":"%s","zip":%d},"tags":["x","y"]})", number,
          Letters(&random, 20), letters, small));
      made->numbers.push_back(number);
      made->small.push_back(small);
      made->letters.push_back(letters);
    }
    return made;
  }();
  return *rows;
}

enum class Form : uint8_t { kBinary, kDelimited, kJson };

const std::vector<std::string>& Values(Form form) {
  const Rows& rows = TheRows();
  return form == Form::kBinary      ? rows.binary
         : form == Form::kDelimited ? rows.delimited
                                    : rows.json;
}

// The expected text of a key, computed from the source of its row.
using Expected = std::string (*)(const Rows& rows, size_t i);

void CountRows(benchmark::State& state) {
  const double rows = static_cast<double>(kRows);
  state.counters["rows_per_s"] =
      benchmark::Counter(rows, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["ns_per_row"] = benchmark::Counter(
      rows * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void Extract(benchmark::State& state, const char* text, Form form, Expected expected) {
  const auto spec = IndexSpec::Parse(text);
  if (!spec.ok()) return state.SkipWithError("the spec is wrong");
  const auto extractor = RowExtractor::Create(*spec);
  if (!extractor.ok()) return state.SkipWithError("the spec does not compile");
  const Rows& rows = TheRows();
  const std::vector<std::string>& values = Values(form);
  std::vector<RowView> views;
  for (size_t i = 0; i < kRows; ++i) views.push_back({rows.primary_keys[i], values[i], {}});

  RowExtractor::Scratch scratch;
  EncodedKeys keys(extractor->codec().kind());
  absl::Status status;
  for (auto _ : state) {
    keys.Clear(extractor->codec().kind());
    for (const RowView& row : views) status.Update(extractor->Extract(row, &scratch, &keys));
    benchmark::DoNotOptimize(keys);
  }
  if (!status.ok() || keys.size() != kRows) return state.SkipWithError("rows were not read");
  for (size_t i = 0; i < kRows; ++i) {
    const auto key = extractor->codec().Format(keys, i);
    if (!key.ok() || *key != expected(rows, i)) return state.SkipWithError("a key is wrong");
  }
  CountRows(state);
}

void HandWrittenLoad(benchmark::State& state) {
  const Rows& rows = TheRows();
  EncodedKeys keys(PhysicalType::kU64);
  for (auto _ : state) {
    keys.Clear(PhysicalType::kU64);
    for (const std::string& value : rows.binary) {
      if (value.size() < 8) continue;
      uint64_t number;
      std::memcpy(&number, value.data(), sizeof(number));
      keys.AppendU64(__builtin_bswap64(number));
    }
    benchmark::DoNotOptimize(keys);
  }
  for (size_t i = 0; i < kRows; ++i) {
    if (keys.u64(i) != rows.numbers[i]) return state.SkipWithError("a key is wrong");
  }
  CountRows(state);
}

std::string Number(const Rows& rows, size_t i) {
  return absl::StrFormat("%d", rows.numbers[i]);
}
std::string Small(const Rows& rows, size_t i) {
  return absl::StrFormat("%d", rows.small[i]);
}
std::string Word(const Rows& rows, size_t i) {
  return rows.letters[i];
}
std::string PrimaryKey(const Rows& rows, size_t i) {
  return rows.primary_keys[i];
}
std::string WordAndSmall(const Rows& rows, size_t i) {
  return absl::StrFormat("%s,%d", rows.letters[i], rows.small[i]);
}
std::string Halves(const Rows& rows, size_t i) {
  return absl::StrFormat("%d,%d", rows.numbers[i] >> 32, rows.numbers[i] & UINT32_MAX);
}

BENCHMARK(HandWrittenLoad)->Name("Extract/baseline:load/u64");
BENCHMARK_CAPTURE(Extract, "", "value[0:8]:u64be", Form::kBinary, Number)
    ->Name("Extract/value_range/u64");
BENCHMARK_CAPTURE(Extract, "", "value[8:12]:text", Form::kBinary, Word)
    ->Name("Extract/value_range/text");
BENCHMARK_CAPTURE(Extract, "", "key:bytes", Form::kBinary, PrimaryKey)->Name("Extract/key/bytes");
BENCHMARK_CAPTURE(Extract, "", "value[0:4]:u32be,value[4:4]:u32be", Form::kBinary, Halves)
    ->Name("Extract/value_range/u32,u32");
BENCHMARK_CAPTURE(Extract, "", "value.field('|',2):text", Form::kDelimited, Word)
    ->Name("Extract/field/text");
BENCHMARK_CAPTURE(Extract, "", "value.field('|',3):u32", Form::kDelimited, Small)
    ->Name("Extract/field/u32");
BENCHMARK_CAPTURE(Extract, "", "value.field('|',2):text,value.field('|',3):u32", Form::kDelimited,
                  WordAndSmall)
    ->Name("Extract/field/text,u32");
BENCHMARK_CAPTURE(Extract, "", "value.json('/id'):u64", Form::kJson, Number)
    ->Name("Extract/json/u64");
BENCHMARK_CAPTURE(Extract, "", "value.json('/address/city'):text", Form::kJson, Word)
    ->Name("Extract/json/text");
BENCHMARK_CAPTURE(Extract, "", "value.json('/address/city'):text,value.json('/address/zip'):u32",
                  Form::kJson, WordAndSmall)
    ->Name("Extract/json/text,u32");

}  // namespace
}  // namespace cairn::bench::extract
