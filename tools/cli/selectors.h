#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "cairn/types.h"

namespace cairn::tools {

// A half-open range of physical keys, each as bytes that compare as the keys do: numbers are
// big-endian.
struct KeyRange {
  std::string lower;
  std::string upper;  // not looked at where `open`
  bool open = false;  // there is no upper end

  bool empty() const { return !open && upper <= lower; }
};

// Which entries a command line asks for: --eq, --range, --prefix and --keys, any number of each.
class SelectorOptions {
 public:
  void AddTo(CLI::App* app);

  // Whether there is one.
  bool given() const;
  // The ranges in the order of the command line, each key of a --keys file one of them. A usage
  // error where there is none, or one that the codec cannot read; NotFound for a file.
  absl::StatusOr<std::vector<KeyRange>> Parse(const KeyCodec& codec) const;

 private:
  CLI::App* app_ = nullptr;
  CLI::Option* eq_ = nullptr;
  CLI::Option* range_ = nullptr;
  CLI::Option* prefix_ = nullptr;
  CLI::Option* keys_ = nullptr;
};

// The ranges that together hold what `ranges` hold, ascending, none of them empty, apart from one
// another: so that entries come in key order, and once.
std::vector<KeyRange> Disjoint(std::vector<KeyRange> ranges);

// Ranges as a query takes them.
class RangeColumns {
 public:
  explicit RangeColumns(PhysicalType kind) : lower_(kind), upper_(kind) {}

  void Clear();
  void Add(const KeyRange& range);
  void AddEqual(const EncodedKeys& keys, size_t i);
  // Valid until the columns change.
  RangeBatch Batch();

 private:
  void Append(const std::string& key, EncodedKeys* keys);

  EncodedKeys lower_;
  EncodedKeys upper_;
  std::vector<Bound> upper_bounds_;
};

// Two keys of one column, compared.
bool SameKey(const EncodedKeys& keys, size_t i, size_t j);

}  // namespace cairn::tools
