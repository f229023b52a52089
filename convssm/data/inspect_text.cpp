// What an inspection found, for people and for programs.
#include <filesystem>
#include <ranges>

#include "convssm/base/error.h"
#include "convssm/base/json.h"
#include "convssm/data/inspect.h"
#include "convssm/io/cf_time.h"
#include "convssm/io/text.h"

namespace convssm::data {
namespace {

std::string plural(uint64_t count, const char* word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string array_line(const ArraySummary& array) {
  return fmt::format("{:<10} {}{} {}{}{}", "array", array.name.empty() ? "" : io::in_quotes(array.name) + " ",
                     array.type, array.shape, array.dimensions.empty() ? "" : " ", array.dimensions);
}

std::string channel_line(const Channel& channel, const Extremes& values) {
  const double missing =
      values.values == 0 ? 0 : 100.0 * static_cast<double>(values.nan) / static_cast<double>(values.values);
  return fmt::format("{:<10} {}{}: {:.6g} to {:.6g}, mean {:.6g}, deviation {:.6g}{}", "channel",
                     io::in_quotes(channel.name), channel.units.empty() ? "" : " [" + channel.units + "]", values.low,
                     values.high, values.mean, values.deviation(),
                     missing > 0 ? fmt::format(", {:.2g}% missing", missing) : "");
}

void add_clip_lines(const Inspection& found, std::vector<std::string>& lines) {
  const RecordingInfo& first = found.files[0];
  const std::string frames = found.shortest == found.longest ? fmt::format("{}", found.longest)
                                                             : fmt::format("{} to {}", found.shortest, found.longest);
  lines.push_back(fmt::format("{:<10} {}: {}", "layout", first.layout.letters, first.layout.reason));
  lines.push_back(
      fmt::format("{:<10} {} of {} frames in {}", "clips", found.clips, frames, plural(found.files.size(), "file")));
  std::string splits;
  for (const auto& [split, clips] : found.splits)
    splits += fmt::format("{}{} {}", splits.empty() ? "" : ", ", split, clips);
  if (!splits.empty()) lines.push_back(fmt::format("{:<10} {}", "splits", splits));
  lines.push_back(fmt::format("{:<10} {}x{} (height x width), {}", "frames", first.height, first.width,
                              plural(static_cast<uint64_t>(first.channels), "channel")));
  for (size_t c = 0; c < first.named_channels.size(); ++c)
    lines.push_back(channel_line(first.named_channels[c], found.channels[c]));
  const std::string actions =
      first.action_maps > 0     ? fmt::format("{} maps of what is known of each frame in advance", first.action_maps)
      : first.action_values > 0 ? fmt::format("{} numbers per frame, action k leads to frame k", first.action_values)
      : first.has_actions       ? "one per frame, action k leads to frame k"
      : !first.like_actions.empty() ? fmt::format("none; if {} holds them, set actions_key: {}",
                                                  io::in_quotes(first.like_actions[0]), first.like_actions[0])
                                    : "none";
  const std::string from =
      !first.has_actions || first.actions_path.empty() || first.actions_path == first.path
          ? ""
          : "; beside the clips, as " + io::in_quotes(std::filesystem::path(first.actions_path).filename().string());
  lines.push_back(fmt::format("{:<10} {}{}", "actions", actions, from));
  if (!found.codes.none()) {
    lines.push_back(fmt::format("{:<10} {} x {} for each frame, {} different ones", "codes", found.codes.height,
                                found.codes.width, found.codes.count));
  }
  for (const std::string& note : found.notes) lines.push_back(fmt::format("{:<10} {}", "note", note));
}

// Each channel with what was found of it.
nlohmann::json channels_json(const Inspection& found) {
  const std::vector<Channel>& named = found.files[0].named_channels;
  nlohmann::json list = nlohmann::json::array();
  for (size_t c = 0; c < found.channels.size(); ++c) {
    const Extremes& values = found.channels[c];
    const Channel channel = c < named.size() ? named[c] : Channel{};
    list.push_back(
        {{"name", channel.name},
         {"units", channel.units},
         {"low", values.low},
         {"high", values.high},
         {"missing", values.values == 0 ? 0.0 : static_cast<double>(values.nan) / static_cast<double>(values.values)}});
    if (io::is_float(found.files[0].dtype))
      list.back().update({{"mean", values.mean}, {"deviation", values.deviation()}});
  }
  return list;
}

// The usual step, and when each piece between gaps begins and ends; null if nobody knows.
nlohmann::json times_json(const Inspection& found) {
  constexpr size_t most = 1000;
  if (found.spans.empty()) return nullptr;
  const RecordingInfo& first = found.files[0];
  const io::CfTime time("seconds since 1970-01-01", first.axes.calendar);
  nlohmann::json pieces = nlohmann::json::array();
  for (const TimeSpan& span : found.spans | std::views::take(most))
    pieces.push_back({{"first", time.text(span.first)}, {"last", time.text(span.last)}, {"frames", span.frames}});
  return {{"calendar", first.axes.calendar},
          {"step_seconds", first.axes.step},
          {"step_months", first.axes.months},
          {"gaps", first.in_time_order ? first.clips - 1 : 0},
          {"pieces", pieces}};
}

}  // namespace

std::vector<std::string> inspection_lines(const Inspection& found) {
  std::vector<std::string> lines{fmt::format("{:<10} {}", "path", found.path)};
  for (const ArraySummary& array : found.arrays) lines.push_back(array_line(array));
  if (!found.files.empty()) add_clip_lines(found, lines);
  if (found.values.values > 0) {
    lines.push_back(fmt::format("{:<10} {} to {}, {} NaN, {} infinite", "values", found.values.low, found.values.high,
                                found.values.nan, found.values.infinite));
  }
  return lines;
}

nlohmann::json inspection_json(const Inspection& found) {
  nlohmann::json arrays = nlohmann::json::array();
  for (const ArraySummary& array : found.arrays) {
    arrays.push_back({{"name", array.name}, {"type", array.type}, {"shape", parse_json(array.shape, "shape")}});
  }
  nlohmann::json json{{"path", found.path},        {"arrays", arrays},         {"low", found.values.low},
                      {"high", found.values.high}, {"nan", found.values.nan},  {"infinite", found.values.infinite},
                      {"yaml", found.yaml},        {"problem", found.problem}, {"broken", found.broken},
                      {"notes", found.notes}};
  if (found.files.empty()) return json;
  const RecordingInfo& first = found.files[0];
  json.update({{"files", found.files.size()},
               {"clips", found.clips},
               {"shortest", found.shortest},
               {"longest", found.longest},
               {"key", first.key},
               {"layout", first.layout.letters},
               {"layout_reason", first.layout.reason},
               {"height", first.height},
               {"width", first.width},
               {"channels", first.channels},
               {"fields", channels_json(found)},
               {"times", times_json(found)},
               {"actions", first.has_actions},
               {"action_maps", first.action_maps},
               {"codes", found.codes.count},
               {"action_values", first.action_values}});
  return json;
}

}  // namespace convssm::data
