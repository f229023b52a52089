// Reads what forecasts go on from and says what was found, above all which action leads to which frame.
#include "convssm/cli/generate_start.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/base/log.h"
#include "convssm/data/actions.h"
#include "convssm/data/folder.h"
#include "convssm/generate/actions.h"
#include "convssm/generate/generate.h"
#include "convssm/io/cf_time.h"

namespace convssm::cli {
namespace {

constexpr int64_t kFrames = 100;  // if nothing says how many
constexpr const char* kObserve =
    "Its maps of what is known in advance (data.forcings) follow from a file: give --observe with the fields after the "
    "state";
constexpr const char* kGiveActions = "Give --actions FILE with an action for each frame to generate";

class StartReader {
 public:
  StartReader(const GenerateCommand& c, const run::LoadedModel& loaded)
      : c_(c), loaded_(loaded), forecaster_(models::forecaster_of(*loaded.model)), reading_(c.reading) {
    const nlohmann::json dropout = trained_with("/train/action_dropout");
    const data::RecordingOptions trained = data::reading_of_section(trained_with("/data"));
    rules_ = {forecaster_.actions(), dropout.is_number() && dropout.get<double>() > 0};
    if (reading_.actions_key.empty()) reading_.actions_key = trained.actions_key;
    const nlohmann::json path = trained_with("/data/path");
    if (path.is_string() &&
        file_ending(path.get<std::string>()) == file_ending(c.context)) {  // most likely of one origin
      if (reading_.key.empty()) reading_.key = trained.key;
      if (reading_.layout.empty()) reading_.layout = trained.layout;
    }
    reading_.action_reading = trained.action_reading, reading_.view = trained.view;
    reading_.fields = trained.fields, reading_.forcings = trained.forcings, reading_.missing = trained.missing;
    const nlohmann::json names = trained_with("/data/channels");
    if (names.is_array()) {
      for (const nlohmann::json& name : names)
        reading_.channels.push_back(name.is_string() ? name : nlohmann::json(""));
    }
    reading_.intervals = trained_with("/data/dt") == "use";
    reading_.missing_value = trained.missing_value;
    reading_.ahead = c.frames >= 0 ? c.frames : kFrames;
    if (reading_.view.changes_size()) {
      reading_.view.height = loaded.recipe.frames.height, reading_.view.width = loaded.recipe.frames.width;
    }
  }

  ForecastStart read() {
    if (!c_.actions.empty()) read_actions();
    c_.state.empty() ? read_context() : read_state();
    if (given_.defined()) take_actions();
    const bool led = coming_.defined() && coming_.size(1) > 0 && rules_.format.matter();  // and nowhere without actions
    const bool of_maps = rules_.format.maps > 0 && !c_.state.empty() && c_.observe.empty();
    start_.frames = c_.frames >= 0                                        ? c_.frames
                    : led && !(c_.actions.empty() && rules_.mask_learned) ? coming_.size(1)
                                                                          : kFrames;
    const std::string whose = !c_.actions.empty()   ? c_.actions
                              : !c_.context.empty() ? c_.context + ", after the context,"
                                                    : std::string("the command");
    start_.actions = generate::complete_actions(coming_, start_.clips, start_.frames, rules_, whose,
                                                of_maps ? kObserve : kGiveActions);
    if (start_.actions.defined()) start_.actions = start_.actions.repeat_interleave(c_.samples, 0);
    return start_;
  }

 private:
  // Of the config that the model was trained with; a file may hold anything, or nothing.
  nlohmann::json trained_with(const char* where) const {
    const nlohmann::json::json_pointer pointer(where);
    const nlohmann::json& config = loaded_.recipe.config;
    return config.contains(pointer) ? config[pointer] : nlohmann::json();
  }

  // Frames of a recording with their actions; what it has of the frames after them may be the actions to come.
  data::Clips read_frames(const std::string& path) {
    const generate::Context found = generate::read_context(path, loaded_.recipe.frames, reading_);
    data::Clips clips = found.clips;
    const int64_t K = clips.frames();
    const bool has_actions = clips.actions.defined();
    log_info("{}: {}{}", c_.state.empty() ? "context" : "observed", found.description,
             has_actions ? "; its action k leads to its frame k" : "");
    const std::string key = reading_.actions_key.empty() ? "actions" : reading_.actions_key;
    const std::string hint = found.like_actions.empty()
                                 ? fmt::format("Put an array '{}' beside its frames, in an .npz file", key)
                                 : fmt::format("If its array '{}' holds them, give --actions-key {}",
                                               found.like_actions[0], found.like_actions[0]);
    // Nothing was before the only frame of a context.
    if (K > 1 || has_actions || !c_.state.empty()) {
      clips.actions = generate::complete_actions(clips.actions, clips.batch(), K, rules_, path, hint);
    }
    coming_ = found.coming;
    start_.layout = found.layout;
    start_.places = found.places;
    return clips;
  }

  void read_context() {
    const data::Clips clips = read_frames(c_.context);
    if (c_.samples > 1 && !forecaster_.draws() && c_.perturb == 0) {
      log_warning(
          "this model draws no random numbers: the {} futures of a clip will be equal; --perturb 0.05 makes them "
          "differ",
          c_.samples);
    }
    start_.clips = clips.batch();
    start_.rows = start_.clips * c_.samples;
    start_.context = data::repeat_rows(clips, c_.samples);
    const int64_t first = std::max<int64_t>(c_.reading.clip, 0);
    for (int64_t row = 0; row < start_.rows; ++row) {
      start_.seeds.push_back(generate::future_seed(c_.seed, first + row / c_.samples, row % c_.samples));
    }
  }

  void read_state() {
    const generate::SavedState saved = generate::load_state(c_.state, state_owner(loaded_));
    start_.state = saved.state;
    start_.clips = start_.rows = forecaster_.clips_in(start_.state);
    if (!reading_.layout.empty()) start_.layout = data::usual_clip_letters({reading_.layout, ""});
    if (c_.observe.empty()) {
      for (const data::FieldPlace& place : saved.places) start_.places.push_back(later(place, reading_.ahead));
      return;
    }
    start_.observed = read_frames(c_.observe);
    if (start_.observed.batch() == start_.rows) return add_measured(saved.places);
    fail(ErrorKind::data, "{} holds {} clips, the state {} holds {} futures; expected a clip for each", c_.observe,
         start_.observed.batch(), c_.state, start_.rows);
  }

  // The times of so many frames after a last one.
  static data::FieldPlace later(const data::FieldPlace& last, int64_t frames) {
    data::FieldPlace place{last.axes, {}, last.measured};
    const double step = last.axes.step;
    if (last.times.empty() || (step <= 0 && last.axes.months <= 0)) return place;
    const io::CfTime time("seconds since 1970-01-01", last.axes.calendar);
    for (int64_t k = 1; k <= frames; ++k) {
      const double from = last.times.back();
      place.times.push_back(last.axes.months > 0 ? time.add_months(from, k * last.axes.months)
                                                 : from + static_cast<double>(k) * step);
    }
    return place;
  }

  // What was measured before the state was saved is known too.
  void add_measured(const std::vector<data::FieldPlace>& saved) {
    for (size_t i = 0; i < std::min(saved.size(), start_.places.size()); ++i) {
      at::Tensor& measured = start_.places[i].measured;
      if (!measured.defined()) continue;
      measured = saved[i].measured.defined() && saved[i].measured.sizes() == measured.sizes()
                     ? measured.logical_or(saved[i].measured)
                     : at::Tensor();
    }
  }

  void read_actions() {
    if (!rules_.format.matter()) {
      fail(ErrorKind::usage, "this model was trained without actions: --actions {} would change nothing", c_.actions);
    }
    given_ = data::read_action_file(c_.actions, reading_.actions_key);
    if (c_.reading.clip >= 0 && given_.size(0) > c_.reading.clip) {
      given_ = given_.slice(0, c_.reading.clip, c_.reading.clip + 1);
    }
    if (c_.frames < 0) reading_.ahead = std::max(reading_.ahead, given_.size(1));
  }

  void take_actions() {
    coming_ = generate::for_each_clip(given_, start_.clips, c_.actions);
    log_info("actions: {} for each of {} clip{} from {}; action k leads to generated frame k, counted from 0",
             coming_.size(1), start_.clips, start_.clips == 1 ? "" : "s", c_.actions);
  }

  const GenerateCommand& c_;
  const run::LoadedModel& loaded_;
  models::Forecaster& forecaster_;
  generate::ContextOptions reading_;
  generate::ActionRules rules_;
  at::Tensor given_;   // of --actions
  at::Tensor coming_;  // [clips,T], [clips,T,A] or [clips,T,M,H,W] of frames to generate, as far as they are known
  ForecastStart start_;
};

}  // namespace

std::vector<data::FieldPlace> ForecastStart::last_places(int64_t made) const {
  std::vector<data::FieldPlace> last;
  for (int64_t row = 0; row < rows && !places.empty(); ++row) {
    const data::FieldPlace& place = places.at(static_cast<size_t>(row / (rows / clips)));
    const int64_t at = seen() + made - 1;
    last.push_back({place.axes, {}, place.measured});
    if (at >= 0 && at < std::ssize(place.times)) last.back().times = {place.times[static_cast<size_t>(at)]};
  }
  return last;
}

generate::StateOwner state_owner(const run::LoadedModel& loaded) {
  const data::FrameFormat& frames = loaded.recipe.frames;
  return {loaded.checksum, loaded.recipe.weights, fmt::format("{}x{}", frames.height, frames.width)};
}

ForecastStart make_start(const GenerateCommand& command, const run::LoadedModel& loaded) {
  return StartReader(command, loaded).read();
}

}  // namespace convssm::cli
