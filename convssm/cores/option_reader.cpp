#include "convssm/cores/option_reader.h"

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/nearest.h"

namespace convssm::cores {

OptionReader::OptionReader(std::string core, const nlohmann::json& json) : core_(std::move(core)), json_(json) {
  if (!json.is_object()) fail(ErrorKind::usage, "[{}] options must be an object, got {}", core_, json.dump());
}

const nlohmann::json* OptionReader::find(const char* key) {
  known_.emplace_back(key);
  const auto found = json_.find(key);
  return found == json_.end() ? nullptr : &*found;
}

void OptionReader::wrong_type(const char* key, const char* expected, const nlohmann::json& found) const {
  fail(ErrorKind::usage, "[{}] option '{}' must be {}, got {}", core_, key, expected, found.dump());
}

void OptionReader::operator()(const char* key, int64_t& value) {
  const auto* found = find(key);
  if (found == nullptr) return;
  if (!found->is_number_integer()) wrong_type(key, "a whole number", *found);
  value = found->get<int64_t>();
}

void OptionReader::operator()(const char* key, uint64_t& value) {
  const auto* found = find(key);
  if (found == nullptr) return;
  if (!found->is_number_unsigned()) wrong_type(key, "a whole number of at least 0", *found);
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

void OptionReader::operator()(const char* key, const std::function<void(const std::string&)>& parse) {
  const auto* found = find(key);
  if (found == nullptr) return;
  if (!found->is_string()) wrong_type(key, "a name", *found);
  parse(found->get<std::string>());
}

void OptionReader::finish() const {
  for (const auto& item : json_.items()) {
    if (std::find(known_.begin(), known_.end(), item.key()) != known_.end()) continue;
    const std::string near = nearest(item.key(), known_);
    fail(ErrorKind::usage, "[{}] unknown option '{}'{}", core_, item.key(),
         near.empty() ? fmt::format("; known are {}", fmt::join(known_, ", "))
                      : fmt::format("; did you mean '{}'?", near));
  }
}

}  // namespace convssm::cores
