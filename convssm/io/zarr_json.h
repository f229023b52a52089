// The JSON of Zarr metadata: what a value must be is asked for by name, and another kind of value is a FormatError that names the
// file and the array. Numbers of chunks and files as strings ("NaN", "0x7fc00000") are parsed here too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/io/array.h"
#include "convssm/io/grid_file.h"

namespace convssm::io {

// The file that a piece of metadata came from, and the folder of the array or group that it describes.
struct ZarrPlace {
  std::string file;
  std::string folder;

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    refuse(fmt::format(text, std::forward<Args>(args)...));
  }
  [[noreturn]] void refuse(const std::string& reason) const;
};

// An object. Bare NaN and Infinity, which Python writes, become strings of that name. Error(data) for other text.
nlohmann::json parse_zarr_json(std::string_view text, const ZarrPlace& place);

// A member of an object, or null.
const nlohmann::json* zarr_member(const nlohmann::json& object, const char* key);

// A member that must be there and be of that kind.
const nlohmann::json& zarr_object(const ZarrPlace& place, const nlohmann::json& object, const char* key);
std::string zarr_text(const ZarrPlace& place, const nlohmann::json& object, const char* key);
std::vector<int64_t> zarr_lengths(const ZarrPlace& place, const nlohmann::json& object, const char* key);

// {"name": ..., "configuration": {...}} of version 3, or the name alone.
struct ZarrNamed {
  std::string name;
  nlohmann::json configuration;
};
ZarrNamed zarr_named(const ZarrPlace& place, const nlohmann::json& value, const char* what);

// A number, true or false, or the name of NaN or an infinity.
std::optional<double> zarr_number(const nlohmann::json& value);

// One element of an array, in the byte order of this machine: a number as above, or its bits as "0x...". Nothing if the type cannot
// hold it.
std::optional<std::vector<std::byte>> zarr_element(DType dtype, const nlohmann::json& value);

// Text, numbers and lists of numbers; the rest is left out.
GridAttributes zarr_attributes(const nlohmann::json& object);

}  // namespace convssm::io
