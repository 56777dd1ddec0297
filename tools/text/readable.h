#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::tools {

// Bytes as the formats for machines show them: every byte outside '!' … '~', and the backslash, as
// lower-case \xHH.
void AppendEscaped(std::string_view bytes, std::string* text);

// Bytes as people read them: UTF-8 and blanks as they are, what is not text or could command a
// terminal as \xHH, and the backslash too.
void AppendReadable(std::string_view bytes, std::string* text);

// The length of the UTF-8 character at the start of `bytes`, or 0 if there is none: overlong forms,
// surrogates and numbers above 10FFFF are none.
size_t Utf8Length(std::string_view bytes);

// 1234567 as "1,234,567".
std::string WithCommas(uint64_t number);
// 3650722201 as "3.4 GiB".
std::string WithUnit(uint64_t bytes);

}  // namespace cairn::tools
