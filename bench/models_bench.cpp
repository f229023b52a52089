// Every kind of model at laptop size, from the configs of the project: parameters, frames/s of a training step and of
// generation, each in turns with the small ConvS5, and what a state holds. Rows are models.<model>.<quantity>. Speed does not
// depend on what a model has learned: none is trained, and tokenizers are as they were drawn.
#include <ATen/ATen.h>

#include "bench/bench_models.h"
#include "bench/harness.h"
#include "convssm/base/log.h"
#include "convssm/generate/rollout.h"
#include "convssm/models/tokenizer.h"
#include "convssm/train/gradients.h"
#include "convssm/train/optimizer.h"

namespace convssm::bench {
namespace {

struct Kind {
  const char *name, *folder, *config;
  const char* tokenizer = "";  // a config of configs/tokenizer, of models that are trained on one
};

constexpr Kind kKinds[] = {
    {"pixel.convs5", "mini", "convs5"},
    {"pixel.convlstm", "mini", "convlstm"},
    {"pixel.s5", "mini", "s5"},
    {"pixel.transformer", "mini", "transformer"},
    {"pixel.performer", "mini", "performer"},
    {"cwvae", "mini", "cwvae"},
    {"fitvid", "mini", "fitvid"},
    {"perceiver_ar", "mini", "perceiver_ar", "digit"},
    {"latent_fdm", "mini", "latent_fdm", "digits_kl"},
    {"latent_fdm.pixels", "mini", "latent_fdm_pixels"},
    {"codes.convs5", "maze", "codes_convs5", "maze_small"},
    {"teco.convs5", "maze", "teco_convs5", "maze_small"},
};

constexpr int64_t kContext = 16, kFuture = 16, kTogether = 16;  // frames

// A model with clips of its training; its step is the trainer's, with a learning rate of 0.
class Subject {
 public:
  explicit Subject(const Kind& kind) : kind_(kind), config_(bench_config(kind.folder, kind.config)) {
    const bool tokenized = *kind.tokenizer != '\0';
    const run::Config frames = tokenized ? bench_config("tokenizer", kind.tokenizer) : config_;
    const auto dataset = run::make_dataset(frames);
    if (tokenized) {
      nlohmann::json section = frames.model;
      section["frames"] = dataset->format().to_json();
      config_.model["tokenizer"] = section;
    }
    model = run::make_model(config_, dataset->format());
    clips_ = clips_of(*dataset, config_.train.batch, config_.train.frames);
    context_ = clips_of(*dataset, 1, kContext);
    optimizer_ = std::make_unique<train::Optimizer>(model->players().at(0), config_.train.optimizer);
  }

  std::string row(const char* quantity) const { return fmt::format("models.{}.{}", kind_.name, quantity); }

  // That a step learns from.
  double frames_of_a_step() const {
    const int64_t most = model->loss_frames();
    return static_cast<double>(clips_.batch() * (most > 0 ? std::min(most, clips_.frames()) : clips_.frames()));
  }

  void step() {
    model->train();
    optimizer_->clear_gradients();
    train::add_gradients(*model, clips_, {.steps = 2}, 0);  // the first of two: the last may be another
    optimizer_->update(0);
  }

  generate::Predictor predictor() const {
    model->eval();
    generate::Predictor made(*model);
    made.start(context_, {1});
    return made;
  }

  std::shared_ptr<models::Model> model;

 private:
  // Of models of codes encoded before, as `data encode` does.
  data::Clips clips_of(const data::Dataset& dataset, int64_t count, int64_t frames) const {
    data::Clips clips = data::read_clips(dataset, data::Split::train, 0, count, frames);
    models::Tokenizer* tokenizer = model->as_tokenizer();
    if (tokenizer == nullptr || tokenizer->continuous()) return clips;
    clips.codes = tokenizer->encode(clips.video);
    clips.video = at::Tensor();
    return clips;
  }

  Kind kind_;
  run::Config config_;
  data::Clips clips_, context_;
  std::unique_ptr<train::Optimizer> optimizer_;
};

// Both in turns; the times of different numbers of frames become times of one.
Row per_frame(const std::string& name, int rounds, const std::function<void()>& subject, double frames,
              const std::function<void()>& reference, double reference_frames) {
  Row row = compare(name, "ConvS5 on pixels", rounds, subject, reference);
  const double factor = frames / reference_frames;
  row.reference *= factor, row.ratio *= factor, row.spread *= factor;
  return per_second(row, frames, "frames/s");
}

double bytes_of(const models::State& state) {
  double bytes = 0;
  for (const auto& [name, value] : state.items()) bytes += static_cast<double>(value.nbytes());
  return bytes;
}

void roll(generate::Predictor& predictor, int64_t frames) {
  generate::for_each_forecast(predictor, {}, frames, [](const at::Tensor&) { return true; });
}

void bench_kind(const Kind& kind, Subject& convs5, int rounds, const Report& report) {
  Subject subject(kind);
  report(single(subject.row("parameters"), 1e-6 * static_cast<double>(models::learned_count(*subject.model)), "million",
                "that learn"));
  report(per_frame(
      subject.row("train"), rounds, [&] { subject.step(); }, subject.frames_of_a_step(), [&] { convs5.step(); },
      convs5.frames_of_a_step()));
  generate::Predictor ours = subject.predictor(), theirs = convs5.predictor();
  roll(ours, 1);
  const double young = bytes_of(ours.state());
  roll(ours, kFuture);
  report(single(subject.row("state"), young / 1024, "KiB", fmt::format("after {} frames", kContext + 1)));
  report(single(subject.row("growth"), (bytes_of(ours.state()) - young) / 1024 / kFuture, "KiB",
                "for each further frame"));
  const models::State old = ours.state(), other = theirs.state();  // every round goes on from the same frame
  const auto from = [](generate::Predictor& predictor, const models::State& state) {
    predictor.start(state);
    roll(predictor, kTogether);
  };
  report(per_frame(
      subject.row("generate"), rounds, [&] { from(ours, old); }, kTogether, [&] { from(theirs, other); }, kTogether));
}

}  // namespace

void bench_models(const Settings& settings, const Report& report) {
  Subject convs5(kKinds[0]);
  size_t number = 0;
  for (const Kind& kind : kKinds) {
    ++number;
    log_info("models: {}, {} of {}", kind.name, number, std::size(kKinds));
    bench_kind(kind, convs5, std::max(3, settings.rounds / 3), report);
  }
}

}  // namespace convssm::bench
