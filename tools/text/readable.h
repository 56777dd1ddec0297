#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::tools {

// Appends `bytes` in the form of the machine-readable formats: every byte outside '!' … '~', and
// the backslash, as lower-case \xHH.
void AppendEscaped(std::string_view bytes, std::string* text);

// Appends `bytes` in human-readable form. UTF-8 and blanks are kept; bytes that are not text, bytes
// that could control a terminal, and the backslash become \xHH.
void AppendReadable(std::string_view bytes, std::string* text);

// 1234567 as "1,234,567".
std::string WithCommas(uint64_t number);
// 3650722201 as "3.4 GiB".
std::string WithUnit(uint64_t bytes);

}  // namespace cairn::tools
