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

// A condition on the keys that rows have in several indexes: a value that owns its contents, cheap
// to copy. Functions that make one throw std::bad_alloc as containers do, except Parse.
//
//   const Predicate where = Predicate("city", {"Lisbon", "Oslo"}) &&
//                           Predicate("age", KeyQuery::Range(18, 65)) &&
//                           !Predicate("status", "closed");
//   const auto same = Predicate::Parse(
//       "city IN ('Lisbon', 'Oslo') AND age >= 18 AND age < 65 AND NOT status = 'closed'");
//   const auto safe = Predicate::Parse("city = ? AND age >= ?", {name, 18});
//
// As text (keywords in either case; AND binds closer than OR, NOT closest):
//   predicate:  NOT, AND, OR and parentheses of comparisons, TRUE and FALSE
//   comparison: INDEX '=' key | INDEX ('<>' | '!=' | '<' | '<=' | '>' | '>=') key
//               | INDEX [NOT] IN '(' key {',' key} ')' | INDEX [NOT] BETWEEN key AND key
//               | INDEX [NOT] LIKE 'text%' | INDEX [NOT] STARTS WITH key
//               | INDEX IS [NOT] NULL
//   INDEX:      an index's name, of letters, digits, '_', '.' and '-', not starting with a digit or
//               '-', or any name between double quotes
//   key:        a value, or for an index of several parts '(' value {',' value} ')', of which the
//               last ones may be missing: place = ('PT') is all of PT
//   value:      a number, nan, inf or -inf, NULL, ? (a parameter), or text between single quotes,
//               in which '' is a quote and \xHH a byte
// LIKE takes a pattern whose only wildcard is a '%' at its end; '_' and other '%' are refused.
// An integer is between -2^63 and 2^64 - 1; a larger number has a '.' or an exponent and is a
// float.
//
// The logic is SQL's, of three values. Comparing with NULL, or the key of a row that has none in
// the index, is unknown, and so is its negation; rows for which the whole is true are found. A row
// with several keys in an index (an array) satisfies a comparison if one of its keys does, and its
// negation if none does, and none is NULL; each comparison looks for a key of its own, so that
// `a >= 5 AND a < 7` is another question than `a BETWEEN 5 AND 6` there.
class Predicate {
 public:
  enum class Kind : uint8_t {
    kKeys,    // a row's key in `index` is among `keys`
    kIsNull,  // it is null, or the row has none
    kAnd,     // both, either, or not: children()
    kOr,
    kNot,
  };

  // Rows whose key in the index of this name is among `keys`: one key, several, a prefix, a range.
  Predicate(std::string_view index, const KeyQuery& keys);
  static Predicate IsNull(std::string_view index);
  friend Predicate operator&&(const Predicate& a, const Predicate& b) {
    return Predicate(Kind::kAnd, {a, b});
  }
  friend Predicate operator||(const Predicate& a, const Predicate& b) {
    return Predicate(Kind::kOr, {a, b});
  }
  Predicate operator!() const { return Predicate(Kind::kNot, {*this}); }
  // Of any number of predicates. All of none is true of every row that an index of the group has an
  // entry of, any of none of no row.
  static Predicate All(std::vector<Predicate> predicates) {
    return Predicate(Kind::kAnd, std::move(predicates));
  }
  static Predicate Any(std::vector<Predicate> predicates) {
    return Predicate(Kind::kOr, std::move(predicates));
  }

  // Parses `text`. `parameters` are the values of its '?', in their order; the predicate copies
  // them. A parameter is one value: a number, text or null, also an element of a list, a part of a
  // key, the end of a range, a prefix or the pattern of LIKE. It is never parsed, so text from
  // anywhere can be passed as it is; a null is NULL, and NaN and infinities are keys as any.
  // Errors: InvalidArgument, with the offset in `text` and what was expected there, if the text is
  // not a predicate or is nested deeper than 200 levels; InvalidArgument, with both numbers, if
  // there are more or fewer parameters than '?'.
  static absl::StatusOr<Predicate> Parse(std::string_view text,
                                         absl::Span<const PartValue> parameters = {});
  // A '?' of a predicate's text: it is compared with part `part` (from 0) of the keys of `index`.
  struct Parameter {
    std::string index;
    size_t part = 0;
  };
  // Returns the parameters of `text`, in their order, so that a caller can read values by the types
  // of the indexes' parts. Errors: InvalidArgument as of Parse.
  static absl::StatusOr<std::vector<Parameter>> ParametersOf(std::string_view text);
  // Returns text that Parse reads.
  std::string ToString() const;

  Kind kind() const;
  const std::vector<Predicate>& children() const;  // kAnd, kOr, kNot
  const std::string& index() const;                // of all others, as is what follows
  const KeyQuery& keys() const;                    // kKeys; views into this

 private:
  struct Node;

  Predicate(Kind kind, std::vector<Predicate> children);
  explicit Predicate(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

  std::shared_ptr<const Node> node_;
};

}  // namespace cairn
