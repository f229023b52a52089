#include "convssm/data/field_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "convssm/base/error.h"
#include "convssm/data/field_variables.h"
#include "convssm/data/numbers.h"
#include "convssm/io/grid_open.h"

namespace convssm::data {
namespace {

constexpr size_t kMostUnnamed = 16;  // channels that are taken without being named

// The place of a value along a dimension, by its coordinate. Error(data) that names the nearest one.
int64_t place_of(const io::GridFile& file, const io::GridVariable& variable, int d, double wanted) {
  const std::vector<double> values = read_axis(file, variable, d).values;
  const auto nearest = std::ranges::min_element(values, {}, [&](double x) { return std::abs(x - wanted); });
  const double tolerance = 1e-6 * std::max(1.0, std::abs(wanted));
  if (nearest != values.end() && std::abs(*nearest - wanted) <= tolerance) return nearest - values.begin();
  const size_t shown = std::min<size_t>(values.size(), 12);
  fail(ErrorKind::data, "[fields] '{}': {} has no {} {}; the nearest is {}, there are {}{}", file.path(), variable.name,
       variable.dimensions[static_cast<size_t>(d)], wanted, nearest == values.end() ? NAN : *nearest,
       fmt::join(values.begin(), values.begin() + static_cast<int64_t>(shown), ", "),
       shown < values.size() ? ", ..." : "");
}

std::string level_text(double level) { return fmt::format("{}", level); }

}  // namespace

FieldFile::FieldFile(const std::string& path, const FieldChoice& choice, const std::vector<std::string>& beside)
    : path_(path), choice_(choice) {
  files_.push_back(io::open_grid(path));
  for (const std::string& other : beside) files_.push_back(io::open_grid(other));
  const std::vector<std::string> wanted = choice.variables.empty() ? usual_fields(files_) : choice.variables;
  for (const std::string& name : wanted) add_channels(name, choice);
  if (choice.variables.empty() && channels_.size() > kMostUnnamed) {
    std::vector<std::string> names;
    for (const FieldChannel& channel : channels_) names.push_back(channel.name);
    fail(ErrorKind::data, "[fields] '{}' has {} fields; name those to take, data.variables: [{}, ...] of {}", path,
         channels_.size(), names[0], fmt::join(names, ", "));
  }
}

FieldFile::Found FieldFile::find(const std::string& name) const {
  for (const auto& file : files_) {
    if (const io::GridVariable* variable = find_variable(*file, name)) return {file.get(), variable};
  }
  return {};
}

FieldFile::Found FieldFile::find_or_fail(const std::string& name) const {
  const Found found = find(name);
  return found.variable ? found : Found{files_[0].get(), &files_[0]->variable(name)};
}

std::vector<std::string> FieldFile::names() const {
  std::vector<std::string> all;
  for (const auto& file : files_) {
    for (const io::GridVariable& variable : file->variables()) all.push_back(variable.name);
  }
  return all;
}

void FieldFile::add_channels(const std::string& wanted, const FieldChoice& choice) {
  // The name may have an @ of its own.
  const WantedField channel = find(wanted).variable ? WantedField{wanted, std::nullopt} : read_wanted(wanted);
  Layer layer = make_layer(find_or_fail(channel.variable), choice);
  const io::GridVariable& variable = *layer.variable;
  const int level = layer.dims.level;
  if (level < 0) {
    if (channel.level)
      fail(ErrorKind::data, "[fields] '{}': {} has no levels, '{}' asks for one", path_, variable.name, wanted);
    return add_layer(layer, channel.variable);
  }
  if (channel.level) {
    layer.first[static_cast<size_t>(level)] = place_of(*layer.file, variable, level, *channel.level);
    return add_layer(layer, wanted);
  }
  const std::vector<double> levels = read_axis(*layer.file, variable, level).values;
  for (size_t i = 0; i < levels.size(); ++i) {
    layer.first[static_cast<size_t>(level)] = static_cast<int64_t>(i);
    add_layer(layer, levels.size() == 1 ? channel.variable : channel.variable + "@" + level_text(levels[i]));
  }
}

FieldFile::Layer FieldFile::make_layer(const Found& found, const FieldChoice& choice) const {
  const io::GridFile& file = *found.file;
  const io::GridVariable& variable = *found.variable;
  Layer layer{&file, &variable, find_dimensions(file, variable), std::vector<int64_t>(variable.shape.size(), 0),
              values_of(file, variable)};
  if (!layer.dims.are_field()) {
    fail(ErrorKind::data, "[fields] '{}': {} [{}] has no rows and columns", file.path(), variable.name,
         fmt::join(variable.dimensions, ", "));
  }
  for (const int d : layer.dims.others) {
    const std::string& name = variable.dimensions[static_cast<size_t>(d)];
    const auto chosen = choice.select.find(name);
    if (chosen != choice.select.end()) {
      layer.first[static_cast<size_t>(d)] = place_of(file, variable, d, chosen->second);
    } else if (variable.shape[static_cast<size_t>(d)] > 1) {
      fail(ErrorKind::data, "[fields] '{}': {} has the dimensions [{}] {}; choose one of '{}', data.select: {{{}: {}}}",
           path_, variable.name, fmt::join(variable.dimensions, ", "), io::shape_text(variable.shape), name, name,
           read_axis(file, variable, d).values[0]);
    }
  }
  return layer;
}

void FieldFile::add_layer(const Layer& layer, const std::string& name) {
  const io::GridVariable& variable = *layer.variable;
  const int64_t frames = layer.dims.time < 0 ? 1 : variable.shape[static_cast<size_t>(layer.dims.time)];
  const Axis rows = read_axis(*layer.file, variable, layer.dims.rows),
             columns = read_axis(*layer.file, variable, layer.dims.columns);
  if (layers_.empty()) {
    frames_ = frames;
    axes_.rows = rows, axes_.columns = columns;
    times_ = read_times(*layer.file, variable, layer.dims);
    if (times_) axes_.calendar = times_->time.calendar();
  } else if (frames != frames_ || !same_axis(rows, axes_.rows) || !same_axis(columns, axes_.columns)) {
    fail(ErrorKind::data,
         "[fields] '{}': all channels must have one grid: {} has {} frames of {} x {}, {} has {} of {} x {}, or other "
         "coordinates; name variables of one grid by data.variables",
         path_, channels_[0].name, frames_, height(), width(), name, frames, rows.values.size(), columns.values.size());
  }
  if (!layers_.empty()) check_times(layer, name);
  if (frames == 0 || height() == 0 || width() == 0) {
    fail(ErrorKind::data, "[fields] '{}': {} {} is empty", path_, variable.name, io::shape_text(variable.shape));
  }
  layers_.push_back(layer);
  channels_.push_back({name, attribute_text(variable.attributes, "units")});
}

// Files may have several dimensions of time, of as many frames each.
void FieldFile::check_times(const Layer& layer, const std::string& name) const {
  const Layer& first = layers_[0];
  const auto dimension = [](const Layer& of) {
    return of.dims.time < 0 ? "" : of.variable->dimensions[static_cast<size_t>(of.dims.time)];
  };
  const bool same_dimension = layer.dims.time >= 0 && layer.file == first.file && dimension(layer) == dimension(first);
  if (!times_ || same_dimension) return;
  const auto times = read_times(*layer.file, *layer.variable, layer.dims);
  if (!times || times->seconds == times_->seconds) return;
  const auto differ = std::ranges::mismatch(times->seconds, times_->seconds);
  fail(ErrorKind::data,
       "[fields] '{}': all channels must be of the same times, but frame {} of {} is of {} and that of {} of {}; name "
       "variables of the same times by data.variables",
       path_, differ.in1 - times->seconds.begin(), name, times->time.text(*differ.in1), channels_[0].name,
       times_->time.text(*differ.in2));
}

bool FieldFile::declares_missing() const {
  return std::ranges::any_of(layers_, [](const Layer& layer) { return layer.values.declare_missing(); });
}

// The box may have its dimensions in any order: its strides say where each element goes.
void FieldFile::read_layer(const Layer& layer, int64_t first, int64_t count, float* out, int64_t frame_step) const {
  const io::GridVariable& variable = *layer.variable;
  const size_t rank = variable.shape.size();
  std::vector<int64_t> begin = layer.first, size(rank, 1), step(rank, 0);
  const auto set = [&](int d, int64_t extent, int64_t stride) {
    size[static_cast<size_t>(d)] = extent, step[static_cast<size_t>(d)] = stride;
  };
  set(layer.dims.rows, height(), width());
  set(layer.dims.columns, width(), 1);
  if (layer.dims.time >= 0) {
    set(layer.dims.time, count, frame_step);
    begin[static_cast<size_t>(layer.dims.time)] = first;
  }
  const io::Array box = layer.file->read(variable, begin, size);
  const FieldValues& values = layer.values;
  with_numbers(box, [&](auto elements) {
    using T = std::remove_cvref_t<decltype(elements[0])>;
    const double wrap = std::is_integral_v<T> && std::is_signed_v<T> && values.wraps ? std::exp2(8.0 * sizeof(T)) : 0;
    const auto missing = [&](size_t i) { return i < values.missing.size() ? values.missing[i] : NAN; };
    const double none[] = {values.unwritten, missing(0), missing(1)};  // NaN equals nothing; more than these are rare
    const auto rarely_missing = [&](double value) {
      return std::find(values.missing.begin() + 2, values.missing.end(), value) != values.missing.end();
    };
    const bool rare = values.missing.size() > 2;
    const double low = values.low, high = values.high, scale = values.scale, offset = values.offset;
    const int64_t row = size[rank - 1], along = step[rank - 1];
    std::vector<int64_t> at(rank, 0);
    int64_t place = 0;
    for (size_t begin_of_row = 0; begin_of_row < elements.size(); begin_of_row += static_cast<size_t>(row)) {
      for (int64_t i = 0; i < row; ++i) {
        double value = number(elements[begin_of_row + static_cast<size_t>(i)]);
        value += value < 0 ? wrap : 0;
        const bool measured =
            (value >= low) & (value <= high) & (value != none[0]) & (value != none[1]) & (value != none[2]);
        out[place + i * along] = measured ? static_cast<float>(value * scale + offset) : NAN;
        if (rare && rarely_missing(value)) out[place + i * along] = NAN;
      }
      for (size_t d = rank - 1; d-- > 0;) {  // the next row, in the order of the box
        place += step[d];
        if (++at[d] < size[d]) break;
        place -= step[d] * size[d];
        at[d] = 0;
      }
    }
  });
}

io::Array FieldFile::read(int64_t first, int64_t count) const {
  const auto C = static_cast<int64_t>(layers_.size());
  io::Array all = io::array_of_file(path_, io::DType::f32, {count, C, height(), width()});
  for (int64_t c = 0; c < C; ++c) {
    read_layer(layers_[static_cast<size_t>(c)], first, count, all.values<float>().data() + c * height() * width(),
               C * height() * width());
  }
  return all;
}

FieldFile::Layer FieldFile::known_layer(const std::string& name) const {
  const WantedField wanted = find(name).variable ? WantedField{name, std::nullopt} : read_wanted(name);
  Layer layer = make_layer(find_or_fail(wanted.variable), choice_);
  const io::GridVariable& variable = *layer.variable;
  const int level = layer.dims.level;
  if (wanted.level && level < 0)
    fail(ErrorKind::data, "[fields] '{}': {} has no levels, '{}' asks for one", path_, variable.name, name);
  if (wanted.level) {
    layer.first[static_cast<size_t>(level)] = place_of(*layer.file, variable, level, *wanted.level);
  } else if (level >= 0 && variable.shape[static_cast<size_t>(level)] > 1) {
    fail(ErrorKind::data, "[fields] '{}': the forcing {} has {} levels; name one of them, such as {}@{}", path_, name,
         variable.shape[static_cast<size_t>(level)], name,
         level_text(read_axis(*layer.file, variable, level).values[0]));
  }
  return layer;
}

std::vector<double> FieldFile::known_moments(const std::string& name) const {
  const Layer layer = known_layer(name);
  const io::GridVariable& variable = *layer.variable;
  const Axis rows = read_axis(*layer.file, variable, layer.dims.rows),
             columns = read_axis(*layer.file, variable, layer.dims.columns);
  if (!same_axis(rows, axes_.rows) || !same_axis(columns, axes_.columns)) {
    fail(ErrorKind::data,
         "[fields] '{}': the forcing {} is of {} x {}, the frames are of {} x {}, or of other coordinates", path_, name,
         rows.values.size(), columns.values.size(), height(), width());
  }
  const int t = layer.dims.time;
  const int64_t extent = t < 0 ? 1 : variable.shape[static_cast<size_t>(t)];
  const bool of_all = t < 0 ? layers_[0].dims.time >= 0 || !times_ : extent == 1 && frames_ > 1;
  if (of_all) return {};
  const auto own = read_times(*layer.file, variable, layer.dims);
  if (own && times_) return own->seconds;
  if (extent != frames_) {
    fail(ErrorKind::data, "[fields] '{}': the forcing {} has {} frames without times that go with the {} of the others",
         path_, name, extent, frames_);
  }
  if (times_) return times_->seconds;
  std::vector<double> numbers(static_cast<size_t>(extent));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

io::Array FieldFile::read_known(const std::string& name, int64_t frame) const {
  io::Array field = io::array_of_file(path_, io::DType::f32, {height(), width()});
  read_layer(known_layer(name), frame, 1, field.values<float>().data(), 0);
  return field;
}

}  // namespace convssm::data
