// Numbers are compared by their digits, so that there is no limit to their size.
#include "convssm/base/natural_order.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace convssm {

bool by_numbers(const std::string& a, const std::string& b) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      const size_t end_a = std::min(a.find_first_not_of("0123456789", i), a.size());
      const size_t end_b = std::min(b.find_first_not_of("0123456789", j), b.size());
      const size_t from_a = std::min(a.find_first_not_of('0', i), end_a),
                   from_b = std::min(b.find_first_not_of('0', j), end_b);
      const size_t digits_a = end_a - from_a, digits_b = end_b - from_b;
      if (digits_a != digits_b) return digits_a < digits_b;
      const int order = a.compare(from_a, digits_a, b, from_b, digits_b);
      if (order != 0) return order < 0;
      i = end_a, j = end_b;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
    }
  }
  return std::pair(a.size() - i, a) < std::pair(b.size() - j, b);
}

}  // namespace convssm
