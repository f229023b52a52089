// yaml-cpp reports a document as events with their positions; the JSON value is built from them here, so that depth and
// size are checked while it grows and every complaint knows its line.
#include "convssm/io/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "convssm/base/error.h"
#include "convssm/io/source.h"
#include "convssm/io/text.h"
#include "convssm/io/yaml_scalar.h"

namespace convssm::io {
namespace {

using nlohmann::json;

constexpr size_t max_bytes = 16 << 20;
constexpr size_t max_depth = 100;
constexpr size_t max_weight = 1'000'000;  // of all values, with aliases written out

// A complaint at a place of the text; the caller adds the name of the file.
struct Complaint {
  YAML::Mark mark;
  std::string reason;
};

// What a scalar or key counts for: long texts that aliases repeat fill the memory as well as many short ones.
size_t weight_of(const std::string& text) { return 1 + text.size() / 32; }

class Builder : public YAML::EventHandler {
 public:
  std::optional<json> take_document() { return std::move(document_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (document_) throw Complaint{mark, "a second document begins here; only one is allowed"};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (expects_key())
      throw Complaint{mark, "a key must be a text; write the name before the colon, in quotes if it is null"};
    count(mark, weight_, 1);
    add(mark, anchor, nullptr, 1);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Complaint{mark, "an alias stands inside the value that it repeats"};
    if (expects_key()) throw Complaint{mark, "a key must be a text, not an alias"};
    if (open_.size() + found->second.depth > max_depth) too_deep(mark);
    count(mark, weight_, found->second.weight);
    add(mark, 0, json(found->second.value), found->second.weight, found->second.depth);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool plain = tag == "?" || tag.empty();
    if (!plain && tag != "!" && tag != "tag:yaml.org,2002:str") unknown_tag(mark, tag);
    count(mark, weight_, weight_of(value));
    if (expects_key()) return set_key(mark, value);
    try {
      add(mark, anchor, plain ? parse_plain_scalar(value) : json(value), weight_of(value));
    } catch (const Error& error) {
      throw Complaint{mark, error.what()};
    }
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, json::array());
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, json::object());
  }
  void OnMapEnd() override { close(); }

 private:
  // A map or list that is not complete yet.
  struct Open {
    YAML::Mark mark;
    YAML::anchor_t anchor;
    json value;
    size_t weight_before;
    size_t depth = 1;  // of the value, itself included
    std::optional<std::string> key;
  };
  struct Anchored {
    json value;
    size_t weight;
    size_t depth;
  };

  [[noreturn]] static void too_deep(const YAML::Mark& mark) {
    throw Complaint{mark, fmt::format("more than {} levels of nesting", max_depth)};
  }

  [[noreturn]] static void unknown_tag(const YAML::Mark& mark, const std::string& tag) {
    throw Complaint{mark, fmt::format("the tag {} is not supported; leave it out", in_quotes(tag))};
  }

  bool expects_key() const { return !open_.empty() && open_.back().value.is_object() && !open_.back().key; }

  static void count(const YAML::Mark& mark, size_t& total, size_t weight) {
    total += weight;
    if (total > max_weight) throw Complaint{mark, "too many values in one document (aliases count each time)"};
  }

  void set_key(const YAML::Mark& mark, const std::string& key) {
    if (open_.back().value.contains(key)) {
      throw Complaint{mark, fmt::format("the key {} is here for the second time", in_quotes(key))};
    }
    open_.back().key = key;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, json empty) {
    if (tag != "?" && tag != "!" && !tag.empty()) unknown_tag(mark, tag);
    if (expects_key()) throw Complaint{mark, "a key must be a text, not a map or list"};
    if (open_.size() == max_depth) too_deep(mark);
    open_.push_back({mark, anchor, std::move(empty), weight_, 1, {}});
    count(mark, weight_, 1);
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(done.mark, done.anchor, std::move(done.value), weight_ - done.weight_before, done.depth);
  }

  // A complete value goes into the map or list that is open, or is the document.
  void add(const YAML::Mark& mark, YAML::anchor_t anchor, json value, size_t weight, size_t depth = 0) {
    if (anchor != 0) {
      count(mark, copied_, weight);
      anchors_[anchor] = {value, weight, depth};
    }
    if (open_.empty()) {
      document_ = std::move(value);
      return;
    }
    Open& parent = open_.back();
    parent.depth = std::max(parent.depth, depth + 1);
    if (parent.value.is_array()) return parent.value.push_back(std::move(value));
    parent.value[*parent.key] = std::move(value);
    parent.key.reset();
  }

  std::vector<Open> open_;
  std::optional<json> document_;
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
  size_t weight_ = 0;
  size_t copied_ = 0;  // the weight of what was kept for aliases
};

std::string_view line_of(std::string_view text, int line) {
  for (; line > 0; --line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find_first_of("\r\n"));
}

[[noreturn]] void fail_at(const std::string& name, const std::string& text, const Complaint& complaint) {
  const int line = std::max(complaint.mark.line, 0);
  const std::string_view content = line_of(text, line);
  const std::string_view indent = content.substr(0, content.find_first_not_of(" \t"));
  const bool tab = indent.find('\t') != std::string_view::npos;
  fail(ErrorKind::data, "{}: line {}, column {}: {}{}{}", name, line + 1, std::max(complaint.mark.column, 0) + 1,
       complaint.reason, tab ? " (the line is indented by a tab: YAML wants spaces)" : "",
       content.empty() ? "" : fmt::format(": {}", in_quotes(content)));
}

// yaml-cpp guesses UTF-16 and UTF-32 from zero bytes, and takes other control characters as text.
void check_text(const std::string& text, const std::string& name) {
  if (text.size() > max_bytes) fail(ErrorKind::data, "{}: a YAML file of more than {} bytes", name, max_bytes);
  if (!is_utf8(text)) fail(ErrorKind::data, "{}: not UTF-8 text; YAML files must be", name);
  YAML::Mark mark;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if ((code < 0x20 && c != '\t' && c != '\n' && c != '\r') || code == 0x7f) {
      fail_at(name, text, {mark, fmt::format("the control character \\x{:02x} is not allowed", code)});
    }
    ++mark.column;
    if (c == '\n') ++mark.line, mark.column = 0;
  }
}

std::optional<json> parse_document(const std::string& text, const std::string& name) {
  check_text(text, name);
  Builder builder;
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Complaint& complaint) {
    fail_at(name, text, complaint);
  } catch (const YAML::Exception& error) {
    fail_at(name, text, {error.mark, error.msg});
  }
  return builder.take_document();
}

json parse_value(const std::string& text, const std::string& assignment) {
  std::optional<json> value;
  try {
    value = parse_document(text, "value");
  } catch (const Error& error) {
    fail(ErrorKind::usage, "[override] {}: {}", in_quotes(assignment), error.what());
  }
  if (!value)
    fail(ErrorKind::usage, "[override] {} has no value; an empty text is '' in quotes", in_quotes(assignment));
  return std::move(*value);
}

// The parts between the points of the first `size` characters.
std::vector<std::string> split_path(const std::string& assignment, size_t size) {
  std::vector<std::string> parts;
  for (size_t begin = 0, end = 0; begin <= size; begin = end + 1) {
    end = std::min(assignment.find('.', begin), size);
    if (end == begin) fail(ErrorKind::usage, "[override] {} has an empty part in its key", in_quotes(assignment));
    parts.push_back(assignment.substr(begin, end - begin));
  }
  return parts;
}

}  // namespace

json parse_yaml(const std::string& text, const std::string& name) {
  auto document = parse_document(text, name);
  return document ? std::move(*document) : json::object();
}

json read_yaml(const std::string& path) {
  const auto source = open_source(path);
  std::string text(std::min<uint64_t>(source->size(), max_bytes + 1), '\0');
  source->read(0, std::as_writable_bytes(std::span(text)));
  return parse_yaml(text, path);
}

void set_override(json& config, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos) {
    fail(ErrorKind::usage, "[override] expected key=value such as train.lr=1e-4, got {}", in_quotes(assignment));
  }
  json value = parse_value(assignment.substr(equals + 1), assignment);
  json *place = &config, *group = nullptr;
  std::string walked, last;
  for (const std::string& part : split_path(assignment, equals)) {
    if (!place->is_object() && !place->is_null()) {
      fail(ErrorKind::usage, "[override] {}: {} is {}, not an object with keys", in_quotes(assignment),
           walked.empty() ? "the configuration" : in_quotes(walked), place->type_name());
    }
    group = place;
    last = part;
    place = &(*place)[part];
    walked += (walked.empty() ? "" : ".") + part;
  }
  if (value.is_null())
    group->erase(last);
  else
    *place = std::move(value);
}

}  // namespace convssm::io
