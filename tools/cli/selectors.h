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

// A half-open range of physical keys, as bytes in the order of the keys: numbers are big-endian.
struct KeyRange {
  std::string lower;
  std::string upper;  // unused if `open`
  bool open = false;  // there is no upper end

  bool empty() const { return !open && upper <= lower; }
};

// The entries that a command line selects: any number of --eq, --range, --prefix and --keys.
class SelectorOptions {
 public:
  void AddTo(CLI::App* app);

  // Whether there is a selector.
  bool given() const;
  // The ranges in the order of the command line; each key of a --keys file is a range. Errors: a
  // usage error if there is none, or if the codec rejects one; NotFound for a file.
  absl::StatusOr<std::vector<KeyRange>> Parse(const KeyCodec& codec) const;

 private:
  CLI::App* app_ = nullptr;
  CLI::Option* eq_ = nullptr;
  CLI::Option* range_ = nullptr;
  CLI::Option* prefix_ = nullptr;
  CLI::Option* keys_ = nullptr;
};

// Returns disjoint, ascending and non-empty ranges that together contain what `ranges` contain, so
// that each entry is printed once and in key order.
std::vector<KeyRange> Disjoint(std::vector<KeyRange> ranges);

// Ranges in the form of a query.
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

// Whether two keys of one column are equal.
bool SameKey(const EncodedKeys& keys, size_t i, size_t j);

}  // namespace cairn::tools
