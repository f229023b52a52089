// Read strictly and checked at once: a training of days should not fail on a typing error at its end.
#include "convssm/train/options.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "convssm/base/error.h"
#include "convssm/base/memory.h"
#include "convssm/base/option_reader.h"

namespace convssm::train {
namespace {

Schedule parse_schedule(const std::string& owner, const std::string& text) {
  if (text == "cosine") return Schedule::cosine;
  if (text == "cosine_short") return Schedule::cosine_short;
  if (text == "constant") return Schedule::constant;
  fail(ErrorKind::usage, "[train] {}schedule must be cosine, cosine_short or constant, got '{}'", owner, text);
}

const char* name(Schedule schedule) {
  if (schedule == Schedule::cosine) return "cosine";
  return schedule == Schedule::constant ? "constant" : "cosine_short";
}

void require(bool condition, const std::string& option, const char* expected, auto found) {
  if (!condition) fail(ErrorKind::usage, "[train] {} must be {}, got {}", option, expected, found);
}

uint64_t bytes_of(const std::string& text) {
  if (const auto bytes = parse_bytes(text)) return *bytes;
  fail(ErrorKind::usage, "[train] memory must be auto or a number with a unit such as 12GiB or 800MB, got '{}'", text);
}

// `auto` or a number of frames.
void read_chunk_frames(OptionReader& read, const nlohmann::json& json, int64_t& value) {
  const auto found = json.find("chunk_frames");
  if (found == json.end() || !found->is_string()) {
    read("chunk_frames", value);
    require(value >= 0 || found == json.end(), "chunk_frames", "auto, 0 or positive", value);
    return;
  }
  read("chunk_frames", [&](const std::string& text) {
    require(text == "auto", "chunk_frames", "auto, 0 or positive", "'" + text + "'");
    value = kAutomatic;
  });
}

std::string owner_text(const std::string& player) { return "players." + player + ": "; }

// `owner` is "" or an owner_text().
void check(const PlayerOptions& o, int64_t steps, const std::string& owner = "") {
  const auto need = [&](bool condition, const char* option, const char* expected, auto found) {
    require(condition, owner + option, expected, found);
  };
  need(std::isfinite(o.lr) && o.lr > 0, "lr", "positive", o.lr);
  need(o.start >= 0 && o.start < steps, "start", "between 0 and the last step", o.start);
  const int64_t warmup = warmup_steps(o, steps);
  const std::string fits =
      fmt::format("between 0 and steps, which are {}; without it, a tenth of them", steps - o.start);
  need(warmup >= 0 && warmup <= steps - o.start, "warmup", fits.c_str(), o.warmup);
  const bool decays = o.schedule != Schedule::cosine_short || 2 * warmup < steps - o.start;
  need(decays, "warmup", "less than half of the steps for cosine_short", o.warmup);
  need(o.beta1 >= 0 && o.beta1 < 1, "beta1", "in [0,1)", o.beta1);
  need(o.beta2 >= 0 && o.beta2 < 1, "beta2", "in [0,1)", o.beta2);
  need(o.eps > 0, "eps", "positive", o.eps);
  need(o.weight_decay >= 0, "weight_decay", "0 or positive", o.weight_decay);
  need(o.clip_norm >= 0, "clip_norm", "0 or positive", o.clip_norm);
  need(o.ema >= 0 && o.ema < 1, "ema", "in [0,1)", o.ema);
}

void check(const TrainOptions& o) {
  require(o.steps > 0, "steps", "positive", o.steps);
  require(o.batch > 0, "batch", "positive", o.batch);
  require(o.frames > 0, "frames", "positive", o.frames);
  require(o.accumulate > 0 && o.batch % o.accumulate == 0, "accumulate", "a divisor of batch", o.accumulate);
  check(o.optimizer, o.steps);
  for (const auto& [name, options] : o.players) check(options, o.steps, owner_text(name));
  require(o.self_feed >= 0 && o.self_feed <= 1, "self_feed", "in [0,1]", o.self_feed);
  require(o.self_feed_passes >= 1, "self_feed_passes", "positive", o.self_feed_passes);
  require(o.action_dropout >= 0 && o.action_dropout <= 1, "action_dropout", "in [0,1]", o.action_dropout);
  require(o.workers >= 0 && o.workers <= 64, "workers", "between 0 and 64", o.workers);
  require(o.log_interval >= 0, "log_interval", "0 or positive", o.log_interval);
  require(o.save_interval >= 0, "save_interval", "0 or positive", o.save_interval);
  require(o.sample_interval >= 0, "sample_interval", "0 or positive", o.sample_interval);
  require(o.keep_last > 0, "keep_last", "positive", o.keep_last);
  require(o.keep_every >= 0, "keep_every", "0 or positive", o.keep_every);
  require(o.sample_clips > 0, "sample_clips", "positive", o.sample_clips);
  require(o.sample_context >= 0, "sample_context", "0 or positive", o.sample_context);
  require(o.sample_frames >= 0, "sample_frames", "0 or positive", o.sample_frames);
}

// One list of the options for both directions: `f` sees every name and member.
template <typename Options, typename F>
void for_each_player_option(Options& o, const F& f) {
  f("lr", o.lr);
  f("warmup", o.warmup);
  f("beta1", o.beta1);
  f("beta2", o.beta2);
  f("eps", o.eps);
  f("weight_decay", o.weight_decay);
  f("clip_norm", o.clip_norm);
  f("start", o.start);
  f("ema", o.ema);
}

template <typename Options, typename F>
void for_each_option(Options& o, const F& f) {
  f("steps", o.steps);
  f("batch", o.batch);
  f("frames", o.frames);
  f("carry_state", o.carry_state);
  f("accumulate", o.accumulate);
  f("recompute", o.recompute);
  f("memory", o.memory);
  f("action_dropout", o.action_dropout);
  f("self_feed", o.self_feed);
  f("self_feed_passes", o.self_feed_passes);
  f("workers", o.workers);
  f("log_interval", o.log_interval);
  f("save_interval", o.save_interval);
  f("sample_interval", o.sample_interval);
  f("keep_last", o.keep_last);
  f("keep_every", o.keep_every);
  f("sample_clips", o.sample_clips);
  f("sample_context", o.sample_context);
  f("sample_frames", o.sample_frames);
}

void read_player_options(OptionReader& read, PlayerOptions& o, const std::string& owner = "") {
  for_each_player_option(o, [&](const char* key, auto& value) { read(key, value); });
  read("schedule", [&](const std::string& text) { o.schedule = parse_schedule(owner, text); });
}

nlohmann::json player_options_json(const PlayerOptions& o, int64_t steps) {
  nlohmann::json json;
  for_each_player_option(o, [&](const char* key, const auto& value) { json[key] = value; });
  json["warmup"] = warmup_steps(o, steps);
  json["schedule"] = name(o.schedule);
  return json;
}

}  // namespace

TrainOptions TrainOptions::from_json(const nlohmann::json& json) {
  TrainOptions o;
  OptionReader read("train", json);
  for_each_option(o, [&](const char* key, auto& value) { read(key, value); });
  read_chunk_frames(read, json, o.chunk_frames);
  read_player_options(read, o.optimizer);
  o.optimizer.warmup = warmup_steps(o.optimizer, o.steps);
  nlohmann::json players = nlohmann::json::object();
  read("players", players);
  read.finish();
  for (const auto& [player, own] : players.items()) {
    OptionReader read_own("train.players." + player, own);
    read_player_options(read_own, o.players.emplace(player, o.optimizer).first->second, owner_text(player));
    read_own.finish();
  }
  if (o.sample_context == 0) o.sample_context = std::max<int64_t>(1, o.frames / 3);
  if (o.sample_frames == 0) o.sample_frames = std::max<int64_t>(1, o.frames - o.sample_context);
  check(o);
  o.memory_bytes();
  return o;
}

uint64_t TrainOptions::memory_bytes() const { return memory == "auto" ? 0 : bytes_of(memory); }

const PlayerOptions& TrainOptions::player(const std::string& player) const {
  const auto found = players.find(player);
  return found == players.end() ? optimizer : found->second;
}

nlohmann::json TrainOptions::to_json() const {
  nlohmann::json json;
  json["chunk_frames"] = chunk_frames == kAutomatic ? nlohmann::json("auto") : nlohmann::json(chunk_frames);
  for_each_option(*this, [&](const char* key, const auto& value) { json[key] = value; });
  const nlohmann::json all = player_options_json(optimizer, steps);
  json.update(all);
  for (const auto& [player, own] : players) {
    const nlohmann::json its = player_options_json(own, steps);
    for (const auto& [key, value] : its.items()) {
      if (value != all[key]) json["players"][player][key] = value;
    }
  }
  return json;
}

int64_t warmup_steps(const PlayerOptions& o, int64_t steps) {
  return o.warmup == kAutomatic ? std::min<int64_t>(5000, steps / 10) : o.warmup;
}

double learning_rate(const PlayerOptions& o, int64_t step, int64_t steps) {
  const int64_t warmup = warmup_steps(o, steps);
  step -= o.start, steps -= o.start;
  if (step < 0) return 0;
  if (step < warmup) return o.lr * static_cast<double>(step) / static_cast<double>(warmup);
  if (o.schedule == Schedule::constant) return o.lr;
  const int64_t length = steps - (o.schedule == Schedule::cosine ? warmup : 2 * warmup);
  if (length <= 0) return 0;
  const double part = static_cast<double>(std::min(step - warmup, length)) / static_cast<double>(length);
  return o.lr * 0.5 * (1 + std::cos(std::numbers::pi * part));
}

}  // namespace convssm::train
