#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cairn {

// Appends `byte` as \xHH, in lower case.
void AppendHexEscape(char byte, std::string* text);

// Appends bytes as people read and write keys: every byte outside '!' to '~', the backslash and,
// where it parts what stands beside it, the comma as \xHH.
enum class Comma { kPlain, kEscaped };
void AppendEscaped(std::string_view bytes, Comma comma, std::string* text);
std::string EscapeBytes(std::string_view bytes);

// Reads the HH of a \xHH escape, in either case, at the start of `digits`. False where two
// hexadecimal digits are not there.
bool ReadHexEscape(std::string_view digits, char* byte);

// `text` for a message: between single quotes, bytes that do not print as \xHH, and cut short with
// an ellipsis behind `most` bytes. "nothing" for an empty text.
std::string Quoted(std::string_view text, size_t most = 40);

}  // namespace cairn
