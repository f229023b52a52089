// What an unquoted YAML scalar means, by the core schema of YAML 1.2 (section 10.3.2). Inside io/ only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace convssm::io {

// A bool, null, number, or the text itself. Error(data) for numbers that do not fit 64 bits, with the reason only.
nlohmann::json parse_plain_scalar(std::string_view text);

// Whether the text may stand without quotes: it means itself here and to readers of YAML 1.1 (where `no` is false), and
// no character of it has another meaning inside or outside of brackets.
bool is_plain_text(std::string_view text);

}  // namespace convssm::io
