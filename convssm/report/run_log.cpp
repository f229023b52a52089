// A run that was resumed writes some steps again; a step that goes back rewinds the curves to it. The last line may be
// cut off while the run is writing and is then no error. NaN and Infinity, which JSON lacks, become gaps.
#include "convssm/report/run_log.h"

#include <cmath>
#include <limits>
#include <sstream>
#include <unordered_map>

#include "convssm/base/json.h"
#include "convssm/base/read_file.h"

namespace convssm::report {
namespace {

using nlohmann::json;

constexpr int kDepth = 4;  // of nested validation objects

// Curves by name, quickly; each keeps the steps ascending.
class Curves {
 public:
  explicit Curves(std::vector<Curve>& curves) : curves_(curves) {}

  void add(const std::string& name, Point point) {
    const auto [place, is_new] = index_.try_emplace(name, curves_.size());
    if (is_new) curves_.push_back({name, {}});
    auto& points = curves_[place->second].points;
    if (!points.empty() && points.back().x == point.x) points.pop_back();
    points.push_back(point);
  }

  // Forgets what a resumed run does again.
  void rewind(double step) {
    for (Curve& curve : curves_) {
      while (!curve.points.empty() && curve.points.back().x >= step) curve.points.pop_back();
    }
  }

 private:
  std::vector<Curve>& curves_;
  std::unordered_map<std::string, size_t> index_;
};

// Some writers put NaN and Infinity, which JSON does not know: null outside of strings.
std::string without_nan(const std::string& line) {
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) in_string = !in_string;
    bool replaced = false;
    for (const char* word : {"-Infinity", "Infinity", "NaN", "-inf", "inf", "-nan", "nan"}) {
      if (in_string || line.compare(i, std::char_traits<char>::length(word), word) != 0) continue;
      out += "null";
      i += std::char_traits<char>::length(word) - 1;
      replaced = true;
      break;
    }
    if (!replaced) out += line[i];
  }
  return out;
}

json parse(const std::string& line) {
  if (auto value = try_parse_json(line)) return std::move(*value);
  return try_parse_json(without_nan(line)).value_or(json());
}

void add_fields(Curves& curves, const std::string& prefix, const json& fields, double step, int depth) {
  for (const auto& [key, value] : fields.items()) {
    if (value.is_number())
      curves.add(prefix + key, {step, value.get<double>()});
    else if (value.is_null())
      curves.add(prefix + key, {step, std::numeric_limits<double>::quiet_NaN()});
    else if (value.is_object() && depth > 1)
      add_fields(curves, prefix + key + ".", value, step, depth - 1);
  }
}

struct Reader {
  RunLog log;
  Curves training{log.training}, validation{log.validation};
  double last_training = -1, last_validation = -1;

  // False if the line is not one of a log.
  bool add(const std::string& text) {
    json line = parse(text);
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number()) return false;
    const double step = line["step"].get<double>();
    line.erase("step");
    const bool is_validation = line.contains("validation");
    double& last = is_validation ? last_validation : last_training;
    if (step < last) {
      training.rewind(is_validation ? step + 1 : step);
      validation.rewind(step);
      last_training = std::min(last_training, step);
      last_validation = std::min(last_validation, step);
    }
    last = step;
    if (!is_validation)
      add_fields(training, "", line, step, 1);
    else if (line["validation"].is_object())
      add_fields(validation, "", line["validation"], step, kDepth);
    ++log.lines;
    return true;
  }
};

}  // namespace

const Curve* RunLog::find(const std::vector<Curve>& curves, const std::string& name) {
  for (const Curve& curve : curves) {
    if (curve.name == name) return &curve;
  }
  return nullptr;
}

RunLog read_log(const std::string& path) {
  Reader reader;
  std::istringstream in(try_read_file(path).value_or(""));
  for (std::string line; std::getline(in, line);) {
    const bool cut_off = in.eof();  // no newline behind it
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (!reader.add(line) && !cut_off) ++reader.log.bad_lines;
  }
  return std::move(reader.log);
}

}  // namespace convssm::report
