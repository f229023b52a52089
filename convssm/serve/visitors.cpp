#include "convssm/serve/visitors.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/base/log.h"

namespace convssm::serve {
namespace {

void append_rgba(std::string& out, const io::Image& image) {
  const size_t channels = static_cast<size_t>(image.channels);
  for (size_t i = 0; i < image.pixels.size(); i += channels) {
    for (size_t c = 0; c < 3; ++c) out += static_cast<char>(image.pixels[i + (channels == 3 ? c : 0)]);
    out += static_cast<char>(0xff);
  }
}

void do_deed(Visit& visit, const Request& r) {
  switch (r.deed) {
    case Deed::join:
    case Deed::look:
      return;
    case Deed::start:
      return visit.start({r.world, r.seed});
    case Deed::step:
      return visit.step(r.action, r.all);
    case Deed::rewind:
      return visit.rewind(r.frames, r.all);
    case Deed::branch:
      return visit.branch(r.count);
    case Deed::choose:
      return visit.choose(r.branch);
    case Deed::keep:
      return visit.keep();
    case Deed::temperature:
      return visit.set_temperature(r.value);
    case Deed::record:
      return visit.record(r.fps);
    case Deed::stop:
      return visit.stop_recording();
  }
}

}  // namespace

Visitors::Visitors(Scene& scene, const VisitorLimits& limits) : scene_(scene), limits_(limits) {
  const auto require = [](bool ok, const char* text) {
    if (!ok) fail(ErrorKind::usage, "[serve] {}", text);
  };
  require(limits.visitors >= 1 && limits.visitors <= 4096, "visitors must be from 1 to 4096");
  require(limits.rewind >= 0, "rewind must be 0 or more frames");
  require(limits.idle.count() >= 1 && limits.idle.count() <= 31536000, "idle must be from 1 second to a year");
}

Visitors::Guest& Visitors::guest(const std::string& visitor) {
  const auto found = visits_.find(visitor);
  if (found != visits_.end()) return found->second;
  if (visitor.empty()) fail(ErrorKind::usage, "say {{\"do\": \"join\"}} first");
  throw UnknownVisitor(fmt::format(
      "unknown visitor: the walk is over, or was silent for {} s. Join again without a name", limits_.idle.count()));
}

const Visit& Visitors::visit(const std::string& visitor) const {
  const auto found = visits_.find(visitor);
  if (found == visits_.end()) fail(ErrorKind::usage, "unknown visitor");
  return found->second.visit;
}

Reply Visitors::answer(std::string& visitor, const Request& request, Clock::time_point now) {
  if (request.deed == Deed::join) return join(visitor, request, now);
  Guest& who = guest(visitor);
  who.seen = now;
  do_deed(who.visit, request);
  spare_memory();
  return view_reply(who.visit);
}

Reply Visitors::join(std::string& visitor, const Request& request, Clock::time_point now) {
  if (!request.visitor.empty()) {
    guest(request.visitor).seen = now;
    visitor = request.visitor;
    return welcome(visitor);
  }
  visits_.erase(visitor);  // a connection has one walk
  visitor.clear();
  forget_idle(now);
  if (count() >= limits_.visitors) {
    fail(ErrorKind::usage, "all {} places are taken; come back later, or start the server with --visitors {}", count(),
         2 * count());
  }
  const std::string name = new_visitor();
  visits_.emplace(name, Guest{Visit(scene_, limits_.rewind, used_), now});
  spare_memory();
  visitor = name;
  log_info("visitor {} came, {} now", name.substr(0, 6), count());
  return welcome(visitor);
}

Reply Visitors::welcome(const std::string& visitor) const {
  const Beginnings& beginnings = scene_.beginnings();
  const data::ActionFormat& actions = scene_.rules().format;
  const bool matter = actions.matter();
  const nlohmann::json about = {{"visitor", visitor},
                                {"model", scene_.description()},
                                {"world", scene_.world()},
                                {"worlds", beginnings.count()},
                                {"actions", matter ? actions.count : 0},
                                {"action_names", matter ? beginnings.action_names() : std::vector<std::string>{}},
                                {"action_values", actions.values},
                                {"masked", scene_.takes_masked()},
                                {"draws", scene_.forecaster().draws()},
                                {"has_temperature", scene_.temperature().has_value()},
                                {"most_branches", kMostBranches},
                                {"most_recorded", kMostRecorded}};
  return {false, about.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

std::shared_ptr<const std::string> Visitors::recording(const std::string& visitor) const {
  const auto found = visits_.find(visitor);
  if (found == visits_.end()) return nullptr;
  const Recording* recording = found->second.visit.recording();
  return recording == nullptr || recording->open() || recording->frames() == 0 ? nullptr : recording->gif();
}

void Visitors::forget_idle(Clock::time_point now) {
  for (auto at = visits_.begin(); at != visits_.end();) {
    if (now - at->second.seen < limits_.idle) {
      ++at;
      continue;
    }
    log_info("visitor {} was silent for {} s and is forgotten, {} now", at->first.substr(0, 6), limits_.idle.count(),
             count() - 1);
    at = visits_.erase(at);
  }
}

// Whoever keeps most gives first, so that one visitor cannot take the past of another.
void Visitors::spare_memory() {
  const auto kept = [](const auto& entry) { return entry.second.visit.kept_moments(); };
  while (*used_ > limits_.memory) {
    if (!std::ranges::max_element(visits_, {}, kept)->second.visit.forget_oldest()) return;
  }
}

Reply view_reply(const Visit& visit) {
  const Moment& first = visit.now(0);
  const bool truth = !first.truth.pixels.empty();
  nlohmann::json about = {{"world", visit.started().number},
                          {"seed", visit.started().seed},
                          {"width", first.seen.width},
                          {"height", first.seen.height},
                          {"truth", truth},
                          {"chosen", visit.chosen()},
                          {"milliseconds", visit.milliseconds()}};
  if (visit.temperature()) about["temperature"] = *visit.temperature();
  if (const Recording* recording = visit.recording()) {
    about["recording"] = {{"frames", recording->frames()}, {"open", recording->open()}};
  }
  std::string pixels;
  about["branches"] = nlohmann::json::array();
  for (int64_t i = 0; i < visit.branches(); ++i) {
    about["branches"].push_back({{"frame", visit.now(i).number}, {"kept", visit.kept(i)}});
    append_rgba(pixels, visit.now(i).seen);
    if (truth) append_rgba(pixels, visit.now(i).truth);
  }
  const std::string text = about.dump();
  Reply reply{true, {}};
  for (int shift = 0; shift < 32; shift += 8) reply.bytes += static_cast<char>(text.size() >> shift & 0xff);
  reply.bytes += text;
  reply.bytes += pixels;
  return reply;
}

}  // namespace convssm::serve
