// Numbers as a person reads them.
#pragma once

#include <cstdint>
#include <string>

namespace convssm::report {

// 7 -> "7", 12345 -> "12.3k", 20100000 -> "20.1M"
std::string compact(double value);

// 12345 -> "12,345"
std::string grouped(int64_t value);

// Four significant digits: 0.01234 -> "0.01234", 123456 -> "123456", 3e-5 -> "3e-05"; what is not finite is a dash.
std::string short_number(double value);

// The characters of a text in UTF-8.
size_t letters(const std::string& text);

// The label of an axis value when labels are `step` apart: just enough decimals, k and M for large values.
std::string tick_label(double value, double step);

}  // namespace convssm::report
