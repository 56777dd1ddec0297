#include "cairn/predicate.h"

#include <charconv>
#include <cmath>
#include <list>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "engine/where/predicate_names.h"
#include "index/keys/escaped_text.h"

namespace cairn {

struct Predicate::Node {
  Kind kind;
  std::vector<Predicate> children = {};
  std::string index = {};
  KeyQuery keys = {};
  std::list<std::string> bytes = {};  // `keys` points into it

  // Returns a copy of a key whose bytes this node owns.
  LogicalKey Own(const LogicalKey& key) {
    std::vector<DataValue> parts(key.parts().begin(), key.parts().end());
    for (DataValue& part : parts) {
      if (const auto* text = std::get_if<std::string_view>(&part)) {
        part = std::string_view(bytes.emplace_back(*text));
      }
    }
    return LogicalKey::OfParts(parts);
  }
  KeyQuery OwnRange(const KeyQuery& query) {
    const bool below = query.lower_bound() == Bound::kOpen;
    const bool above = query.upper_bound() == Bound::kOpen;
    if (below && above) return KeyQuery::Everything();
    const bool exclusive = query.lower_bound() == Bound::kExclusive;
    const bool inclusive = query.upper_bound() == Bound::kInclusive;
    const LogicalKey lower = Own(query.keys()[0]), upper = Own(query.keys()[1]);
    if (below) return inclusive ? KeyQuery::AtMost(upper) : KeyQuery::LessThan(upper);
    if (above) return exclusive ? KeyQuery::GreaterThan(lower) : KeyQuery::AtLeast(lower);
    return inclusive ? KeyQuery::Between(lower, upper) : KeyQuery::Range(lower, upper);
  }
  KeyQuery Own(const KeyQuery& query) {
    switch (query.kind()) {
      case KeyQuery::Kind::kKeys:
        break;
      case KeyQuery::Kind::kPrefix:
        return KeyQuery::Prefix(Own(query.keys()[0]));
      case KeyQuery::Kind::kBytePrefix:
        return KeyQuery::BytePrefix(Own(query.keys()[0]));
      case KeyQuery::Kind::kRange:
        return OwnRange(query);
    }
    std::vector<LogicalKey> keys;
    keys.reserve(query.keys().size());
    for (const LogicalKey& key : query.keys()) keys.push_back(Own(key));
    return KeyQuery(std::move(keys));
  }
};

namespace {

struct ValueText {
  std::string operator()(std::monostate) const { return "NULL"; }
  std::string operator()(uint64_t number) const { return absl::StrCat(number); }
  std::string operator()(int64_t number) const { return absl::StrCat(number); }
  std::string operator()(double number) const {
    if (std::isnan(number)) return "nan";  // as a key it has no sign
    char text[32];
    std::string digits(text, std::to_chars(text, text + sizeof(text), number).ptr);
    // Parsed as an integer, -0 would lose its sign.
    return digits.find_first_of(".en") == std::string::npos ? digits + ".0" : digits;
  }
  std::string operator()(std::string_view bytes) const {
    std::string text = "'";
    for (const char byte : bytes) {
      if (byte == '\'') {
        text += "''";
      } else if (byte < ' ' || byte > '~' || byte == '\\') {
        AppendHexEscape(byte, &text);
      } else {
        text += byte;
      }
    }
    return text + "'";
  }
};

// A composite key, or its leading parts, is written in parentheses.
std::string KeyText(const LogicalKey& key, bool leading = false) {
  std::string text;
  for (const DataValue& part : key.parts()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", std::visit(ValueText(), part));
  }
  return key.parts().size() == 1 && !leading ? text : "(" + text + ")";
}

std::string NameText(const std::string& name) {
  if (IsPlainIndexName(name)) return name;
  std::string text = "\"";
  for (const char byte : name) {
    if (byte == '"') text += '"';
    text += byte;
  }
  return text + "\"";
}

std::string RangeText(const std::string& index, const KeyQuery& range) {
  const bool below = range.lower_bound() == Bound::kOpen;
  const bool above = range.upper_bound() == Bound::kOpen;
  const bool inclusive = range.upper_bound() == Bound::kInclusive;
  if (below && above) return index + " IS NOT NULL";
  const std::string lower = KeyText(range.keys()[0]), upper = KeyText(range.keys()[1]);
  if (below) return absl::StrCat(index, inclusive ? " <= " : " < ", upper);
  if (above) {
    return absl::StrCat(index, range.lower_bound() == Bound::kInclusive ? " >= " : " > ", lower);
  }
  return inclusive ? absl::StrCat(index, " BETWEEN ", lower, " AND ", upper)
                   : absl::StrCat(index, " IN [", lower, ", ", upper, ")");
}

std::string KeysText(const std::string& index, const KeyQuery& keys) {
  switch (keys.kind()) {
    case KeyQuery::Kind::kKeys:
      break;
    case KeyQuery::Kind::kPrefix:
      return absl::StrCat(index, " = ", KeyText(keys.keys()[0], /*leading=*/true));
    case KeyQuery::Kind::kBytePrefix:
      return absl::StrCat(index, " STARTS WITH ", KeyText(keys.keys()[0]));
    case KeyQuery::Kind::kRange:
      return RangeText(index, keys);
  }
  if (keys.keys().size() == 1) return absl::StrCat(index, " = ", KeyText(keys.keys()[0]));
  std::string list;
  for (const LogicalKey& key : keys.keys()) {
    absl::StrAppend(&list, list.empty() ? "" : ", ", KeyText(key));
  }
  return absl::StrCat(index, " IN (", list, ")");
}

}  // namespace

Predicate::Predicate(std::string_view index, const KeyQuery& keys) {
  auto node = std::make_shared<Node>(Node{Kind::kKeys});
  node->index = index;
  node->keys = node->Own(keys);
  node_ = std::move(node);
}

Predicate Predicate::IsNull(std::string_view index) {
  auto node = std::make_shared<Node>(Node{Kind::kIsNull});
  node->index = index;
  return Predicate(std::move(node));
}

// A first child of the same kind is replaced by its children, so that a chain of operators is flat.
// TRUE and FALSE, which have no children, remain: TRUE bounds the rows of an IS NULL.
Predicate::Predicate(Kind kind, std::vector<Predicate> children) {
  auto node = std::make_shared<Node>(Node{kind});
  if (kind != Kind::kNot && !children.empty() && children[0].kind() == kind &&
      !children[0].children().empty()) {
    node->children = children[0].children();
    node->children.insert(node->children.end(), children.begin() + 1, children.end());
  } else {
    node->children = std::move(children);
  }
  node_ = std::move(node);
}

Predicate::Kind Predicate::kind() const {
  return node_->kind;
}
const std::vector<Predicate>& Predicate::children() const {
  return node_->children;
}
const std::string& Predicate::index() const {
  return node_->index;
}
const KeyQuery& Predicate::keys() const {
  return node_->keys;
}

std::string Predicate::ToString() const {
  switch (kind()) {
    case Kind::kKeys:
      return KeysText(NameText(index()), keys());
    case Kind::kIsNull:
      return NameText(index()) + " IS NULL";
    case Kind::kNot:
      return "NOT (" + children()[0].ToString() + ")";
    case Kind::kAnd:
    case Kind::kOr:
      break;
  }
  if (children().empty()) return kind() == Kind::kAnd ? "TRUE" : "FALSE";
  std::string text;
  for (const Predicate& child : children()) {
    const bool nested = child.kind() == Kind::kAnd || child.kind() == Kind::kOr;
    absl::StrAppend(&text,
                    text.empty()           ? ""
                    : kind() == Kind::kAnd ? " AND "
                                           : " OR ",
                    nested ? "(" : "", child.ToString(), nested ? ")" : "");
  }
  return text;
}

}  // namespace cairn
