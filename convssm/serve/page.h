// The files of the page, from convssm/serve/page/, as the build put them into the program.
#pragma once

#include <span>
#include <string_view>

namespace convssm::serve {

struct PageFile {
  std::string_view path;  // "/page.js"
  const char* type;
  std::string_view content;
};

std::span<const PageFile> page_files();

}  // namespace convssm::serve
