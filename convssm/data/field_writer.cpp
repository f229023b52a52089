// Times are written in the units that suit their step, from the first frame on.
#include "convssm/data/field_writer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/base/version.h"
#include "convssm/io/cf_time.h"
#include "convssm/ops/check.h"

namespace convssm::data {
namespace {

io::GridAttribute text(const std::string& value) { return {value, {}}; }

// Names as files want them: letters, digits and _ - . + @, and none twice.
std::vector<std::string> variable_names(const FrameFormat& format) {
  std::vector<std::string> names;
  for (size_t c = 0; c < format.channels.size(); ++c) {
    std::string name = format.channels[c].name;
    for (char& letter : name) {
      if (!std::isalnum(static_cast<unsigned char>(letter)) && std::string("_-.+@").find(letter) == std::string::npos)
        letter = '_';
    }
    if (name.empty()) name = format.channels.size() == 1 ? "value" : fmt::format("channel_{}", c);
    while (std::ranges::find(names, name) != names.end()) name += "_";
    names.push_back(name);
  }
  return names;
}

io::Array array_of(const std::vector<double>& values) { return io::make_array({std::ssize(values)}, values); }

io::GridVariable coordinate_variable(const Axis& axis, const char* standard_axis) {
  io::GridVariable variable{.name = axis.name, .dtype = io::DType::f64, .dimensions = {axis.name}};
  if (!axis.units.empty()) variable.attributes["units"] = text(axis.units);
  if (axis.units == "degrees_north") variable.attributes["standard_name"] = text("latitude");
  if (axis.units == "degrees_east") variable.attributes["standard_name"] = text("longitude");
  variable.attributes["axis"] = text(standard_axis);
  return variable;
}

Axis numbered(const char* name, int64_t size) {
  Axis axis{name};
  for (int64_t i = 0; i < size; ++i) axis.values.push_back(static_cast<double>(i));
  return axis;
}

io::Array f32_array(const at::Tensor& values, std::vector<int64_t> shape) {
  const at::Tensor plain = values.contiguous();
  io::Array array(io::DType::f32, std::move(shape));
  std::memcpy(array.bytes().data(), plain.data_ptr<float>(), array.byte_count());
  return array;
}

}  // namespace

FieldWriter::FieldWriter(const std::string& path, const FrameFormat& format, const FieldPlace& place, int64_t frames,
                         int64_t members)
    : format_(format), place_(place), frames_(frames), members_(members), names_(variable_names(format)) {
  find_axes();
  writer_ = io::open_grid_writer(path, layout());
  write_coordinates();
}

void FieldWriter::find_axes() {
  const bool rows = std::ssize(place_.axes.rows.values) == format_.height,
             columns = std::ssize(place_.axes.columns.values) == format_.width;
  rows_ = rows ? place_.axes.rows : numbered("y", format_.height);
  columns_ = columns ? place_.axes.columns : numbered("x", format_.width);
  for (Axis* axis : {&rows_, &columns_}) axis->name = axis->name.substr(axis->name.rfind('/') + 1);
}

std::string FieldWriter::time_units() const {
  const io::CfTime time("seconds since 1970-01-01", place_.axes.calendar);
  const double step = place_.axes.months > 0 ? 86400 : place_.axes.step;
  const char* unit = step > 0 && std::fmod(step, 86400) == 0  ? "days"
                     : step > 0 && std::fmod(step, 3600) == 0 ? "hours"
                     : step > 0 && std::fmod(step, 60) == 0   ? "minutes"
                                                              : "seconds";
  return fmt::format("{} since {}", unit, time.text(place_.times[0]));
}

io::GridLayout FieldWriter::layout() const {
  io::GridLayout layout;
  layout.records = "time";
  layout.zarr_version = place_.zarr_version;
  layout.dimensions = {{"time", frames_}, {rows_.name, format_.height}, {columns_.name, format_.width}};
  if (members_ > 1) layout.dimensions.push_back({"number", members_});
  layout.attributes = {{"Conventions", text("CF-1.8")}, {"source", text(std::string("convssm ") + kVersion)}};
  io::GridVariable time{.name = "time", .dtype = io::DType::f64, .dimensions = {"time"}};
  time.attributes = {{"axis", text("T")}};
  if (place_.times.empty()) {
    time.attributes["long_name"] = text("number of the frame");
  } else {
    time.attributes["units"] = text(time_units());
    time.attributes["calendar"] = text(place_.axes.calendar);
    time.attributes["standard_name"] = text("time");
  }
  layout.variables = {time, coordinate_variable(rows_, "Y"), coordinate_variable(columns_, "X")};
  if (members_ > 1) {
    layout.variables.push_back({.name = "number",
                                .dtype = io::DType::i32,
                                .dimensions = {"number"},
                                .attributes = {{"standard_name", text("realization")}}});
  }
  for (size_t c = 0; c < names_.size(); ++c) {
    io::GridVariable field{.name = names_[c], .dtype = place_.dtype, .dimensions = {"time", rows_.name, columns_.name}};
    if (members_ > 1) field.dimensions.insert(field.dimensions.begin() + 1, "number");
    if (!format_.channels[c].units.empty()) field.attributes["units"] = text(format_.channels[c].units);
    if (io::is_float(place_.dtype)) field.attributes["_FillValue"] = {"", {std::numeric_limits<double>::quiet_NaN()}};
    layout.variables.push_back(field);
  }
  return layout;
}

void FieldWriter::write_coordinates() {
  writer_->write(rows_.name, array_of(rows_.values));
  writer_->write(columns_.name, array_of(columns_.values));
  if (members_ == 1) return;
  std::vector<int32_t> numbers;
  for (int64_t i = 0; i < members_; ++i) numbers.push_back(static_cast<int32_t>(i));
  writer_->write("number", io::make_array({members_}, numbers));
}

void FieldWriter::write(const at::Tensor& moment) {
  const at::Tensor all = moment.dim() == 3 ? moment.unsqueeze(0) : moment;
  ops::require_shape("FieldWriter", "moment", all, {members_, format_.depth(), format_.height, format_.width});
  for (size_t c = 0; c < names_.size(); ++c) {
    const auto channel = static_cast<int64_t>(c);
    at::Tensor field = all.select(1, channel).to(at::kFloat);
    if (place_.measured.defined()) {
      field = field.masked_fill(place_.measured[channel].logical_not(), std::numeric_limits<double>::quiet_NaN());
    }
    std::vector<int64_t> shape{1, format_.height, format_.width};
    if (members_ > 1) shape.insert(shape.begin() + 1, members_);
    writer_->write(names_[c], f32_array(field, shape));
  }
  write_time();
}

void FieldWriter::write(const io::Array& frame) {
  const size_t bytes = frame.byte_count() / names_.size();
  for (size_t c = 0; c < names_.size(); ++c) {
    io::Array field(place_.dtype, {1, format_.height, format_.width});
    if (frame.dtype() != place_.dtype || members_ > 1 || field.byte_count() != bytes)
      fail(ErrorKind::usage, "[FieldWriter] a frame must be {} [{},{},{}], got {} {}", io::dtype_name(place_.dtype),
           names_.size(), format_.height, format_.width, io::dtype_name(frame.dtype()), io::shape_text(frame.shape()));
    std::memcpy(field.bytes().data(), frame.bytes().data() + c * bytes, bytes);
    writer_->write(names_[c], field);
  }
  write_time();
}

void FieldWriter::write_time() {
  double when = static_cast<double>(written_);
  if (!place_.times.empty()) {
    when = io::CfTime(time_units(), place_.axes.calendar).value(place_.times.at(static_cast<size_t>(written_)));
  }
  writer_->write("time", array_of({when}));
  ++written_;
}

void FieldWriter::close() { written_ == frames_ ? writer_->close() : writer_->close_early(); }

bool is_field_name(const std::string& path) {
  const std::vector<std::string> endings = io::grid_endings();
  return std::ranges::find(endings, file_ending(path)) != endings.end();
}

}  // namespace convssm::data
