// The table behind cores, models and datasets: what it finds, and what it refuses.
#include "convssm/base/registry.h"

#include <gtest/gtest.h>

#include <functional>

namespace convssm {
namespace {

struct Maker {
  std::string name;
  std::function<int()> make;
};

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "";
}

TEST(Registry, FindsItsOwnAndThoseOfOthers) {
  Registry<Maker> makers("maker", {{"one", [] { return 1; }}});
  makers.add({"two", [] { return 2; }});
  EXPECT_EQ(makers.find("one").make(), 1);
  EXPECT_EQ(makers.find("two").make(), 2);
  EXPECT_EQ(makers.names(), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(makers.all().size(), 2u);
  EXPECT_EQ(refusal([&] { makers.find("tow"); }), "[maker] unknown maker 'tow'; did you mean 'two'?");
  EXPECT_EQ(refusal([&] { makers.find(""); }), "[maker] unknown maker ''; known are one, two");
}

TEST(Registry, RefusesNamesThatAreTakenAndWhatCannotBeMade) {
  Registry<Maker> makers("maker", {{"one", [] { return 1; }}});
  const auto two = [] { return 2; };
  EXPECT_EQ(refusal([&] { makers.add({"one", two}); }), "[maker] there is a maker 'one' already");
  for (const Maker& empty : {Maker{"", two}, Maker{"two", {}}}) {
    EXPECT_EQ(refusal([&] { makers.add(empty); }), "[maker] a maker needs a name and a function that makes it");
  }
  EXPECT_EQ(makers.all().size(), 1u);
}

}  // namespace
}  // namespace convssm
