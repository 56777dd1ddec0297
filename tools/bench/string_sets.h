#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::bench {

// Byte strings in one heap.
struct Strings {
  std::string heap;
  std::vector<std::string_view> keys;  // ascending
};

// The names of all data sets: those that resemble real keys, and those that are hard.
//   dig16      sixteen random digits;
//   phone      TPC-H's c_phone: 25-989-741-2988;
//   email      name.name@host, some with a number, few hosts having many;
//   url        https://host/word/word/number, a hundred pages per host on average, few hosts
//              having many;
//   d64, d128  64 or 128 bytes of ten symbols;
//   prefix100  a hundred bytes that all keys share, then twelve random letters;
//   prefix1k   1,000 bytes that all keys share, then three random bytes;
//   equal      all keys are the same;
//   repeated   sixteen random digits, each key thirty times;
//   chains     a number, then 0 to 199 times the same letter;
//   sparse     two hundred letters, all equal except three.
// Short ones, which can be encoded in 128 bits:
//   bytes16    sixteen random bytes;
//   composite  two numbers of eight bytes: one of 2^20, and one of 2^40;
//   uuid       random UUIDs as text;
//   syllables  two to five of ten syllables, then one to three digits.
inline constexpr std::string_view kStringSets[] = {"dig16", "phone", "email", "url", "d64", "d128"};
inline constexpr std::string_view kShortStringSets[] = {"bytes16", "composite", "uuid",
                                                        "syllables"};
inline constexpr std::string_view kHardStringSets[] = {"prefix100", "prefix1k", "equal",
                                                       "repeated",  "chains",   "sparse"};

// About `n` strings of a named data set, at most 2^20 of a hard one and 2^16 of prefix1k. They are
// distinct, except in `equal` and `repeated`. The last set is kept.
const Strings& StringSet(std::string_view name, size_t n);

}  // namespace cairn::bench
