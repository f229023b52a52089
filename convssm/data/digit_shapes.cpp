// The digits as strokes in the unit square, in the styles that people write them in.
#include "convssm/data/digit_shapes.h"

#include <array>
#include <sstream>
#include <string>

namespace convssm::data {
namespace {

// Points as "x,y" in hundredths; "x,y!" is a corner; "/" lifts the pen.
Shape parse(const char* text) {
  Shape shape(1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word == "/") {
      shape.emplace_back();
      continue;
    }
    const size_t comma = word.find(',');
    shape.back().push_back(
        {std::stod(word.substr(0, comma)) / 100, std::stod(word.substr(comma + 1)) / 100, word.back() == '!'});
  }
  return shape;
}

const std::array<std::vector<const char*>, 10> texts = {{
    {"50,0 26,10 15,35 15,65 26,90 50,100 74,90 85,65 85,35 74,10 50,0",
     // the pen goes on past where it began
     "62,3 36,7 18,32 15,65 27,92 50,100 74,88 85,60 83,30 68,9 46,6"},
    {"50,0 50,50 50,100",
     // with a flag; with flag and foot
     "36,21 55,0! 55,50 55,100", "32,21 52,0! 52,50 52,100 / 26,100 78,100"},
    {"14,26 28,6 52,0 77,10 80,33 58,62 12,100! 50,99 88,100",
     // with a loop at the foot
     "16,22 33,4 56,0 78,13 77,38 54,70 26,95 10,92 16,79 38,83 62,96 92,95"},
    {"16,12 44,0 74,9 75,32 40,46! 74,55 84,76 66,96 38,100 12,89",
     // with a flat top
     "16,1 48,0 80,0! 42,40! 72,46 85,70 68,95 38,100 13,91"},
    {"22,2 16,30 12,56! 50,56 90,54 / 70,10 69,55 66,100",
     // closed
     "70,100 70,50 70,0! 40,34 8,68! 50,68 94,67"},
    {"82,1 54,0 27,1! 23,22 19,43! 50,37 80,52 82,80 52,100 14,92",
     // the roof is put on at the end
     "26,4 24,24 22,42! 54,40 79,58 77,84 50,100 15,95 / 26,4 55,3 87,0"},
    {"72,3 50,7 30,28 18,58 22,86 46,100 74,92 82,72 66,55 42,57 22,74",
     // with a straighter back
     "60,0 40,26 24,55 20,80 38,99 66,97 79,79 68,60 45,58 23,74"},
    {"10,2 50,1 88,0! 64,42 42,100",
     // with a bar; with a hook at the beginning
     "10,2 50,1 88,0! 64,42 42,100 / 34,51 84,48", "13,18 12,2! 50,3 86,0! 62,46 46,100"},
    {"75,13 52,0 27,10 26,29 50,47 76,66 77,88 50,100 23,88 24,66 50,47 74,29 75,13",
     // two circles
     "50,0 28,8 23,24 33,41 50,46 67,41 77,24 72,8 50,0 / 50,46 26,53 16,74 26,94 50,100 74,94 84,74 74,53 50,46"},
    {"79,18 60,1 34,6 20,26 30,46 55,46 79,18! 76,60 70,100",
     // with a bent stem
     "78,20 58,0 30,7 19,28 32,48 58,46 78,20! 80,55 70,86 46,100 20,95"},
}};

std::array<std::vector<Shape>, 10> parse_all() {
  std::array<std::vector<Shape>, 10> shapes;
  for (size_t digit = 0; digit < shapes.size(); ++digit) {
    for (const char* text : texts[digit]) shapes[digit].push_back(parse(text));
  }
  return shapes;
}

}  // namespace

const std::vector<Shape>& digit_styles(int digit) {
  static const auto shapes = parse_all();
  return shapes.at(static_cast<size_t>(digit));
}

}  // namespace convssm::data
