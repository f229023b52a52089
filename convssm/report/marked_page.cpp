// Text outside of the marks is copied byte for byte, and an empty result leaves a block as it is: a run that measured
// only one group does not erase the others.
#include "convssm/report/marked_page.h"

#include <fmt/format.h>

#include "convssm/base/error.h"
#include "convssm/base/read_file.h"

namespace convssm::report {

std::string fill_blocks(const std::string& text, const std::string& prefix, const MakeBlock& make) {
  const std::string begin_mark = fmt::format("<!-- {} ", prefix), mark_end = " -->\n", end_mark = "<!-- end -->";
  std::string out;
  size_t place = 0;
  for (size_t begin = 0; (begin = text.find(begin_mark, place)) != std::string::npos;) {
    const size_t name_end = text.find(mark_end, begin), end = text.find(end_mark, begin);
    if (name_end == std::string::npos || end == std::string::npos || end < name_end) {
      fail(ErrorKind::data, "the page has a block without '{}' behind it: {}", end_mark,
           text.substr(begin, text.find('\n', begin) - begin));
    }
    const std::string name = text.substr(begin + begin_mark.size(), name_end - begin - begin_mark.size());
    const size_t content = name_end + mark_end.size();
    const std::string made = make(name);
    out += text.substr(place, content - place);
    out += made.empty() ? text.substr(content, end - content) : made;
    place = end;
  }
  return out + text.substr(place);
}

std::string read_page(const std::string& path) {
  const auto text = read_file(path);
  if (!text) fail_io(fmt::format("cannot open the page {}; it is filled in its place and must be there", path));
  return *text;
}

}  // namespace convssm::report
