#pragma once

#include <string_view>

namespace cairn {

// Returns whether a byte may be in the unquoted name of an index in a predicate's text.
inline bool IsIndexNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

inline bool StartsIndexName(char c) {
  return IsIndexNameByte(c) && c != '-' && c != '.' && (c < '0' || c > '9');
}

// Returns whether a word, in upper or lower case, is a keyword of predicates.
bool IsPredicateKeyword(std::string_view word);

inline bool IsPlainIndexName(std::string_view name) {
  if (name.empty() || !StartsIndexName(name[0]) || IsPredicateKeyword(name)) return false;
  for (const char c : name) {
    if (!IsIndexNameByte(c)) return false;
  }
  return true;
}

}  // namespace cairn
