// Names are those that the report looks for (report/sections.h).
#include "convssm/cli/evaluate_pictures.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <filesystem>

#include "convssm/report/field_map.h"
#include "convssm/report/sections.h"
#include "convssm/report/strips.h"

namespace convssm::cli {
namespace {

namespace fs = std::filesystem;

// "samples/evaluate" of the first setting, which is often the only one; "samples/evaluate-setting-2" of the second.
std::string picture_base(const std::string& out, size_t setting) {
  return out + "/samples/evaluate" + (setting == 0 ? "" : fmt::format("-setting-{}", setting + 1));
}

// Pictures of settings that an earlier evaluation had would be taken for those of this one.
void remove_other_settings(const std::string& out) {
  std::error_code ignored;
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(out + "/samples", ignored)) {
    if (entry.path().filename().string().starts_with("evaluate-setting-")) old.push_back(entry.path());
  }
  for (const fs::path& path : old) fs::remove(path, ignored);
}

}  // namespace

void save_pictures(const std::vector<data::Comparison>& settings, const std::string& out) {
  remove_other_settings(out);
  for (size_t s = 0; s < settings.size(); ++s) {
    const data::Comparison& clips = settings[s];
    const std::string base = picture_base(out, s);
    for (size_t i = 0; i < clips.truth.size(); ++i) {
      io::write_png(fmt::format("{}-strip-{}.png", base, i),
                    data::comparison_strip(clips, i, 1, report::strip_moments));
    }
    if (!clips.truth.empty()) data::save_comparison_gif(clips, clips.truth.size(), base + ".gif");
  }
}

void save_error_maps(const std::vector<std::vector<evaluate::VariableMaps>>& settings, const std::string& out) {
  std::error_code ignored;
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(out + "/samples", ignored)) {
    if (entry.path().filename().string().starts_with(report::kErrorMap)) old.push_back(entry.path());
  }
  for (const fs::path& path : old) fs::remove(path, ignored);
  for (size_t s = 0; s < settings.size(); ++s) {
    for (size_t v = 0; v < settings[s].size(); ++v) {
      const evaluate::VariableMaps& found = settings[s][v];
      report::FieldMaps maps{fmt::format("{}: error {} frames ahead", found.variable, found.frames),
                             found.units,
                             found.maps[0].size(0),
                             found.maps[0].size(1),
                             {}};
      for (size_t i = 0; i < found.maps.size(); ++i) {
        const at::Tensor values = found.maps[i].contiguous();
        const auto* first = values.data_ptr<double>();
        maps.maps.push_back({found.names[i], {first, first + values.numel()}});
      }
      report::write_field_maps_png(out + "/samples/" + report::error_map_file(s, v), maps);
    }
  }
}

}  // namespace convssm::cli
