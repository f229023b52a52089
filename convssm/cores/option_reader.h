// Reads the options of a core from JSON, strictly: a wrong type says what was expected, an unknown key names the
// nearest known one.
//   OptionReader read("ConvS5", json);  read("features", o.features);  read.finish();
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace convssm::cores {

class OptionReader {
 public:
  OptionReader(std::string core, const nlohmann::json& json);

  void operator()(const char* key, int64_t& value);
  void operator()(const char* key, uint64_t& value);
  void operator()(const char* key, double& value);
  void operator()(const char* key, bool& value);
  // An option that is a name: `parse` turns it into the value or throws.
  void operator()(const char* key, const std::function<void(const std::string&)>& parse);

  void finish() const;  // throws if a key was not read

 private:
  const nlohmann::json* find(const char* key);
  [[noreturn]] void wrong_type(const char* key, const char* expected, const nlohmann::json& found) const;

  std::string core_;
  const nlohmann::json& json_;
  std::vector<std::string> known_;
};

}  // namespace convssm::cores
