// What an array of actions is, told by its type and shape: whole numbers need no dimension of their own, numbers do.
#include "convssm/data/actions.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/base/option_reader.h"
#include "convssm/data/array_cache.h"
#include "convssm/data/numbers.h"
#include "convssm/io/array_file.h"
#include "convssm/io/csv.h"
#include "convssm/io/tensor.h"
#include "convssm/io/text.h"

namespace convssm::data {
namespace {

// That a table of so much text holds at most: two characters are the shortest number, which takes eight bytes.
uint64_t bytes_of_numbers(uint64_t text) { return 4 * text; }

constexpr int64_t kMostActions = 1'000'000;  // each has a row of weights

bool is_whole(io::DType dtype) { return !io::is_float(dtype) && dtype != io::DType::c64 && dtype != io::DType::c128; }

int64_t whole_action(double value, const std::string& file) {
  constexpr auto most = static_cast<double>(kMostActions);
  if (value < most) return static_cast<int64_t>(std::max(value, -most));  // negative ones are masked, all alike
  fail(ErrorKind::data, "[actions] '{}': expected whole numbers 0 to {}, or negative ones for masked actions, found {}",
       file, kMostActions - 1, value);
}

std::string key_of_actions(const std::string& path, const std::string& wanted) {
  const auto names = io::array_names(path);
  const bool bare = names == std::vector<std::string>{""};  // a .npy file has no keys
  if (bare || (names.size() == 1 && wanted.empty())) return names[0];
  const std::string key = wanted.empty() ? "actions" : wanted;
  if (std::ranges::find(names, key) == names.end()) io::fail_missing(path, key, names);
  return key;
}

// Of an array without (`columns` = 0) or with a dimension for the numbers of an action.
std::optional<StoredActions> of_kind(ActionsKind kind, io::DType dtype, int64_t columns) {
  const bool whole = is_whole(dtype), real = whole || io::is_float(dtype);
  switch (kind) {
    case ActionsKind::index:
      if (whole && columns <= 1) return StoredActions{.columns = columns};
      return std::nullopt;
    case ActionsKind::one_hot:
      if (real && columns >= 2) return StoredActions{.columns = columns, .one_hot = true};
      return std::nullopt;
    case ActionsKind::values:
      if (real) return StoredActions{.columns = columns, .values = std::max<int64_t>(1, columns)};
      return std::nullopt;
    case ActionsKind::found:
      if (whole) return of_kind(columns <= 1 ? ActionsKind::index : ActionsKind::one_hot, dtype, columns);
      return columns >= 1 ? of_kind(ActionsKind::values, dtype, columns) : std::nullopt;
  }
  return std::nullopt;
}

// Stored rows as Clips has them, [rows] or [rows, values]. Plain loops, because threads of the loader run this.
at::Tensor action_tensor(const io::Array& stored, const StoredActions& how, int64_t rows, const std::string& file) {
  at::Tensor actions = how.values > 0 ? at::empty({rows, how.values}, at::kFloat) : at::empty({rows}, at::kLong);
  with_numbers(stored, [&](auto numbers) {
    if (how.one_hot) {
      for (int64_t row = 0; row < rows; ++row) {
        int64_t found = -1;
        for (int64_t c = 0; c < how.columns; ++c) {
          if (number(numbers[static_cast<size_t>(row * how.columns + c)]) != 0) found = c;
        }
        actions.data_ptr<int64_t>()[row] = found;
      }
    } else if (how.values == 0) {
      int64_t* out = actions.data_ptr<int64_t>();
      for (const auto& value : numbers) *out++ = whole_action(number(value), file);
    } else {
      float* out = actions.data_ptr<float>();
      for (const auto& value : numbers) {
        *out++ = static_cast<float>(number(value));
        if (std::isinf(out[-1])) fail(ErrorKind::data, "[actions] '{}': an action is infinite", file);
      }
    }
  });
  return actions;
}

// The columns that are actions.
std::vector<int64_t> action_columns(const io::CsvTable& table, const std::string& path, const std::string& key) {
  std::vector<int64_t> columns;
  const std::string begins = key.empty() || key == "actions" ? "action" : key;
  for (int64_t c = 0; c < table.width; ++c) {
    const bool named = table.names.empty() || table.names[static_cast<size_t>(c)].starts_with(begins);
    if (named) columns.push_back(c);
  }
  if (columns.empty() && table.width == 1) columns.push_back(0);
  if (columns.empty()) {
    fail(ErrorKind::data, "[actions] '{}': no column has a name that begins with {}; the first is {}", path,
         io::in_quotes(begins), io::in_quotes(table.names[0]));
  }
  return columns;
}

// Other columns, such as times, say nothing about actions.
bool holds_whole_numbers(const io::CsvTable& table, int64_t column) {
  constexpr double exact = 9007199254740992.0;  // 2^53
  bool whole = table.whole[static_cast<size_t>(column)];
  for (int64_t row = 0; row < table.rows && whole; ++row) {
    whole = std::abs(table.values[static_cast<size_t>(row * table.width + column)]) <= exact;
  }
  return whole;
}

template <typename T>
void fill_table(const io::CsvTable& table, const std::vector<int64_t>& columns, std::span<T> out) {
  size_t at = 0;
  for (int64_t row = 0; row < table.rows; ++row) {
    for (const int64_t c : columns)
      out[at++] = static_cast<T>(table.values[static_cast<size_t>(row * table.width + c)]);
  }
}

}  // namespace

void ActionReading::read_options(OptionReader& read) {
  read("actions_align", [this](const std::string& text) {
    if (text != "leads_to" && text != "taken_at") {
      fail(ErrorKind::usage,
           "[folder] actions_align is leads_to (action k led to frame k) or taken_at (it led to frame k+1), got '{}'",
           text);
    }
    align = text == "leads_to" ? ActionsAlign::leads_to : ActionsAlign::taken_at;
  });
  read("actions_kind", [this](const std::string& text) {
    if (text != "index" && text != "one_hot" && text != "values") {
      fail(ErrorKind::usage, "[folder] actions_kind is index, one_hot or values, got '{}'", text);
    }
    kind = text == "index" ? ActionsKind::index : text == "one_hot" ? ActionsKind::one_hot : ActionsKind::values;
  });
}

std::optional<StoredActions> recognize_actions(const io::ArrayInfo& array, std::span<const int64_t> frames,
                                               const ActionReading& reading) {
  const size_t dims = frames.size();
  const bool one_more = array.shape.size() == dims + 1;
  if (array.shape.size() != dims && !one_more) return std::nullopt;
  if (!std::ranges::equal(std::span(array.shape).first(dims - 1), frames.first(dims - 1))) return std::nullopt;
  const int64_t rows = array.shape[dims - 1], columns = one_more ? array.shape.back() : 0;
  const bool fewer = rows + 1 == frames.back();
  if ((rows != frames.back() && !fewer) || (one_more && columns < 1)) return std::nullopt;
  if (fewer && (reading.align == ActionsAlign::leads_to || rows == 0)) return std::nullopt;
  auto found = of_kind(reading.kind, array.dtype, columns);
  if (!found) return std::nullopt;
  found->rows = rows;
  found->taken_at = fewer || reading.align == ActionsAlign::taken_at;
  return found;
}

std::string expected_actions(std::span<const int64_t> frames) {
  const std::string shape = io::shape_text(frames);
  std::string numbers = shape;
  numbers.insert(numbers.size() - 1, ", A");
  return fmt::format("whole numbers of shape {}, one per frame, or floats of shape {}", shape, numbers);
}

bool is_one_hot(const io::Array& rows, int64_t columns) {
  bool one_hot = columns >= 2;
  with_numbers(rows, [&](auto numbers) {
    const int64_t count = one_hot ? static_cast<int64_t>(numbers.size()) / columns : 0;
    int64_t all = 0;
    for (int64_t row = 0; row < count && one_hot; ++row) {
      int64_t ones = 0;
      for (int64_t c = 0; c < columns; ++c) {
        const double value = number(numbers[static_cast<size_t>(row * columns + c)]);
        ones += value == 1;
        one_hot = one_hot && (value == 0 || value == 1);
      }
      one_hot = one_hot && (ones == 1 || (ones == 0 && row == 0));
      all += ones;
    }
    one_hot = one_hot && all > 0;
  });
  return one_hot;
}

io::Array read_action_rows(ArrayCache& cache, const ActionPlace& place, int64_t columns, int64_t first, int64_t count) {
  const auto each = static_cast<uint64_t>(std::max<int64_t>(1, columns));
  const uint64_t from = static_cast<uint64_t>(place.first + first) * each,
                 elements = static_cast<uint64_t>(count) * each;
  if (file_ending(place.path) != ".csv") return cache.read(place.path, place.key, from, elements);
  std::error_code unknown;
  const uint64_t text = std::filesystem::file_size(place.path, unknown);
  const io::Array table = cache.whole(place.path, place.key, unknown ? 0 : bytes_of_numbers(text),
                                      [&] { return read_action_table(place.path, place.key); });
  return io::chunk_of(table, from, elements, place.path);
}

at::Tensor aligned_actions(ArrayCache& cache, const ActionPlace& place, const StoredActions& stored, int64_t first,
                           int64_t count) {
  const int64_t shift = stored.taken_at ? 1 : 0, from = std::max<int64_t>(0, first - shift);
  const int64_t rows = first + count - shift - from, masked = count - rows;
  at::Tensor known;
  if (rows > 0) {
    known = action_tensor(read_action_rows(cache, place, stored.columns, from, rows), stored, rows, place.path);
    if (masked == 0) return known;
  }
  at::Tensor actions =
      stored.values > 0 ? at::full({count, stored.values}, NAN, at::kFloat) : at::full({count}, -1, at::kLong);
  if (rows > 0) actions.slice(0, masked).copy_(known);
  return actions;
}

io::Array read_action_table(const std::string& path, const std::string& key) {
  const io::CsvTable table = io::read_csv(path);
  const std::vector<int64_t> columns = action_columns(table, path, key);
  const bool whole = std::ranges::all_of(columns, [&](int64_t c) { return holds_whole_numbers(table, c); });
  std::vector<int64_t> shape{table.rows};
  if (columns.size() > 1 || !whole) shape.push_back(std::ssize(columns));
  io::Array array = io::array_of_file(path, whole ? io::DType::i64 : io::DType::f64, shape);
  whole ? fill_table(table, columns, array.values<int64_t>()) : fill_table(table, columns, array.values<double>());
  return array;
}

namespace {

// Of floats [T,M,H,W] or [N,T,M,H,W]; else undefined. Error(data) unless they are in [-1,1] or masked.
at::Tensor map_tensor(const io::Array& stored, const std::string& path) {
  const size_t dims = stored.shape().size();
  const bool floats = stored.dtype() == io::DType::f32 || stored.dtype() == io::DType::f64;
  if (!floats || dims < 4 || dims > 5) return {};
  const at::Tensor maps = io::to_tensor(stored).to(at::kFloat);
  if (maps.gt(1).logical_or(maps.lt(-1)).any().item<bool>()) {
    fail(ErrorKind::data, "[actions] '{}': maps must be in [-1,1], or NaN where they are masked", path);
  }
  return dims == 4 ? maps.unsqueeze(0) : maps;
}

}  // namespace

at::Tensor read_action_file(const std::string& path, const std::string& key) {
  const bool table = file_ending(path) == ".csv";
  const io::Array stored = table ? read_action_table(path, key) : io::ArrayFile(path, key_of_actions(path, key)).read();
  const std::vector<int64_t>& shape = stored.shape();
  const ActionReading reading{.align = ActionsAlign::leads_to};
  const at::Tensor maps = map_tensor(stored, path);
  if (maps.defined()) return maps;
  for (size_t dims = std::min<size_t>(shape.size(), 2); dims > 0; --dims) {
    const std::vector<int64_t> frames(shape.begin(), shape.begin() + static_cast<int64_t>(dims));
    const auto found = recognize_actions({stored.dtype(), shape}, frames, reading);
    if (!found || found->one_hot || frames.back() == 0) continue;
    const int64_t clips = dims == 2 ? frames[0] : 1;
    const at::Tensor actions = action_tensor(stored, *found, clips * frames.back(), path);
    return found->values > 0 ? actions.view({clips, frames.back(), found->values})
                             : actions.view({clips, frames.back()});
  }
  fail(ErrorKind::data,
       "[actions] '{}': expected whole numbers of shape [T] or [N, T], one per frame, or floats of shape [T, A], "
       "[N, T, A], [T, M, H, W] or [N, T, M, H, W], found {} {}",
       path, io::dtype_name(stored.dtype()), io::shape_text(shape));
}

}  // namespace convssm::data
