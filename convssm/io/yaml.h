// YAML 1.2 configuration files, as JSON values: maps, lists and scalars. Unquoted scalars have the types of the core
// schema (true, null, 1e-3), so `no`, `on` and `12:30` are text; quoted ones are always text. Keys are always text.
//   json config = read_yaml("train.yaml");   set_override(config, "train.lr=1e-4");
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace convssm::io {

// The one document in `text`; an empty one is an empty object. Error(data) with `name`, line and column for what is not
// YAML, and for duplicate keys, unknown tags, numbers that do not fit, and documents too deep or (by aliases) too large.
nlohmann::json parse_yaml(const std::string& text, const std::string& name);

// The same from a file. Error(io) if it cannot be read.
nlohmann::json read_yaml(const std::string& path);

// Block style with short lists and maps on one line; parse_yaml gives the identical value back, doubles bit for bit.
std::string to_yaml(const nlohmann::json& value);

// Sets one value by its dotted path, `train.lr=1e-4` or `model.depths=[32, 64]`; the value is YAML. Objects on the way
// are made where they are missing, and null takes the key out. Error(usage) if it is not an assignment, or a part of the
// path is not an object.
void set_override(nlohmann::json& config, const std::string& assignment);

}  // namespace convssm::io
