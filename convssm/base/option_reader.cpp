// Every look-up notes its key, and finish() compares the keys of the JSON with those notes. So the list of known
// options is the code that reads them and cannot grow stale.
#include "convssm/base/option_reader.h"

#include <algorithm>
#include <cmath>

#include "convssm/base/error.h"
#include "convssm/base/nearest.h"

namespace convssm {
namespace {

// A whole number, also one that is written as 1e3: doubles hold those up to 2^53 exactly.
bool is_whole(const nlohmann::json& value) {
  if (value.is_number_integer()) return true;
  if (!value.is_number_float()) return false;
  const double number = value.get<double>();
  return std::abs(number) <= 0x1p53 && number == std::floor(number);
}

}  // namespace

OptionReader::OptionReader(std::string owner, const nlohmann::json& json) : owner_(std::move(owner)), json_(json) {
  if (!json.is_object()) fail(ErrorKind::usage, "[{}] options must be an object, got {}", owner_, json.dump());
}

const nlohmann::json* OptionReader::find(const char* key) {
  known_.emplace_back(key);
  const auto found = json_.find(key);
  return found == json_.end() ? nullptr : &*found;
}

void OptionReader::wrong_type(const char* key, const char* expected, const nlohmann::json& found) const {
  fail(ErrorKind::usage, "[{}] option '{}' must be {}, got {}", owner_, key, expected, found.dump());
}

void OptionReader::operator()(const char* key, int64_t& value) {
  const auto* found = find(key);
  if (found == nullptr) return;
  if (!is_whole(*found)) wrong_type(key, "a whole number", *found);
  value = found->get<int64_t>();
}

void OptionReader::operator()(const char* key, uint64_t& value) {
  const auto* found = find(key);
  if (found == nullptr) return;
  const bool good = found->is_number_unsigned() || (is_whole(*found) && found->get<double>() >= 0);
  if (!good) wrong_type(key, "a whole number of at least 0", *found);
  value = found->get<uint64_t>();
}

void OptionReader::operator()(const char* key, double& value) {
  const auto* found = find(key);
  if (found == nullptr) return;
  if (!found->is_number()) wrong_type(key, "a number", *found);
  value = found->get<double>();
}

void OptionReader::operator()(const char* key, bool& value) {
  const auto* found = find(key);
  if (found == nullptr) return;
  if (!found->is_boolean()) wrong_type(key, "true or false", *found);
  value = found->get<bool>();
}

void OptionReader::operator()(const char* key, std::string& value) {
  const auto* found = find(key);
  if (found == nullptr) return;
  if (!found->is_string()) wrong_type(key, "a text", *found);
  value = found->get<std::string>();
}

void OptionReader::operator()(const char* key, std::vector<int64_t>& value) {
  const auto* found = find(key);
  if (found == nullptr) return;
  if (!found->is_array() || !std::all_of(found->begin(), found->end(), is_whole)) {
    wrong_type(key, "a list of whole numbers", *found);
  }
  value = found->get<std::vector<int64_t>>();
}

void OptionReader::operator()(const char* key, std::vector<std::string>& value) {
  const auto* found = find(key);
  if (found == nullptr) return;
  const auto text = [](const nlohmann::json& item) { return item.is_string(); };
  if (!found->is_array() || !std::all_of(found->begin(), found->end(), text)) {
    wrong_type(key, "a list of names", *found);
  }
  value = found->get<std::vector<std::string>>();
}

void OptionReader::operator()(const char* key, std::vector<double>& value) {
  const auto* found = find(key);
  if (found == nullptr) return;
  if (found->is_number()) {
    value = {found->get<double>()};
    return;
  }
  const auto number = [](const nlohmann::json& item) { return item.is_number(); };
  if (!found->is_array() || !std::all_of(found->begin(), found->end(), number)) {
    wrong_type(key, "a number or a list of numbers", *found);
  }
  value = found->get<std::vector<double>>();
}

void OptionReader::operator()(const char* key, std::vector<nlohmann::json>& value) {
  const auto* found = find(key);
  if (found == nullptr) return;
  const auto group = [](const nlohmann::json& item) { return item.is_object(); };
  if (!found->is_array() || !std::all_of(found->begin(), found->end(), group)) {
    wrong_type(key, "a list of groups of options", *found);
  }
  value = found->get<std::vector<nlohmann::json>>();
}

void OptionReader::operator()(const char* key, nlohmann::json& value) {
  const auto* found = find(key);
  if (found == nullptr) return;
  if (!found->is_object()) wrong_type(key, "a group of options", *found);
  value = *found;
}

void OptionReader::operator()(const char* key, const std::function<void(const std::string&)>& parse) {
  const auto* found = find(key);
  if (found == nullptr) return;
  if (!found->is_string()) wrong_type(key, "a name", *found);
  parse(found->get<std::string>());
}

void OptionReader::finish() const {
  for (const auto& item : json_.items()) {
    if (std::find(known_.begin(), known_.end(), item.key()) != known_.end()) continue;
    fail_unknown(fmt::format("[{}] unknown option", owner_), item.key(), known_);
  }
}

}  // namespace convssm
