// A table of what can be made by name: cores, models, datasets. It starts with those of this library; a program adds its
// own, before other threads look for one.
//   Registry<CoreInfo> cores("core", {{"convs5", ...}, ...});   cores.find("convs5").make(options)
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/nearest.h"

namespace convssm {

// Info has a `name` and a function `make`.
template <typename Info>
class Registry {
 public:
  // `what` is one of them, for errors: "core".
  Registry(std::string what, std::vector<Info> own) : what_(std::move(what)), table_(std::move(own)) {}

  const std::vector<Info>& all() const { return table_; }

  // Error(usage) if the name is empty or taken, or there is no function. References from find() end with it.
  void add(Info info) {
    if (std::ranges::any_of(table_, [&](const Info& other) { return other.name == info.name; })) {
      fail(ErrorKind::usage, "[{}] there is a {} '{}' already", what_, what_, info.name);
    }
    if (info.name.empty() || !info.make) {
      fail(ErrorKind::usage, "[{}] a {} needs a name and a function that makes it", what_, what_);
    }
    table_.push_back(std::move(info));
  }

  // Error(usage) that names the nearest if there is none of this name.
  const Info& find(const std::string& name) const {
    const auto found = std::ranges::find_if(table_, [&](const Info& info) { return info.name == name; });
    if (found == table_.end()) fail_unknown("[" + what_ + "] unknown " + what_, name, names());
    return *found;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Info& info : table_) all.push_back(info.name);
    return all;
  }

 private:
  std::string what_;
  std::vector<Info> table_;
};

}  // namespace convssm
