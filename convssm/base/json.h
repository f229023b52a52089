// JSON from files and from the headers of files. Every such text is parsed here: the JSON library copies, compares and
// prints values by recursion, so a text of many nested brackets would overflow the stack. (The header of safetensors files
// becomes no such value: io/safetensors_header.cpp takes its events, and no nesting but its own.)
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace convssm {

inline constexpr int max_json_depth = 100;  // as of YAML: what is written as YAML was JSON before

// Error(data) if the text of `name` is not valid, nested deeper than that, or too long (base/file_memory.h).
nlohmann::json parse_json(std::string_view text, const std::string& name);

// The same; nothing where parse_json() is an error.
std::optional<nlohmann::json> try_parse_json(std::string_view text);

// The value of a file; nothing if it cannot be read or parsed.
std::optional<nlohmann::json> try_read_json(const std::string& path);

}  // namespace convssm
