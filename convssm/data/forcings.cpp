// Plain loops: the loader's threads run this, and must not start teams of OpenMP threads.
#include "convssm/data/forcings.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

#include "convssm/base/error.h"
#include "convssm/base/nearest.h"

namespace convssm::data {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;
constexpr double kDegree = kTurn / 360;

int64_t maps_of(const std::string& name) { return name == "hour" || name == "season" || name == "longitude" ? 2 : 1; }
bool changes(const std::string& name) { return name == "hour" || name == "season" || name == "sun"; }

float* fill(float* out, int64_t pixels, double value) {
  std::fill(out, out + pixels, static_cast<float>(value));
  return out + pixels;
}

// Declination and equation of time by Spencer (1971), from the part of the year as an angle; good to a quarter of a degree and half a
// minute.
struct Sun {
  double declination, equation;  // radians, hours
};

Sun sun_at(double part_of_year) {
  const double g = kTurn * part_of_year;
  const double declination = 0.006918 - 0.399912 * std::cos(g) + 0.070257 * std::sin(g) - 0.006758 * std::cos(2 * g) +
                             0.000907 * std::sin(2 * g) - 0.002697 * std::cos(3 * g) + 0.00148 * std::sin(3 * g);
  const double equation = 0.000075 + 0.001868 * std::cos(g) - 0.032077 * std::sin(g) - 0.014615 * std::cos(2 * g) -
                          0.040849 * std::sin(2 * g);
  return {declination, equation * 24 / kTurn};
}

bool is_field(const std::string& name) { return !changes(name) && name != "latitude" && name != "longitude"; }

std::pair<double, double> range_of(const io::Array& field) {
  double low = INFINITY, high = -INFINITY;
  for (const float x : field.values<float>()) {
    if (std::isfinite(x)) low = std::min<double>(low, x), high = std::max<double>(high, x);
  }
  return {low, high};
}

// To `out`, and behind it.
float* scale(const io::Array& field, double low, double high, float* out) {
  const double factor = high > low ? 2 / (high - low) : 0;
  for (const float x : field.values<float>())
    *out++ = std::isfinite(x) && factor > 0 ? static_cast<float>((x - low) * factor - 1) : 0;
  return out;
}

// Of files of one time each nothing says whether a field changes: it does if the last one has another than the first.
bool stays_the_same(const std::string& name, size_t place, const FieldChoice& choice, const FieldFile& first,
                    const std::vector<FileHead>& heads) {
  if (std::ranges::all_of(heads, [&](const FileHead& head) { return head.known[place].empty(); })) return true;
  const auto single = [&](const FileHead& head) { return head.frames == 1 && head.known[place].size() <= 1; };
  if (heads.size() < 2 || !std::ranges::all_of(heads, single)) return false;
  const size_t other = heads.back().path == first.path() ? 0 : heads.size() - 1;
  const io::Array a = first.read_known(name, 0),
                  b = FieldFile(heads[other].path, choice, heads[other].beside).read_known(name, 0);
  return std::ranges::equal(a.bytes(), b.bytes());
}

}  // namespace

std::vector<std::vector<double>> known_moments(const std::vector<std::string>& names, const FieldFile& file) {
  std::vector<std::vector<double>> all;
  for (const std::string& name : names) {
    if (!is_field(name)) continue;
    if (!file.has(name) && !file.has(name.substr(0, name.rfind('@')))) {
      std::vector<std::string> known = file.names();
      known.insert(known.begin(), {"hour", "season", "sun", "latitude", "longitude"});
      const std::string close = nearest(name, known);
      fail(ErrorKind::data, "[fields] '{}': unknown forcing '{}'; {}", file.path(), name,
           close.empty() ? fmt::format("known: {}", fmt::join(known, ", ")) : fmt::format("did you mean '{}'?", close));
    }
    all.push_back(file.known_moments(name));
  }
  return all;
}

Forcings::Forcings(const std::vector<std::string>& names, const FieldChoice& choice, const FieldFile& first,
                   const std::vector<FileHead>& heads, const std::optional<io::CfTime>& time, double tolerance)
    : time_(time), path_(first.path()), tolerance_(tolerance), height_(first.height()), width_(first.width()) {
  const Axes& axes = first.axes();
  if (axes.rows.units == "degrees_north") latitudes_ = axes.rows.values;
  if (axes.columns.units == "degrees_east") longitudes_ = axes.columns.values;
  const auto need = [&](const std::string& name, bool there, const char* what) {
    if (!there) fail(ErrorKind::data, "[fields] the forcing '{}' needs {}, which '{}' has not", name, what, path_);
  };
  size_t fields = 0;
  for (const std::string& name : names) {
    Map map{name};
    if (changes(name)) need(name, time_.has_value(), "times");
    if (name == "sun" || name == "latitude") need(name, !latitudes_.empty(), "rows of latitudes");
    if (name == "sun" || name == "longitude") need(name, !longitudes_.empty(), "columns of longitudes");
    if (is_field(name)) add_field(map, fields++, choice, first, heads);
    count_ += maps_of(name);
    maps_.push_back(std::move(map));
  }
  for (const auto& [name, range] : choice.forcing_ranges) {
    if (is_field(name) && std::ranges::find(names, name) != names.end()) continue;
    fail(ErrorKind::usage, "[fields] forcing_ranges: '{}' is none of the fields in data.forcings ({})", name,
         fmt::join(names, ", "));
  }
}

void Forcings::add_field(Map& map, size_t place, const FieldChoice& choice, const FieldFile& first,
                         const std::vector<FileHead>& heads) {
  const auto range = choice.forcing_ranges.find(map.name);
  const bool given = range != choice.forcing_ranges.end();
  if (given) std::tie(map.low, map.high) = range->second;
  if (stays_the_same(map.name, place, choice, first, heads)) {
    const io::Array field = first.read_known(map.name, 0);
    if (!given) std::tie(map.low, map.high) = range_of(field);
    map.fixed = at::empty({height_, width_}, at::kFloat);
    scale(field, map.low, map.high, map.fixed.data_ptr<float>());
    return;
  }
  if (!given) {
    const auto [low, high] = range_of(first.read_known(map.name, 0));
    fail(ErrorKind::data,
         "[fields] '{}': the forcing {} changes with time; say which values become -1 and 1, in all files alike: "
         "data.forcing_ranges: {{{}: [low, high]}} (its first frame has {:.6g} to {:.6g})",
         path_, map.name, map.name, low, high);
  }
  map.known.resize(heads.back().group + 1);
  for (size_t file = 0; file < heads.size(); ++file) {
    const auto& moments = heads[file].known[place];
    const double offset = time_ ? 0 : static_cast<double>(heads[file].first);
    for (size_t i = 0; i < moments.size(); ++i)
      map.known[heads[file].group].push_back({moments[i] + offset, file, static_cast<int64_t>(i)});
  }
  for (auto& frames : map.known) std::ranges::stable_sort(frames, {}, &KnownFrame::moment);
}

const Forcings::KnownFrame& Forcings::known_at(const Map& map, double moment, size_t group) const {
  const auto& frames = map.known[group];
  const auto found = std::ranges::lower_bound(frames, moment - tolerance_, {}, &KnownFrame::moment);
  if (found != frames.end() && found->moment <= moment + tolerance_) return *found;
  const auto text = [&](double at) { return time_ ? time_->text(at) : fmt::format("frame {:.0f}", at); };
  fail(
      ErrorKind::data,
      "[fields] '{}': the forcing {} is not known of {}: {}; a model needs it of each frame that it sees or forecasts: "
      "add what is not there, or ask for fewer frames (generate: --frames)",
      path_, map.name, text(moment),
      frames.empty() ? std::string("the file has none")
                     : fmt::format("the file{} it from {} until {}",
                                   frames.front().file != frames.back().file ? "s know" : " knows",
                                   text(frames.front().moment), text(frames.back().moment)));
}

at::Tensor Forcings::maps(const std::vector<double>& moments, size_t group, const ReadKnown& read) const {
  if (count_ == 0) return {};
  const int64_t pixels = height_ * width_;
  at::Tensor all = at::empty({std::ssize(moments), count_, height_, width_}, at::kFloat);
  float* out = all.data_ptr<float>();
  for (const double at : moments) {
    for (const Map& map : maps_) {
      const std::string& name = map.name;
      if (map.fixed.defined()) {
        out = std::copy_n(map.fixed.data_ptr<float>(), pixels, out);
      } else if (!map.known.empty()) {
        const KnownFrame& known = known_at(map, at, group);
        out = scale(read(known.file, name, known.frame), map.low, map.high, out);
      } else if (name == "hour" || name == "season") {
        const double angle = kTurn * (name == "hour" ? time_->hour_of_day(at) / 24 : time_->part_of_year(at));
        out = fill(fill(out, pixels, std::sin(angle)), pixels, std::cos(angle));
      } else if (name == "latitude") {
        for (const double latitude : latitudes_) out = fill(out, width_, latitude / 90);
      } else if (name == "longitude") {
        for (const bool sine : {true, false}) {
          for (int64_t row = 0; row < height_; ++row) {
            for (const double x : longitudes_)
              *out++ = static_cast<float>(sine ? std::sin(x * kDegree) : std::cos(x * kDegree));
          }
        }
      } else {  // sun
        const Sun sun = sun_at(time_->part_of_year(at));
        const double noon = time_->hour_of_day(at) - 12 + sun.equation;
        for (const double latitude : latitudes_) {
          const double a = std::sin(latitude * kDegree) * std::sin(sun.declination);
          const double b = std::cos(latitude * kDegree) * std::cos(sun.declination);
          for (const double x : longitudes_)
            *out++ = static_cast<float>(a + b * std::cos(kTurn * noon / 24 + x * kDegree));
        }
      }
    }
  }
  return all;
}

}  // namespace convssm::data
