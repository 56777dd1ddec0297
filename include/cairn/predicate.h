#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/lookup.h"

namespace cairn {

// A condition on the keys of rows in several indexes. A Predicate owns its contents and is cheap to
// copy. Functions that create one throw std::bad_alloc if memory runs out, except Parse.
//
//   const Predicate where = Predicate("city", {"Lisbon", "Oslo"}) &&
//                           Predicate("age", KeyQuery::Range(18, 65)) &&
//                           !Predicate("status", "closed");
//   const auto same = Predicate::Parse(
//       "city IN ('Lisbon', 'Oslo') AND age >= 18 AND age < 65 AND NOT status = 'closed'");
//   const auto safe = Predicate::Parse("city = ? AND age >= ?", {name, 18});
//
// As text (keywords in either case; NOT binds closest, then AND, then OR):
//   predicate:  NOT, AND, OR and parentheses of comparisons, TRUE and FALSE
//   comparison: INDEX '=' key | INDEX ('<>' | '!=' | '<' | '<=' | '>' | '>=') key
//               | INDEX [NOT] IN '(' key {',' key} ')' | INDEX [NOT] BETWEEN key AND key
//               | INDEX [NOT] LIKE 'text%' | INDEX [NOT] STARTS WITH key
//               | INDEX IS [NOT] NULL
//   INDEX:      the name of an index: letters, digits, '_', '.' and '-', not starting with a digit
//               or '-'; or any name in double quotes
//   key:        a value, or for an index with several parts '(' value {',' value} ')'; the last
//               values may be omitted: place = ('PT') matches every key that starts with 'PT'
//   value:      a number, nan, inf or -inf, NULL, ? (a parameter), or text in single quotes,
//               in which '' is a quote and \xHH is a byte
// LIKE takes a pattern whose only wildcard is a '%' at its end; '_' and any other '%' are errors.
// An integer is between -2^63 and 2^64 - 1; a number with a '.' or an exponent is a float and may
// be larger.
//
// The logic is SQL's three-valued logic. A comparison with NULL, or of a row without a key in the
// index, is unknown, and so is its negation. A row matches if the whole predicate is true. If a row
// has several keys in an index (an array), a comparison is true if it is true for one of the keys.
// Its negation is true if the comparison is true for no key and no key is null. Each comparison is
// tested separately, so `a >= 5 AND a < 7` may be satisfied by two keys, but `a BETWEEN 5 AND 6`
// needs one.
class Predicate {
 public:
  // The kind of a condition.
  enum class Kind : uint8_t {
    kKeys,    // the key of a row in `index` is in `keys`
    kIsNull,  // the key is null, or the row has no key
    kAnd,     // of children(): all, any, or not
    kOr,
    kNot,
  };

  // Matches rows whose key in the index of this name is in `keys`: one key, several keys, a prefix,
  // or a range.
  Predicate(std::string_view index, const KeyQuery& keys);
  // Matches rows whose key in the index is null, or that have no key in it.
  static Predicate IsNull(std::string_view index);
  friend Predicate operator&&(const Predicate& a, const Predicate& b) {
    return Predicate(Kind::kAnd, {a, b});
  }
  friend Predicate operator||(const Predicate& a, const Predicate& b) {
    return Predicate(Kind::kOr, {a, b});
  }
  Predicate operator!() const { return Predicate(Kind::kNot, {*this}); }
  // The conjunction or disjunction of any number of predicates. All of none is true for every row
  // with an entry in an index of the group. Any of none is false for every row.
  static Predicate All(std::vector<Predicate> predicates) {
    return Predicate(Kind::kAnd, std::move(predicates));
  }
  static Predicate Any(std::vector<Predicate> predicates) {
    return Predicate(Kind::kOr, std::move(predicates));
  }

  // Parses `text`. `parameters` are the values of its '?', in order; the predicate copies them. A
  // parameter is one value: a number, text or null. It can be a key, an element of a list, a key
  // part, an end of a range, a prefix or the pattern of LIKE. Parameters are not parsed, so
  // untrusted text is safe. A null parameter is NULL. NaN and infinities are ordinary keys. Errors:
  // InvalidArgument, with the offset in `text` and what was expected there, if the text is not a
  // predicate or is nested deeper than 200 levels; InvalidArgument, with both numbers, if the
  // number of parameters is not the number of '?'.
  static absl::StatusOr<Predicate> Parse(std::string_view text,
                                         absl::Span<const PartValue> parameters = {});
  // The place of a '?' in a predicate: the predicate compares its value with key part `part`,
  // counted from 0, of `index`.
  struct Parameter {
    std::string index;
    size_t part = 0;
  };
  // Returns the parameters of `text`, in order. A caller can use them to convert values to the
  // types of the key parts. Errors: those of Parse, except those about parameters.
  static absl::StatusOr<std::vector<Parameter>> ParametersOf(std::string_view text);
  // Returns the predicate as text for Parse.
  std::string ToString() const;

  Kind kind() const;
  const std::vector<Predicate>& children() const;  // kAnd, kOr, kNot
  const std::string& index() const;                // kKeys, kIsNull
  const KeyQuery& keys() const;                    // kKeys; valid as long as this object

 private:
  struct Node;

  Predicate(Kind kind, std::vector<Predicate> children);
  explicit Predicate(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

  std::shared_ptr<const Node> node_;
};

}  // namespace cairn
