// Feeds arbitrary metadata and one chunk to the Zarr reader and reads a box of every array of what it accepts. The input is a
// character that says which file the metadata is (2: .zarray, m: .zmetadata, 3: zarr.json), the metadata, a zero byte, and the chunk;
// all names that a first chunk may have are links to it. Nothing but an Error may come of damaged bytes: anything else stops the
// fuzzer.
#include <stdlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/file_memory.h"
#include "convssm/io/zarr.h"

namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    if (mkdtemp(path_.data()) == nullptr) abort();
    for (const char* array : {"", "a/"}) {
      for (const char* key : {"0", "0.0", "0.0.0", "c", "c.0", "c.0.0"}) add_link(std::string(array) + key);
    }
    for (const char* key : {"b/0/0", "b/c/0", "d/c/0/0"}) add_link(key);
    convssm::set_file_memory_limit(1 << 18);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ + "/" + name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  void remove(const std::string& name) const { fs::remove(path_ + "/" + name); }
  const std::string& path() const { return path_; }

 private:
  void add_link(const std::string& key) const {
    const std::string link = path_ + "/" + key;
    fs::create_directories(fs::path(link).parent_path());
    fs::create_symlink(path_ + "/chunk", link);
  }

  std::string path_ = fs::temp_directory_path().string() + "/fuzz_zarr-XXXXXX";
};

void read_everything(const std::string& path) {
  using namespace convssm::io;
  const auto file = open_zarr(path);
  for (const GridVariable& variable : file->variables()) {
    std::vector<int64_t> first, count;
    int64_t elements = 1;
    for (const int64_t length : variable.shape) {
      first.push_back(0);
      count.push_back(elements > 256 ? std::min<int64_t>(length, 1) : std::min<int64_t>(length, 20));
      elements *= std::max<int64_t>(count.back(), 1);
    }
    try {
      file->read(variable, first, count);
      for (size_t d = 0; d < first.size(); ++d) first[d] = variable.shape[d] - count[d];
      file->read(variable, first, count);
    } catch (const convssm::Error&) {  // the next array may be read all the same
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.empty()) return 0;
  const std::string name = bytes[0] == '2' ? ".zarray" : bytes[0] == 'm' ? ".zmetadata" : "zarr.json";
  const size_t zero = std::min(bytes.find('\0'), bytes.size());
  folder.write(name, bytes.substr(1, zero > 0 ? zero - 1 : 0));
  folder.write("chunk", bytes.substr(std::min(zero + 1, bytes.size())));
  try {
    read_everything(folder.path());
  } catch (const convssm::Error&) {
  }
  folder.remove(name);
  return 0;
}
