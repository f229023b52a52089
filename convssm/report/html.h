// Parts of HTML: escaped text, images as data, the frame of the page.
#pragma once

#include <string>
#include <string_view>

namespace convssm::report {

// Text for the inside of an element or a quoted attribute. Control characters are dropped, bytes that are not UTF-8
// become U+FFFD.
std::string escape(std::string_view text);

std::string base64(std::string_view bytes);

// A section with an id and a heading; "" if it has no content.
std::string section(std::string_view id, std::string_view title, const std::string& content);

struct Page {
  std::string title;        // plain text
  std::string body;         // HTML
  int refresh_seconds = 0;  // 0: never
};

// The whole document. Its security policy forbids every request, so that a mistake here cannot reach the network.
std::string render(const Page& page);

}  // namespace convssm::report
