#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "cairn/device/index_group.h"

// Predicates as SQL defines them, row by row; and random ones.
namespace cairn::gpu {

// A column's key of each row, or none.
using KeysOfRows = std::vector<std::optional<uint64_t>>;

// True, false, or unknown.
inline std::optional<bool> Evaluate(const DevicePredicate& where,
                                    const std::vector<KeysOfRows>& columns, size_t row) {
  using Kind = DevicePredicate::Kind;
  switch (where.kind()) {
    case Kind::kIsNull:
      return !columns[where.column()][row].has_value();
    case Kind::kKeys: {
      const std::optional<uint64_t> key = columns[where.column()][row];
      if (!key.has_value()) return std::nullopt;
      return std::any_of(where.ranges().begin(), where.ranges().end(), [&](DeviceKeyRange range) {
        return range.first <= *key && *key <= range.last;
      });
    }
    case Kind::kNot: {
      const std::optional<bool> of = Evaluate(where.children()[0], columns, row);
      return of.has_value() ? std::optional<bool>(!*of) : of;
    }
    case Kind::kAnd:
    case Kind::kOr:
      break;
  }
  // One child with this value decides.
  const bool decides = where.kind() == Kind::kOr;
  bool unknown = false;
  for (const DevicePredicate& child : where.children()) {
    const std::optional<bool> of = Evaluate(child, columns, row);
    if (of == decides) return decides;
    unknown = unknown || !of.has_value();
  }
  return unknown ? std::nullopt : std::optional<bool>(!decides);
}

// A tree of random comparisons with present keys and adjacent ones.
class RandomPredicates {
 public:
  RandomPredicates(const std::vector<KeysOfRows>& columns, std::mt19937_64* random)
      : columns_(columns), random_(*random) {}

  DevicePredicate Make(int depth) {
    const uint64_t kind = random_() % 8;
    if (depth == 0 || kind == 0) return Comparison();
    if (kind == 1) return !Make(depth - 1);
    std::vector<DevicePredicate> children;
    for (uint64_t i = random_() % 3 + 1; i > 0; --i) children.push_back(Make(depth - 1));
    return kind % 2 == 0 ? DevicePredicate::All(std::move(children))
                         : DevicePredicate::Any(std::move(children));
  }

  DevicePredicate Comparison() {
    const size_t column = random_() % columns_.size();
    switch (random_() % 6) {
      case 0:
        return DevicePredicate::IsNull(column);
      case 1: {
        std::vector<uint64_t> keys(random_() % 20);
        for (uint64_t& key : keys) key = Key(column);
        return DevicePredicate::In(column, keys);
      }
      case 2: {
        std::vector<DeviceKeyRange> ranges(random_() % 5);
        for (DeviceKeyRange& range : ranges) range = {Key(column), Key(column)};
        return DevicePredicate::InRanges(column, ranges);
      }
      case 3:
        return DevicePredicate::Range(column, 0, Key(column));
      default: {
        const uint64_t a = Key(column), b = Key(column);
        return DevicePredicate::Range(column, std::min(a, b), std::max(a, b));
      }
    }
  }

 private:
  uint64_t Key(size_t column) {
    const KeysOfRows& keys = columns_[column];
    const uint64_t key = keys.empty() ? 7 : keys[random_() % keys.size()].value_or(random_());
    switch (random_() % 8) {
      case 0:
        return key + 1;
      case 1:
        return key - 1;
      case 2:
        return random_() % 2 == 0 ? 0 : UINT64_MAX;
      default:
        return key;
    }
  }

  const std::vector<KeysOfRows>& columns_;
  std::mt19937_64& random_;
};

}  // namespace cairn::gpu
