// Samples, configuration and notes. Images are embedded as data, enlarged by a whole factor and without smoothing, so
// that pixels stay pixels.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "convssm/report/html.h"
#include "convssm/report/sections.h"

namespace convssm::report {
namespace {

constexpr int64_t kWanted = 320;  // pixels on the page; small frames are enlarged by a whole factor

std::string image(const Sample& sample) {
  const int64_t factor = std::max<int64_t>(1, kWanted / sample.width);
  return fmt::format(
      "<figure class=\"sample\"><img alt=\"{0}\" title=\"{0}\" width=\"{1}\" height=\"{2}\" "
      "src=\"data:{3};base64,{4}\"><figcaption>{5}</figcaption></figure>\n",
      escape(sample.name), factor * sample.width, factor * sample.height, sample.type, base64(sample.bytes),
      escape(caption(sample.name)));
}

// "000500" -> "500"
std::string without_leading_zeros(const std::string& word) {
  const bool digits = std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (!digits || word.empty()) return word;
  return word.substr(std::min(word.find_first_not_of('0'), word.size() - 1));
}

}  // namespace

std::string caption(const std::string& file_name) {
  std::string out, word;
  for (const char c : file_name.substr(0, file_name.rfind('.')) + " ") {
    if (c != ' ' && c != '-' && c != '_') {
      word += c;
      continue;
    }
    if (!word.empty()) out += (out.empty() ? "" : " ") + without_leading_zeros(word);
    word.clear();
  }
  return out;
}

std::string sample_images(const RunView& run) {
  std::string out;
  for (const Sample& sample : run.samples.shown) out += image(sample);
  if (!out.empty()) out = "<div class=\"samples\">\n" + out + "</div>\n";
  if (run.samples.left_out > 0) {
    out += fmt::format("<p class=\"soft small\">{} more in the folder samples/ would make this page too large.</p>\n",
                       run.samples.left_out);
  }
  return section("samples", "Samples", out);
}

std::string configuration(const RunView& run) {
  if (run.config.empty()) return "";
  return section("config", "Configuration",
                 "<details><summary>config.yaml</summary><pre>" + escape(run.config) + "</pre></details>\n");
}

std::string notes(const RunView& run) {
  std::string items;
  for (const std::string& note : run.notes) items += "<li>" + escape(note) + "</li>\n";
  return section("notes", "Not in this report", items.empty() ? "" : "<ul class=\"soft\">\n" + items + "</ul>\n");
}

}  // namespace convssm::report
