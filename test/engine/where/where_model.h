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

#include "cairn/predicate.h"

namespace cairn {

// A part of a key of the model; nullopt is null.
using ModelPart = std::optional<std::variant<int64_t, std::string>>;
using ModelKey = std::vector<ModelPart>;

inline bool IsNullKey(const ModelKey& key) {
  return std::any_of(key.begin(), key.end(), [](const ModelPart& part) { return !part; });
}

// A member of the modeled group: its name and properties, and a row's keys.
struct ModelMember {
  std::string name;
  bool keeps_nulls = false;
  bool nulls_last = false;
  std::vector<ModelKey> domain;  // values in predicates
  size_t parts = 1;
};

// A row: its keys in each index, including nulls if the index keeps them.
using ModelRow = std::vector<std::vector<ModelKey>>;
using ModelTable = std::map<std::string, ModelRow>;

enum class Truth { kFalse, kUnknown, kTrue };

// A predicate, and its value for a row.
struct ModelPredicate {
  Predicate predicate;
  std::function<Truth(const ModelRow&)> truth;
};

inline LogicalKey ToLogical(const ModelKey& key) {
  std::vector<DataValue> parts;
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

inline Truth And(Truth a, Truth b) {
  return std::min(a, b);
}
inline Truth Not(Truth a) {
  return static_cast<Truth>(2 - static_cast<int>(a));
}

// SQL's comparisons of row values, part by part; a literal may have only the first parts.
inline Truth EqualParts(const ModelKey& key, const ModelKey& literal) {
  Truth truth = Truth::kTrue;
  for (size_t i = 0; i < literal.size(); ++i) {
    truth = And(truth, !key[i] || !literal[i]   ? Truth::kUnknown
                       : *key[i] == *literal[i] ? Truth::kTrue
                                                : Truth::kFalse);
  }
  return truth;
}
enum class Compare : uint8_t { kLess, kAtMost, kGreater, kAtLeast };
inline KeyQuery Compared(Compare how, const LogicalKey& key) {
  switch (how) {
    case Compare::kLess:
      return KeyQuery::LessThan(key);
    case Compare::kAtMost:
      return KeyQuery::AtMost(key);
    case Compare::kGreater:
      return KeyQuery::GreaterThan(key);
    case Compare::kAtLeast:
      break;
  }
  return KeyQuery::AtLeast(key);
}
inline Truth CompareParts(const ModelKey& key, Compare how, const ModelKey& literal) {
  const bool less = how == Compare::kLess || how == Compare::kAtMost;
  for (size_t i = 0; i < literal.size(); ++i) {
    if (!key[i] || !literal[i]) return Truth::kUnknown;
    if (*key[i] != *literal[i]) {
      return (*key[i] < *literal[i]) == less ? Truth::kTrue : Truth::kFalse;
    }
  }
  return how == Compare::kAtMost || how == Compare::kAtLeast ? Truth::kTrue : Truth::kFalse;
}
inline Truth PrefixParts(const ModelKey& key, const ModelKey& prefix) {
  const size_t last = prefix.size() - 1;
  const Truth begins = EqualParts(key, ModelKey(prefix.begin(), prefix.end() - 1));
  if (!key[last] || !prefix[last]) return And(begins, Truth::kUnknown);
  const auto& text = std::get<std::string>(*prefix[last]);
  return std::get<std::string>(*key[last]).compare(0, text.size(), text) == 0 ? begins
                                                                              : Truth::kFalse;
}

// The value of a comparison for a row; `truth` is that for one of its keys.
inline Truth OfKeys(const std::vector<ModelKey>& keys,
                    const std::function<Truth(const ModelKey&)>& truth) {
  Truth any = keys.empty() ? Truth::kUnknown : Truth::kFalse;
  for (const ModelKey& key : keys) any = std::max(any, truth(key));
  return any;
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
      return {!inner.predicate,
              [truth = inner.truth](const ModelRow& row) { return Not(truth(row)); }};
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

 private:
  using KeyTruth = std::function<Truth(const ModelKey&)>;

  // A key of the domain, or its first parts; some of them are null: the last ones, or any.
  ModelKey Literal(const ModelMember& index, bool any_null) {
    ModelKey key = index.domain[random_() % index.domain.size()];
    if (key.size() > 1 && random_() % 4 == 0) key.resize(1 + random_() % key.size());
    if (random_() % (index.parts == 1 ? 40 : 6) != 0) return key;
    const size_t null = random_() % key.size();
    key[null] = std::nullopt;
    for (size_t i = null + 1; i < key.size() && !any_null; ++i) key[i] = std::nullopt;
    return key;
  }

  ModelPredicate Comparison() {
    const size_t i = random_() % indexes_.size();
    const ModelMember& index = indexes_[i];
    const auto of = [i](const KeyTruth& truth) {
      return [i, truth](const ModelRow& row) { return OfKeys(row[i], truth); };
    };
    const auto compared = [&](Compare how, const ModelKey& a) {
      return ModelPredicate{Predicate(index.name, Compared(how, ToLogical(a))),
                            of([a, how](const ModelKey& k) { return CompareParts(k, how, a); })};
    };
    switch (random_() % 8) {
      case 0: {
        std::vector<ModelKey> keys;
        for (uint64_t n = random_() % 4; n > 0; --n) keys.push_back(Literal(index, false));
        std::vector<LogicalKey> logical;
        for (const ModelKey& k : keys) logical.push_back(ToLogical(k));
        return {Predicate(index.name, KeyQuery(logical)), of([keys](const ModelKey& k) {
                  Truth truth = Truth::kFalse;
                  for (const ModelKey& key : keys) truth = std::max(truth, EqualParts(k, key));
                  return truth;
                })};
      }
      case 1:
        return compared(static_cast<Compare>(random_() % 4), Literal(index, true));
      case 2:
      case 3: {
        ModelKey a = Literal(index, true), b = Literal(index, true);
        if (b < a && random_() % 8 != 0) std::swap(a, b);
        const Compare upper = random_() % 2 == 0 ? Compare::kAtMost : Compare::kLess;
        return {upper == Compare::kAtMost
                    ? Predicate(index.name, KeyQuery::Between(ToLogical(a), ToLogical(b)))
                    : Predicate(index.name, KeyQuery::Range(ToLogical(a), ToLogical(b))),
                of([a, b, upper](const ModelKey& k) {
                  return And(CompareParts(k, Compare::kAtLeast, a), CompareParts(k, upper, b));
                })};
      }
      case 4: {
        if (index.keeps_nulls && index.parts > 1) break;
        if (index.keeps_nulls) {
          return {Predicate::IsNull(index.name), [i](const ModelRow& row) {
                    if (row[i].empty()) return Truth::kUnknown;
                    return std::any_of(row[i].begin(), row[i].end(), IsNullKey) ? Truth::kTrue
                                                                                : Truth::kFalse;
                  }};
        }
        // Rows without keys in an index are found among those of another index, or of any.
        ModelPredicate bound = {Predicate::All({}), [](const ModelRow&) { return Truth::kTrue; }};
        if (const size_t other = random_() % indexes_.size(); other != i) {
          const ModelKey least =
              *std::min_element(indexes_[other].domain.begin(), indexes_[other].domain.end());
          bound = {Predicate(indexes_[other].name, KeyQuery::AtLeast(ToLogical(least))),
                   [other, least](const ModelRow& row) {
                     return OfKeys(row[other], [&](const ModelKey& k) {
                       return CompareParts(k, Compare::kAtLeast, least);
                     });
                   }};
        }
        return {bound.predicate && Predicate::IsNull(index.name),
                [i, truth = bound.truth](const ModelRow& row) {
                  return And(truth(row), row[i].empty() ? Truth::kTrue : Truth::kFalse);
                }};
      }
      case 5: {
        ModelKey prefix = Literal(index, false);
        auto* const text = prefix.back() ? std::get_if<std::string>(&*prefix.back()) : nullptr;
        if (text == nullptr) break;
        text->resize(random_() % (text->size() + 1));
        return {Predicate(index.name, KeyQuery::BytePrefix(ToLogical(prefix))),
                of([prefix](const ModelKey& k) { return PrefixParts(k, prefix); })};
      }
      case 6: {
        const ModelKey first = Literal(index, false);
        if (first.size() == index.parts && first.back() &&
            std::holds_alternative<std::string>(*first.back())) {
          break;
        }
        return {Predicate(index.name, KeyQuery::Prefix(ToLogical(first))),
                of([first](const ModelKey& k) { return EqualParts(k, first); })};
      }
      default:
        break;
    }
    if (random_() % 20 == 0) {
      const bool all = random_() % 2 == 0;
      return {all ? Predicate::All({}) : Predicate::Any({}),
              [all](const ModelRow&) { return all ? Truth::kTrue : Truth::kFalse; }};
    }
    const ModelKey a = Literal(index, false);
    return {Predicate(index.name, KeyQuery(std::vector<LogicalKey>{ToLogical(a)})),
            of([a](const ModelKey& k) { return EqualParts(k, a); })};
  }

  const std::vector<ModelMember> indexes_;
  std::mt19937_64& random_;
};

// The primary keys of the rows for which a predicate is true.
inline std::vector<std::string> ModelAnswer(const ModelTable& rows, const ModelPredicate& where) {
  std::vector<std::string> found;
  for (const auto& [primary_key, row] : rows) {
    if (where.truth(row) == Truth::kTrue) found.push_back(primary_key);
  }
  return found;
}

// The same in the order of an index; rows without a key there are last, by primary key.
inline std::vector<std::string> ModelOrder(const ModelTable& rows,
                                           const std::vector<std::string>& found, size_t index,
                                           bool nulls_last, bool descending) {
  // Nulls are ordered as in the index.
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
