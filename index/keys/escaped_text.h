#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cairn {

// Appends `byte` as \xHH, in lower case.
void AppendHexEscape(char byte, std::string* text);

// Appends bytes in the human-readable notation of keys: every byte outside '!' to '~' and the
// backslash as \xHH; also the comma if it is a separator there (kEscaped).
enum class Comma { kPlain, kEscaped };
void AppendEscaped(std::string_view bytes, Comma comma, std::string* text);
std::string EscapeBytes(std::string_view bytes);

// Reads the HH of a \xHH escape, in either case, at the start of `digits`. Returns false if there
// are not two hexadecimal digits.
bool ReadHexEscape(std::string_view digits, char* byte);

// `text` for a message: between single quotes, with unprintable bytes as \xHH, and truncated with
// an ellipsis after `most` bytes. "nothing" for an empty text.
std::string Quoted(std::string_view text, size_t most = 40);

}  // namespace cairn
