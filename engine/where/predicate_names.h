#pragma once

#include <string_view>

namespace cairn {

// What the names of indexes in a predicate's text may hold without quotes.
inline bool IsIndexNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

inline bool StartsIndexName(char c) {
  return IsIndexNameByte(c) && c != '-' && c != '.' && (c < '0' || c > '9');
}

// Whether a word, in either case, means something else in a predicate.
bool IsPredicateKeyword(std::string_view word);

inline bool IsPlainIndexName(std::string_view name) {
  if (name.empty() || !StartsIndexName(name[0]) || IsPredicateKeyword(name)) return false;
  for (const char c : name) {
    if (!IsIndexNameByte(c)) return false;
  }
  return true;
}

}  // namespace cairn
