// Where walks begin, by number: in the test worlds of a model that learned from worlds, or after given recordings.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "convssm/data/clips.h"
#include "convssm/worlds/world.h"

namespace convssm::serve {

struct Beginning {
  data::Clips context;                         // of one clip
  std::shared_ptr<const worlds::World> world;  // the true one; null: nobody knows the truth
  worlds::Pose pose;                           // in it, after the context
};

class Beginnings {
 public:
  virtual ~Beginnings() = default;
  virtual int64_t count() const = 0;
  virtual Beginning at(int64_t number) const = 0;                       // 0 .. count() - 1
  virtual std::vector<std::string> action_names() const { return {}; }  // none: numbers have to do
  virtual std::string world() const { return ""; }                      // its name, if the truth is known
};

// The first `frames` frames of the walk that the world's own policy takes through test world `number`.
std::unique_ptr<Beginnings> beginnings_in(const std::string& name, std::shared_ptr<const worlds::Worlds> worlds,
                                          int64_t frames);

// Each of these clips.
std::unique_ptr<Beginnings> beginnings_after(const data::Clips& clips);

}  // namespace convssm::serve
