#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cairn/where/predicate.h"

namespace cairn {

// A part of a key of the model; nullopt is null.
using ModelPart = std::optional<std::variant<int64_t, std::string>>;
using ModelKey = std::vector<ModelPart>;

inline bool IsNullKey(const ModelKey& key) {
  return std::any_of(key.begin(), key.end(), [](const ModelPart& part) { return !part; });
}

// A member of the modelled group: what it is called, and which keys a row has.
struct ModelMember {
  std::string name;
  bool keeps_nulls = false;
  bool nulls_last = false;
  std::vector<ModelKey> domain;  // that predicates are about
  size_t parts = 1;
};

// A row: its keys in each index, nulls among them where the index keeps these.
using ModelRow = std::vector<std::vector<ModelKey>>;
using ModelTable = std::map<std::string, ModelRow>;

enum class Truth { kFalse, kUnknown, kTrue };

// A predicate, and what it is of a row.
struct ModelPredicate {
  Predicate predicate;
  std::function<Truth(const ModelRow&)> truth;
};

inline LogicalKey ToLogical(const ModelKey& key) {
  std::vector<KeyValue> parts;
  for (const ModelPart& part : key) {
    if (!part) {
      parts.emplace_back();
    } else if (const auto* number = std::get_if<int64_t>(&*part)) {
      parts.emplace_back(*number);
    } else {
      parts.emplace_back(std::string_view(std::get<std::string>(*part)));
    }
  }
  return LogicalKey::OfParts(parts);
}

// What a comparison is of a row of which `is_true` says whether one of its keys, not null, fits.
inline Truth OfKeys(const std::vector<ModelKey>& keys, bool literal_null,
                    const std::function<bool(const ModelKey&)>& is_true) {
  bool null = literal_null || keys.empty();
  for (const ModelKey& key : keys) {
    if (IsNullKey(key)) {
      null = true;
    } else if (is_true(key)) {
      return Truth::kTrue;
    }
  }
  return null ? Truth::kUnknown : Truth::kFalse;
}

class PredicateMaker {
 public:
  PredicateMaker(std::vector<ModelMember> indexes, std::mt19937_64* random)
      : indexes_(std::move(indexes)), random_(*random) {}

  ModelPredicate Make(int depth) {
    const uint64_t kind = depth == 0 ? 0 : random_() % 5;
    if (kind <= 1) return Comparison();
    if (kind == 2) {
      ModelPredicate inner = Make(depth - 1);
      return {!inner.predicate, [truth = inner.truth](const ModelRow& row) {
                return static_cast<Truth>(2 - static_cast<int>(truth(row)));
              }};
    }
    std::vector<Predicate> predicates;
    std::vector<std::function<Truth(const ModelRow&)>> truths;
    for (uint64_t n = 2 + random_() % 3; n > 0; --n) {
      ModelPredicate part = Make(depth - 1);
      predicates.push_back(part.predicate);
      truths.push_back(part.truth);
    }
    const bool all = kind == 3;
    return {all ? Predicate::All(predicates) : Predicate::Any(predicates),
            [truths, all](const ModelRow& row) {
              Truth truth = all ? Truth::kTrue : Truth::kFalse;
              for (const auto& of : truths) {
                truth = all ? std::min(truth, of(row)) : std::max(truth, of(row));
              }
              return truth;
            }};
  }

  // Makes null literals and IS NULL, too.
  bool with_nulls = true;

 private:
  ModelPredicate Comparison() {
    const size_t i = random_() % indexes_.size();
    const ModelMember& index = indexes_[i];
    const auto of = [i](bool null, auto is_true) {
      return [i, null, is_true](const ModelRow& row) { return OfKeys(row[i], null, is_true); };
    };
    const auto key = [&] {
      if (with_nulls && index.parts == 1 && random_() % 40 == 0) return ModelKey{std::nullopt};
      return index.domain[random_() % index.domain.size()];
    };
    switch (random_() % 6) {
      case 0: {
        std::vector<ModelKey> keys;
        for (uint64_t n = random_() % 4; n > 0; --n) keys.push_back(key());
        const bool null = std::any_of(keys.begin(), keys.end(), IsNullKey);
        std::vector<LogicalKey> logical;
        for (const ModelKey& k : keys) logical.push_back(ToLogical(k));
        return {Predicate(index.name, KeyQuery(logical)), of(null, [keys](const ModelKey& k) {
                  return std::find(keys.begin(), keys.end(), k) != keys.end();
                })};
      }
      case 1: {
        const ModelKey a = key();
        using Compare = Predicate::Comparison;
        const auto how = static_cast<Compare>(random_() % 4);
        return {Predicate::Compare(index.name, how, ToLogical(a)),
                of(IsNullKey(a), [a, how](const ModelKey& k) {
                  if (IsNullKey(a)) return false;
                  return how == Compare::kLess      ? k < a
                         : how == Compare::kAtMost  ? k <= a
                         : how == Compare::kGreater ? k > a
                                                    : k >= a;
                })};
      }
      case 2:
      case 3: {
        ModelKey a = index.domain[random_() % index.domain.size()];
        ModelKey b = index.domain[random_() % index.domain.size()];
        if (b < a && random_() % 8 != 0) std::swap(a, b);
        const bool inclusive = random_() % 2 == 0;
        return {inclusive ? Predicate::Between(index.name, ToLogical(a), ToLogical(b))
                          : Predicate(index.name, KeyQuery::Range(ToLogical(a), ToLogical(b))),
                of(false, [a, b, inclusive](const ModelKey& k) {
                  return k >= a && (inclusive ? k <= b : k < b);
                })};
      }
      case 4:
        // A row without keys is taken to be NULL by an index that keeps none.
        if (with_nulls && index.parts == 1 && index.keeps_nulls) {
          return {Predicate::IsNull(index.name), [i](const ModelRow& row) {
                    if (row[i].empty()) return Truth::kUnknown;
                    return std::any_of(row[i].begin(), row[i].end(), IsNullKey) ? Truth::kTrue
                                                                                : Truth::kFalse;
                  }};
        }
        break;
      default:
        break;
    }
    const ModelKey a = key();
    return {Predicate(index.name, KeyQuery(std::vector<LogicalKey>{ToLogical(a)})),
            of(IsNullKey(a), [a](const ModelKey& k) { return k == a; })};
  }

  const std::vector<ModelMember> indexes_;
  std::mt19937_64& random_;
};

// The primary keys of the rows that a predicate is true of.
inline std::vector<std::string> ModelAnswer(const ModelTable& rows, const ModelPredicate& where) {
  std::vector<std::string> found;
  for (const auto& [primary_key, row] : rows) {
    if (where.truth(row) == Truth::kTrue) found.push_back(primary_key);
  }
  return found;
}

// The same in the order of an index; those without a key there last, by primary key.
inline std::vector<std::string> ModelOrder(const ModelTable& rows,
                                           const std::vector<std::string>& found, size_t index,
                                           bool nulls_last, bool descending) {
  // Nulls stand where the index has them.
  using Sortable = std::vector<std::pair<int, std::variant<int64_t, std::string>>>;
  const auto sortable = [&](const ModelKey& key) {
    Sortable parts;
    for (const ModelPart& part : key) {
      parts.emplace_back(part ? 1 : nulls_last ? 2 : 0, part ? *part : int64_t{0});
    }
    return parts;
  };
  std::vector<std::pair<Sortable, std::string>> with;
  std::vector<std::string> without;
  for (const std::string& primary_key : found) {
    std::vector<Sortable> keys;
    for (const ModelKey& key : rows.at(primary_key)[index]) keys.push_back(sortable(key));
    if (keys.empty()) {
      without.push_back(primary_key);
    } else {
      with.emplace_back(descending ? *std::max_element(keys.begin(), keys.end())
                                   : *std::min_element(keys.begin(), keys.end()),
                        primary_key);
    }
  }
  std::sort(with.begin(), with.end());
  if (descending) std::reverse(with.begin(), with.end());
  std::vector<std::string> ordered;
  for (const auto& [key, primary_key] : with) ordered.push_back(primary_key);
  ordered.insert(ordered.end(), without.begin(), without.end());
  return ordered;
}

}  // namespace cairn
