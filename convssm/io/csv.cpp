// One pass over the lines. The first of them says which separator and how many columns there are; it is a line of names if
// one of its cells is not a number. What is in a damaged file is shown cut and escaped.
#include "convssm/io/csv.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "convssm/base/error.h"
#include "convssm/base/file_memory.h"
#include "convssm/io/source.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

constexpr int64_t max_columns = 1 << 16;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  const size_t first = text.find_first_not_of(blank);
  return first == text.npos ? std::string_view{} : text.substr(first, text.find_last_not_of(blank) - first + 1);
}

char separator_of(std::string_view line) {
  for (const char separator : {',', ';', '\t'}) {
    if (line.find(separator) != line.npos) return separator;
  }
  return ',';
}

std::vector<std::string_view> cells_of(std::string_view line, char separator) {
  std::vector<std::string_view> cells;
  while (true) {
    const size_t end = line.find(separator);
    cells.push_back(trimmed(line.substr(0, end)));
    if (end == line.npos) return cells;
    line.remove_prefix(end + 1);
  }
}

std::optional<double> number_of(std::string_view cell) {
  if (cell.starts_with('+')) cell.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (cell.empty() || error != std::errc() || end != cell.data() + cell.size()) return std::nullopt;
  return value;
}

bool is_whole(std::string_view cell) { return cell.find_first_not_of("+-0123456789") == cell.npos; }

std::string unquoted(std::string_view cell) {
  const bool quoted = cell.size() >= 2 && cell.front() == '"' && cell.back() == '"';
  return std::string(quoted ? cell.substr(1, cell.size() - 2) : cell);
}

class CsvParser {
 public:
  CsvParser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  CsvTable parse() {
    if (text_.starts_with("\xef\xbb\xbf")) position_ = 3;  // a byte order mark
    while (position_ < text_.size()) {
      const size_t end = std::min(text_.find('\n', position_), text_.size());
      const std::string_view line = trimmed(text_.substr(position_, end - position_));
      ++line_;
      if (!line.empty() && line[0] != '#') add(text_.substr(position_, end - position_));
      position_ = end + 1;
    }
    if (table_.rows == 0) throw FormatError(file_, 0, "a table without any row of numbers");
    return std::move(table_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    throw FormatError(file_, position_,
                      fmt::format("line {}: ", line_) + fmt::format(text, std::forward<Args>(args)...));
  }

  void add(std::string_view line) {
    if (table_.width == 0) separator_ = separator_of(line);
    const std::vector<std::string_view> cells = cells_of(line, separator_);
    if (table_.width == 0) {
      if (std::ssize(cells) > max_columns) fail("a table has at most {} columns", max_columns);
      table_.width = std::ssize(cells);
      table_.whole.assign(cells.size(), true);
      if (add_names(cells)) return;
    }
    if (std::ssize(cells) != table_.width) {
      fail("expected {} number{}, got {}", table_.width, table_.width == 1 ? "" : "s", cells.size());
    }
    for (size_t c = 0; c < cells.size(); ++c) {
      const auto value = number_of(cells[c]);
      if (!value) fail("column {}: {} is not a number", c + 1, in_quotes(cells[c]));
      table_.values.push_back(*value);
      if (!is_whole(cells[c])) table_.whole[c] = false;
    }
    ++table_.rows;
  }

  bool add_names(const std::vector<std::string_view>& cells) {
    bool numbers = true;
    for (const std::string_view cell : cells) numbers = numbers && number_of(cell).has_value();
    if (numbers) return false;
    for (const std::string_view cell : cells) {
      if (cell.empty()) fail("a column without a name, or a row with a cell that is empty");
      if (!is_utf8(cell)) fail("{} is neither a number nor a name", in_quotes(cell));
      table_.names.push_back(unquoted(cell));
    }
    return true;
  }

  std::string_view text_;
  const std::string& file_;
  CsvTable table_;
  size_t position_ = 0;
  int64_t line_ = 0;
  char separator_ = ',';
};

}  // namespace

CsvTable parse_csv(std::string_view text, const std::string& file) {
  // A number takes eight bytes here and two in the shortest text of one.
  require_file_memory(file, "its numbers", text.size(), 8);
  return CsvParser(text, file).parse();
}

CsvTable read_csv(const std::string& path) {
  const auto source = open_source(path);
  require_file_memory(path, "its numbers", source->size(), 8);
  std::string text(source->size(), '\0');
  source->read(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return parse_csv(text, path);
}

}  // namespace convssm::io
