// Members see one context and are written and scored together, so they have to mean the same by it.
#include "convssm/cli/members.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/cli/model_changes.h"
#include "convssm/models/forecaster.h"

namespace convssm::cli {
namespace {

struct Place {
  std::string path;
  int64_t step = -1;
};

Place parse_place(const std::string& text) {
  const size_t cut = text.rfind('@');
  if (std::filesystem::exists(text) || cut == std::string::npos) return {text};
  Place place{text.substr(0, cut)};
  const std::string digits = text.substr(cut + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), place.step);
  if (error == std::errc() && end == digits.data() + digits.size() && place.step >= 0) return place;
  fail(ErrorKind::usage, "--also must be a model or RUN@STEP, such as runs/era5@2000, got '{}'", text);
}

std::string text_of(const data::Channel& channel) {
  return fmt::format("{}{}{}", channel.name.empty() ? "without a name" : channel.name,
                     channel.units.empty() ? "" : " [" + channel.units + "]", channel.diagnostic ? ", diagnostic" : "");
}

std::string text_of(const data::ActionFormat& actions) {
  if (actions.maps > 0) return fmt::format("{} maps", actions.maps);
  if (actions.values > 0) return fmt::format("{} numbers", actions.values);
  return actions.count > 0 ? fmt::format("one of {}", actions.count) : std::string("none");
}

std::string forcings_of(const run::LoadedModel& model) {
  const nlohmann::json::json_pointer where("/data/forcings");
  const nlohmann::json& config = model.recipe.config;
  return config.contains(where) ? config[where].dump() : "[]";
}

// "" or what differs: {what, here, there}.
std::string difference(const run::LoadedModel& first, const run::LoadedModel& other) {
  const data::FrameFormat &a = first.recipe.frames, &b = other.recipe.frames;
  const auto text = [](const char* what, const std::string& mine, const std::string& theirs) {
    return mine == theirs ? std::string() : fmt::format("{}: {} here, {} there", what, mine, theirs);
  };
  std::string found = text("frames", a.size_text(), b.size_text());
  for (size_t c = 0; found.empty() && c < a.channels.size(); ++c) {
    found = text(fmt::format("channel {}", c).c_str(), text_of(a.channels[c]), text_of(b.channels[c]));
  }
  if (found.empty() && !a.same_ranges(b)) found = text("values", a.range_text(), b.range_text());
  const auto actions = [](const run::LoadedModel& x) { return text_of(models::forecaster_of(*x.model).actions()); };
  if (found.empty()) found = text("actions", actions(first), actions(other));
  if (found.empty()) found = text("data.forcings", forcings_of(first), forcings_of(other));
  return found;
}

}  // namespace

std::vector<run::LoadedModel> load_members(const run::LoadedModel& first, const std::vector<std::string>& also,
                                           const run::LoadOptions& options) {
  std::vector<run::LoadedModel> members;
  for (const std::string& text : also) {
    const Place place = parse_place(text);
    run::LoadOptions own = options;
    own.step = place.step;
    run::LoadedModel& loaded = members.emplace_back(run::load_model(place.path, own));
    if (loaded.trained.same_size(first.trained)) {
      take_size(loaded, first.recipe.frames.height, first.recipe.frames.width);
    }
    log_info("also {} ({})", loaded.model->description(), loaded.path);
    const std::string differs = difference(first, loaded);
    if (differs.empty()) continue;
    fail(ErrorKind::usage, "--also {}: its forecasts are not of the same thing as those of {}; {}", text, first.path,
         differs);
  }
  return members;
}

}  // namespace convssm::cli
