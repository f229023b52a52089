// Pickles and torch.save archives put together by hand, for tests that PyTorch itself would not write.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "zip_parts.h"

namespace convssm::io {

inline std::string text_of(const std::string& text) { return "X" + number(text.size(), 4) + text; }
inline std::string int_of(int32_t value) { return "J" + number(static_cast<uint32_t>(value), 4); }
inline std::string long_of(int64_t value) { return "\x8a\x08" + number(static_cast<uint64_t>(value), 8); }
inline std::string global_of(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}

inline std::string tuple_of(const std::vector<int64_t>& values) {
  std::string out = "(";
  for (const int64_t value : values) out += long_of(value);
  return out + "t";
}

inline std::string storage_of(const std::string& type, const std::string& key, int64_t elements) {
  return "(" + text_of("storage") + global_of("torch", type) + text_of(key) + text_of("cpu") + long_of(elements) + "tQ";
}

// A call of _rebuild_tensor_v2 on this storage.
inline std::string tensor_of(const std::string& storage, int64_t offset, const std::vector<int64_t>& shape,
                             const std::vector<int64_t>& strides) {
  return global_of("torch._utils", "_rebuild_tensor_v2") + "(" + storage + long_of(offset) + tuple_of(shape) +
         tuple_of(strides) + "\x89" + global_of("collections", "OrderedDict") + ")RtR";
}

// A pickle of protocol 2 with this program.
inline std::string pickle_of(const std::string& program) { return "\x80\x02" + program + "."; }

// {"w": value}
inline std::string dict_of(const std::string& value) { return pickle_of("}" + text_of("w") + value + "s"); }

using ZipContent = std::vector<std::pair<std::string, std::string>>;

inline std::string zip_of(const ZipContent& content, bool deflated = false) {
  std::vector<ZipPart> parts;
  uint64_t offset = 0;
  for (const auto& [name, bytes] : content) {
    parts.push_back(zip_part(name, bytes, deflated, offset));
    offset += parts.back().local.size() + parts.back().data.size();
  }
  return join(parts);
}

// An archive of torch.save with this pickle and a storage "0" of 16 bytes.
inline std::string torch_zip(const std::string& pickle) {
  return zip_of({{"a/data.pkl", pickle}, {"a/data/0", "0123456789abcdef"}, {"a/version", "3\n"}});
}

}  // namespace convssm::io
