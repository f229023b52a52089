// Numbers of attributes are compared as elements of the variable, which may be coarser: 1e20 is another number as f32.
#include "convssm/data/field_values.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "convssm/data/field_axes.h"
#include "convssm/data/numbers.h"

namespace convssm::data {
namespace {

bool is_signed(io::DType dtype) {
  return dtype == io::DType::i8 || dtype == io::DType::i16 || dtype == io::DType::i32 || dtype == io::DType::i64;
}

double as_stored(io::DType dtype, double x) {
  switch (dtype) {
    case io::DType::f16:
      return static_cast<float>(c10::Half(static_cast<float>(x)));
    case io::DType::bf16:
      return static_cast<float>(c10::BFloat16(static_cast<float>(x)));
    case io::DType::f32:
      return static_cast<float>(x);
    default:
      return x;
  }
}

// What libnetcdf puts where nothing was written and no _FillValue says otherwise; NaN of bytes, of which every number may be meant.
double netcdf_fill(io::DType dtype) {
  switch (dtype) {
    case io::DType::i16:
      return -32767;
    case io::DType::u16:
      return 65535;
    case io::DType::i32:
      return -2147483647;
    case io::DType::u32:
      return 4294967295;
    case io::DType::i64:
      return -9223372036854775806.0;
    case io::DType::u64:
      return 18446744073709551614.0;
    case io::DType::f32:
    case io::DType::f64:
      return 9.9692099683868690e+36;
    default:
      return NAN;
  }
}

}  // namespace

bool FieldValues::declare_missing() const { return !missing.empty() || std::isfinite(low) || std::isfinite(high); }

FieldValues values_of(const io::GridFile& file, const io::GridVariable& variable) {
  FieldValues values;
  values.scale = attribute_number(variable.attributes, "scale_factor", 1);
  values.offset = attribute_number(variable.attributes, "add_offset", 0);
  const io::GridAttributes& attributes = variable.attributes;
  const std::string is_unsigned = attribute_text(attributes, "_Unsigned");
  values.wraps = is_signed(variable.dtype) && (is_unsigned == "true" || is_unsigned == "True");
  const auto element = [&](double x) {
    const double stored = as_stored(variable.dtype, x);
    return values.wraps && stored < 0 ? stored + std::exp2(8.0 * static_cast<double>(io::dtype_size(variable.dtype)))
                                      : stored;
  };
  for (const char* name : {"_FillValue", "missing_value"}) {
    const auto found = attributes.find(name);
    if (found == attributes.end() || found->second.is_text()) continue;
    for (const double x : found->second.numbers) values.missing.push_back(element(x));
  }
  if (file.kind().starts_with("NetCDF") && !values.wraps && !attributes.contains("_FillValue")) {
    values.unwritten = element(netcdf_fill(variable.dtype));
  }
  // A range in a type of fractions is of the values that whole numbers stand for.
  const bool packed = !io::is_float(variable.dtype) && (values.scale != 1 || values.offset != 0);
  const auto set = [&](const char* name, size_t at, bool low) {
    const auto found = attributes.find(name);
    if (found == attributes.end() || found->second.numbers.size() <= at) return;
    const bool unpacked = packed && io::is_float(found->second.dtype);
    const double x = found->second.numbers[at];
    double& limit = low == (unpacked && values.scale < 0) ? values.high : values.low;
    limit = unpacked ? (x - values.offset) / values.scale : element(x);
  };
  set("valid_min", 0, true);
  set("valid_max", 0, false);
  set("valid_range", 0, true);
  set("valid_range", 1, false);
  constexpr double rounding = 1e-9;  // of the division
  values.low -= rounding * std::abs(values.low), values.high += rounding * std::abs(values.high);
  return values;
}

}  // namespace convssm::data
