// Text from files inside error messages, and look-up of names. Names in a damaged file can be long, binary or hostile:
// what is shown is cut and escaped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace convssm::io {

// 'text' in quotes, cut to 60 bytes, with control and non-ASCII bytes as \x1b.
std::string in_quotes(std::string_view text);

// Whether the bytes are valid UTF-8.
bool is_utf8(std::string_view text);

// Throws Error(data): the file has no array of this name, but a similar one, or these.
[[noreturn]] void fail_missing(const std::string& file, std::string_view name, const std::vector<std::string>& names);

}  // namespace convssm::io
