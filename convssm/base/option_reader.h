// Reads options from JSON, strictly: a wrong type says what was expected, an unknown key names the nearest known one.
// A key that is missing leaves the value as it was.
//   OptionReader read("ConvS5", json);  read("features", o.features);  read.finish();
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace convssm {

class OptionReader {
 public:
  OptionReader(std::string owner, const nlohmann::json& json);

  void operator()(const char* key, int64_t& value);
  void operator()(const char* key, uint64_t& value);
  void operator()(const char* key, double& value);
  void operator()(const char* key, bool& value);
  void operator()(const char* key, std::string& value);
  void operator()(const char* key, std::vector<int64_t>& value);
  void operator()(const char* key, std::vector<std::string>& value);
  void operator()(const char* key, std::vector<double>& value);          // or one number, as a list of one
  void operator()(const char* key, std::vector<nlohmann::json>& value);  // groups of options, a reader each
  void operator()(const char* key, nlohmann::json& value);               // an object, for a reader of its own
  // An option that is a name: `parse` turns it into the value or throws.
  void operator()(const char* key, const std::function<void(const std::string&)>& parse);

  void finish() const;  // throws if a key was not read

 private:
  const nlohmann::json* find(const char* key);
  [[noreturn]] void wrong_type(const char* key, const char* expected, const nlohmann::json& found) const;

  std::string owner_;
  const nlohmann::json& json_;
  std::vector<std::string> known_;
};

}  // namespace convssm
