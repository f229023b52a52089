// The JSON header of a safetensors file, parsed strictly: every object in it must have exactly the keys and types of
// the format. Inside io/ only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "convssm/io/safetensors.h"

namespace convssm::io {

inline constexpr uint64_t max_safetensors_header = 100'000'000;  // the limit of the format's reference reader

// "F32" and so on; empty for a type that the format does not have.
std::string_view safetensors_code(DType dtype);

// Parses the header text of the file `name`. Checks the JSON, not whether the tensors fill the file.
SafetensorsHeader parse_safetensors_header(const std::string& name, std::string_view text);

// The header for these tensors, padded with spaces so that the data begins at a multiple of 8.
std::string format_safetensors_header(std::span<const LazyArray> tensors, const Metadata& metadata);

}  // namespace convssm::io
