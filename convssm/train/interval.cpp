// Sums by name, each with its own count: a loss that begins later (an adversarial one) is averaged over its own steps.
#include "convssm/train/interval.h"

#include <limits>

namespace convssm::train {
namespace {

// JSON has neither NaN nor infinity: both are written as null.
double number(const nlohmann::json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

}  // namespace

void Interval::add(const std::string& name, double value) {
  Sum& sum = sums_[name];
  sum.sum += value;
  sum.count += 1;
}

void Interval::count(const std::string& prefix, const LossValues& values, double gradient_norm) {
  add(prefix + "loss", values.loss);
  add(prefix + "grad_norm", gradient_norm);
  for (const auto& [name, value] : values.parts) add(prefix + name, value);
}

nlohmann::json Interval::means() const {
  nlohmann::json means = nlohmann::json::object();
  for (const auto& [name, sum] : sums_) means[name] = sum.sum / static_cast<double>(sum.count);
  return means;
}

nlohmann::json Interval::to_json() const {
  nlohmann::json sums = nlohmann::json::object();
  for (const auto& [name, sum] : sums_) sums[name] = {sum.sum, sum.count};
  return {{"skipped", skipped_}, {"sums", sums}};
}

Interval Interval::from_json(const nlohmann::json& json) {
  Interval interval;
  interval.skipped_ = json.at("skipped");
  if (json.contains("sums")) {
    for (const auto& [name, sum] : json["sums"].items()) interval.sums_[name] = {number(sum.at(0)), sum.at(1)};
  } else if (const int64_t steps = json.at("steps"); steps > 0) {
    interval.sums_["loss"] = {number(json.at("loss")), steps};
    interval.sums_["grad_norm"] = {number(json.at("gradient_norm")), steps};
    for (const auto& part : json.at("parts")) interval.sums_[part.at(0)] = {number(part.at(1)), steps};
  }
  return interval;
}

}  // namespace convssm::train
