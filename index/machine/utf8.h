#pragma once

#include <cstddef>
#include <string_view>

namespace cairn {

// Returns the length of the UTF-8 character at the start of `bytes`, or 0 if there is none.
// Overlong forms, surrogates and code points above 10FFFF are not characters.
size_t Utf8Length(std::string_view bytes);

// Returns whether all bytes are UTF-8.
bool IsUtf8(std::string_view bytes);

}  // namespace cairn
