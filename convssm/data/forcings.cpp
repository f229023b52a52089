// Plain loops: the loader's threads run this, and must not start teams of OpenMP threads.
#include "convssm/data/forcings.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

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

at::Tensor scaled_field(const FieldFile& file, const std::string& name) {
  const io::Array field = file.read_static(name);
  const auto values = field.values<float>();
  float low = INFINITY, high = -INFINITY;
  for (const float x : values) {
    if (std::isfinite(x)) low = std::min(low, x), high = std::max(high, x);
  }
  at::Tensor map = at::zeros({file.height(), file.width()}, at::kFloat);
  if (!(high > low)) return map;
  float* out = map.data_ptr<float>();
  for (size_t i = 0; i < values.size(); ++i)
    out[i] = std::isfinite(values[i]) ? 2 * (values[i] - low) / (high - low) - 1 : 0;
  return map;
}

}  // namespace

Forcings::Forcings(const std::vector<std::string>& names, const FieldFile& file, const std::optional<io::CfTime>& time)
    : names_(names), time_(time), height_(file.height()), width_(file.width()) {
  const Axes& axes = file.axes();
  if (axes.rows.units == "degrees_north") latitudes_ = axes.rows.values;
  if (axes.columns.units == "degrees_east") longitudes_ = axes.columns.values;
  const auto need = [&](const std::string& name, bool there, const char* what) {
    if (!there)
      fail(ErrorKind::data, "[fields] the forcing '{}' needs {}, which '{}' has not", name, what, file.path());
  };
  for (const std::string& name : names_) {
    at::Tensor fixed;
    if (changes(name)) need(name, time_.has_value(), "times");
    if (name == "sun" || name == "latitude") need(name, !latitudes_.empty(), "rows of latitudes");
    if (name == "sun" || name == "longitude") need(name, !longitudes_.empty(), "columns of longitudes");
    if (!changes(name) && name != "latitude" && name != "longitude") {
      std::vector<std::string> known{"hour", "season", "sun", "latitude", "longitude"};
      for (const io::GridVariable& variable : file.file().variables()) known.push_back(variable.name);
      if (!file.file().find(name)) {
        const std::string close = nearest(name, known);
        fail(ErrorKind::data, "[fields] unknown forcing '{}'; {}", name,
             close.empty() ? fmt::format("known: {}", fmt::join(known, ", "))
                           : fmt::format("did you mean '{}'?", close));
      }
      fixed = scaled_field(file, name);
    }
    fixed_.push_back(fixed);
    count_ += maps_of(name);
  }
}

at::Tensor Forcings::maps(const std::vector<double>& seconds) const {
  if (count_ == 0) return {};
  const int64_t pixels = height_ * width_;
  at::Tensor all = at::empty({std::ssize(seconds), count_, height_, width_}, at::kFloat);
  float* out = all.data_ptr<float>();
  for (const double at : seconds) {
    for (size_t i = 0; i < names_.size(); ++i) {
      const std::string& name = names_[i];
      if (fixed_[i].defined()) {
        out = std::copy_n(fixed_[i].data_ptr<float>(), pixels, out);
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
