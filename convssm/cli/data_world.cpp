// convssm data inspect --world: one clip of a world, as pictures for people, with the map and the path beside the frames.
#include <fmt/format.h>

#include <algorithm>

#include "convssm/base/progress.h"
#include "convssm/cli/data.h"
#include "convssm/data/dataset.h"
#include "convssm/data/picture.h"
#include "convssm/data/world_clips.h"
#include "convssm/io/video_writer.h"
#include "convssm/worlds/record.h"

namespace convssm::cli {
namespace {

constexpr int64_t shown_side = 256, strip_columns = 8, strip_rows = 2;
constexpr double shown_fps = 15;

io::Image world_frame(const worlds::Recorded& walk, const worlds::View& view, size_t t, int64_t scale) {
  const uint8_t* from = walk.video.data() + t * static_cast<size_t>(view.bytes());
  io::Image image{view.width * scale, view.height * scale, 3, {}};
  image.pixels.reserve(static_cast<size_t>(3 * image.width * image.height));
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      const uint8_t* pixel = from + 3 * ((y / scale) * view.width + x / scale);
      image.pixels.insert(image.pixels.end(), pixel, pixel + 3);
    }
  }
  return image;
}

void write_strip(const std::string& path, const worlds::Recorded& walk, const worlds::View& view) {
  const auto frames = static_cast<int64_t>(walk.poses.size()), count = std::min(frames, strip_columns * strip_rows);
  std::vector<std::vector<io::Image>> rows;
  for (int64_t i = 0; i < count; ++i) {
    if (i % strip_columns == 0) rows.emplace_back();
    rows.back().push_back(
        world_frame(walk, view, static_cast<size_t>(i * frames / count), data::friendly_scale(view.width)));
  }
  io::write_png(path, data::table_picture(rows));
}

void write_animation(const std::string& path, const worlds::World& world, const worlds::Recorded& walk) {
  const int64_t scale = std::max<int64_t>(1, shown_side / world.view().width), side = world.view().height * scale;
  const io::Image first = world_frame(walk, world.view(), 0, scale);
  const auto frames = static_cast<int64_t>(walk.poses.size());
  const auto video = io::open_video(
      path, {.frames = frames, .width = first.width + 2 + side, .height = side, .channels = 3, .fps = shown_fps});
  Progress progress("draw", frames);
  for (size_t t = 0; t < walk.poses.size(); ++t) {
    const io::Image frame = world_frame(walk, world.view(), t, scale);
    const io::Image map = world.map(std::span(walk.poses).first(t + 1), side);
    video->write(data::table_picture({{frame, map}}).pixels);
    progress.update(static_cast<int64_t>(t) + 1);
  }
  video->close();
}

}  // namespace

void look_at_world(const WorldLook& look) {
  const MadeClips made = parse_made_clips(look.world, look.settings);
  const auto dataset = data::make_dataset(made.options, made.seed);  // refuses wrong options, knows its summary
  nlohmann::json options = made.options;
  const worlds::RevisitOptions revisit = data::take_clips_options(look.world, options).revisit;
  const auto world = worlds::make_worlds(options, made.seed)->at(look.split, look.clip);
  const worlds::Recorded walk = worlds::record(world, 0, look.frames, revisit);
  for (const std::string& line : dataset->summary()) fmt::print("{}\n", line);
  fmt::print("\nclip {} of {}, {} frames\n", look.clip, look.split, look.frames);
  for (size_t a = 0; a < world->actions().size(); ++a) {
    fmt::print("  {:<18} {:5.1f}%\n", world->actions()[a],
               100.0 * static_cast<double>(std::ranges::count(walk.actions, static_cast<int64_t>(a))) /
                   static_cast<double>(look.frames));
  }
  const auto seen = std::ranges::count_if(walk.revisit, [](int64_t s) { return s >= 0; });
  fmt::print("  {:.1f}% of the frames show a place that was seen before and had left the view\n",
             100.0 * static_cast<double>(seen) / static_cast<double>(look.frames));
  if (!look.png.empty()) write_strip(look.png, walk, world->view());
  if (!look.gif.empty()) write_animation(look.gif, *world, walk);
}

}  // namespace convssm::cli
