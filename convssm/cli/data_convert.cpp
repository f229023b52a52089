// convssm data convert: recordings as files of another kind.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/progress.h"
#include "convssm/base/stop_request.h"
#include "convssm/cli/data.h"
#include "convssm/cli/exit_status.h"
#include "convssm/data/convert.h"
#include "convssm/data/folder.h"
#include "convssm/data/recording_files.h"
#include "convssm/generate/frame_sink.h"
#include "convssm/io/yaml.h"

namespace convssm::cli {
namespace {

struct ConvertCommand {
  std::string from, to;
  std::vector<std::string> settings;
  data::ConvertOptions options;
  int64_t clip = -1;
  bool force = false;
};

struct Clip {
  size_t recording;
  int64_t row;
  std::string path;
};

// "frames/" -> "frames-3/", "a.npy" -> "a-3.npy".
std::string numbered(const std::string& path, int64_t number) {
  if (!path.ends_with("/")) return generate::numbered_path(path, number);
  return fmt::format("{}-{}/", path.substr(0, path.find_last_not_of('/') + 1), number);
}

// One result for each clip, numbered if there are several.
std::vector<Clip> clips_of(const ConvertCommand& c, const std::vector<data::RecordingInfo>& recordings) {
  std::vector<Clip> clips;
  int64_t number = 0;
  for (size_t i = 0; i < recordings.size(); ++i) {
    for (int64_t row = 0; row < recordings[i].clips; ++row, ++number) {
      if (c.clip < 0 || c.clip == number) clips.push_back({i, row, c.to});
    }
  }
  if (clips.empty())
    fail(ErrorKind::data, "{} holds {} clips, number {} is asked for (they count from 0)", c.from, number, c.clip);
  for (size_t i = 0; i < clips.size() && clips.size() > 1; ++i) clips[i].path = numbered(c.to, static_cast<int64_t>(i));
  for (const Clip& clip : clips) {
    if (!c.force && std::filesystem::exists(clip.path))
      fail(ErrorKind::usage, "{} is there already; --force replaces it", clip.path);
  }
  return clips;
}

int64_t frames_of(const ConvertCommand& c, const data::RecordingInfo& info, int64_t row) {
  return c.options.frames > 0 ? c.options.frames : std::max<int64_t>(0, info.length(row) - c.options.first);
}

void run(const ConvertCommand& c) {
  nlohmann::json settings{{"path", c.from}};
  for (const std::string& assignment : c.settings) io::set_override(settings, assignment);
  data::RecordingOptions reading = data::FolderOptions::from_json(settings).reading;
  reading.access = data::Access::in_order;
  std::vector<data::RecordingInfo> recordings;  // closed again: one is open at a time
  const data::FoundFiles found = data::find_recordings(c.from, data::Kinds::one);
  if (found.names.empty()) data::fail_no_recordings(c.from, found);
  for (const std::string& name : found.names) {
    recordings.push_back(data::open_recording(data::recording_path(c.from, name), reading)->info());
    data::check_field_options(recordings.back());
  }
  const std::vector<Clip> clips = clips_of(c, recordings);
  int64_t all = 0, before = 0;
  data::ConvertOptions options = c.options;
  for (const Clip& clip : clips) {
    const data::RecordingInfo& info = recordings[clip.recording];
    all += frames_of(c, info, clip.row);
    const auto shown = data::shown_extremes(info, clip.row, clip.path, c.options);
    if (!shown) continue;
    if (!options.shown) options.shown.emplace();
    options.shown->add(*shown);  // one grey means one value in all clips
  }
  const StopRequest stop;
  Progress progress("convert", all);
  std::unique_ptr<data::Recording> recording;
  for (const Clip& clip : clips) {
    if (stop.asked()) break;
    const data::RecordingInfo& info = recordings[clip.recording];
    if (clip.row == 0 || !recording || recording->info().path != info.path)
      recording = data::open_recording(info.path, info.reading);
    data::convert_clip(*recording, clip.row, clip.path, options, [&](int64_t done) {
      progress.update(before + done, "frames");
      return !stop.asked();
    });
    before += frames_of(c, info, clip.row);
  }
  progress.finish();
  log_info("{} clip{} of {}: {}{}", clips.size(), clips.size() == 1 ? "" : "s", c.from, clips[0].path,
           clips.size() == 1 ? "" : " ...");
  set_exit_status(stop.exit_code());
}

}  // namespace

void add_data_convert(CLI::App& data) {
  auto c = std::make_shared<ConvertCommand>();
  CLI::App* command = data.add_subcommand("convert", "Write recordings as files of another kind");
  command->add_option("from", c->from, "A file or folder that `data inspect` knows")->required();
  command->add_option("to", c->to, "Result: " + data::convertible_endings())->required();
  command->add_option("settings", c->settings, "Options of the dataset `folder`, as variables=[t2m] stride=2 size=64");
  command->add_option("--clip", c->clip, "Only this clip of several; by default all, one file each");
  command->add_option("--first", c->options.first, "Frame that the result begins with")->capture_default_str();
  command->add_option("--frames", c->options.frames, "So many frames; by default all");
  command->add_option("--fps", c->options.fps, "Frames per second of .gif and videos")->capture_default_str();
  command->add_option("--zarr-version", c->options.zarr_version, "Of .zarr: 2, or 3, which not every program reads")
      ->check(CLI::IsMember({2, 3}))
      ->capture_default_str();
  command->add_flag("--force", c->force, "Replace an existing result");
  command->footer(
      "Examples:\n  convssm data convert era5.grib era5.nc\n"
      "  convssm data convert radar rain.mp4 --frames 144 --fps 20      # a folder of files in time order is one "
      "recording\n"
      "  convssm data convert model.zarr wind.npz 'variables=[u@850, v@850]'");
  command->callback([c] { run(*c); });
}

}  // namespace convssm::cli
