// Every model trains and forecasts on a device that is not the CPU, with the numbers of the CPU, and with all kernels
// replaced by their plain versions.
#include "convssm/ops/device.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "convssm/cores/registry.h"
#include "convssm/data/moving_mnist.h"
#include "convssm/evaluate/evaluate.h"
#include "convssm/generate/frame_sink.h"
#include "convssm/generate/rollout.h"
#include "convssm/models/registry.h"
#include "convssm/train/trainer.h"
#include "other_device.h"
#include "tests/base/scratch_folder.h"
#include "tests/models/toys.h"
#include "tests/support.h"

namespace convssm {
namespace {

using testing::distance;
using testing::other_device;

constexpr int64_t kSide = 8, kActions = 3;

// Clips with actions, a function of (split, index).
class Clips : public data::Dataset {
 public:
  data::Clips clip(data::Split split, uint64_t index, int64_t frames) const override {
    Stream stream(2, data::name(split), index);
    data::Clips clip{at::empty({1, frames, 1, kSide, kSide}), at::empty({1, frames}, at::kLong)};
    for (int64_t i = 0; i < clip.video.numel(); ++i) {
      clip.video.data_ptr<float>()[i] = static_cast<float>(stream.uniform(-1, 1));
    }
    for (int64_t t = 0; t < frames; ++t)
      clip.actions.data_ptr<int64_t>()[t] = static_cast<int64_t>(stream.below(kActions));
    return clip;
  }
  uint64_t size(data::Split) const override { return 20; }
  int64_t longest(data::Split) const override { return data::any_length; }
  data::FrameFormat format() const override { return {1, kSide, kSide}; }
  data::ActionFormat actions() const override { return {kActions, 0}; }
  std::vector<std::string> summary() const override { return {"noise with actions"}; }
};

// A small model of each registered core, and one for each other registered model.
std::vector<std::pair<std::string, nlohmann::json>> all_subjects() {
  const nlohmann::json coder = {{"depths", {8, 8}}, {"blocks", 1}};
  const std::map<std::string, nlohmann::json> cores = {
      {"convs5", {{"state_size", 8}, {"layers", 2}}},
      {"hybrid", {{"state_size", 8}, {"heads", 1}, {"window", 3}, {"patch", 2}, {"mlp", 8}}},
      {"convrnn", {{"layers", 1}}},
      {"convlstm", {{"layers", 1}}},
      {"convgru", {{"layers", 1}}},
      {"s5", {{"state_size", 8}, {"layers", 1}}},
      {"transformer", {{"layers", 1}, {"heads", 2}, {"mlp", 8}, {"window", 4}}},
      {"performer", {{"layers", 1}, {"heads", 2}, {"mlp", 8}, {"random_features", 8}}}};
  std::vector<std::pair<std::string, nlohmann::json>> subjects;
  for (const cores::CoreInfo& info : cores::all_cores()) {
    EXPECT_TRUE(cores.contains(info.name)) << "a new core: give it a small config here";
    nlohmann::json core = cores.at(info.name);
    core.update({{"name", info.name}, {"features", 8}});
    subjects.push_back({info.name, {{"encoder", coder}, {"decoder", coder}, {"core", core}, {"actions", kActions}}});
  }
  const nlohmann::json plain = subjects[0].second;
  for (const char* block : {"sparse", "convnext", "s4nd"}) {
    subjects.push_back({block, plain});
    subjects.back().second["core"].update({{"activation_block", block}, {"learned_state", true}});
  }
  subjects.back().second["core"]["init"] = "lru";
  for (const char* dynamics : {"selective", "gated", "liquid"}) {
    subjects.push_back({dynamics, plain});
    subjects.back().second["core"].update({{"dynamics", dynamics}, {"output_gate", "swish"}});
  }
  EXPECT_EQ(models::all_models().size(), 8u)
      << "a new model: give it a small config here (vqgan: in tokenizer_test.cpp; "
         "codes and teco: in codes_test.cpp; cwvae, fitvid, latent_fdm, perceiver_ar: in a file each)";
  return subjects;
}

struct Trained {
  std::shared_ptr<models::Model> model;
  nlohmann::json lines = nlohmann::json::array();
  at::Tensor future;
};

struct Lines : train::TrainObserver {
  explicit Lines(Trained& t) : trained(t) {}
  void line(int64_t, const nlohmann::json& scores, const nlohmann::json&) override { trained.lines.push_back(scores); }
  void samples(int64_t, const train::Validation& v) override { trained.lines.push_back(v.scores); }
  Trained& trained;
};

train::TrainOptions train_options() {
  return train::TrainOptions::from_json({{"steps", 3},
                                         {"batch", 4},
                                         {"accumulate", 2},
                                         {"frames", 5},
                                         {"warmup", 0},
                                         {"lr", 0.01},
                                         {"ema", 0.5},
                                         {"clip_norm", 0.5},
                                         {"self_feed", 0.5},
                                         {"action_dropout", 0.3},
                                         {"recompute", true},
                                         {"chunk_frames", 2},
                                         {"log_interval", 1},
                                         {"sample_interval", 3},
                                         {"sample_context", 2},
                                         {"sample_frames", 2},
                                         {"sample_clips", 1},
                                         {"workers", 0}});
}

// Loss, backward, optimizer, averages, samples; then a rollout.
Trained train_on(at::Device device, const nlohmann::json& options) {
  Trained t;
  const auto dataset = std::make_shared<Clips>();
  t.model = models::make_model(options, dataset->format());
  t.model->to(device);
  Lines lines(t);
  train::Trainer trainer(*t.model, dataset, train_options(), 1, lines);
  const StopRequest stop;
  EXPECT_EQ(trainer.run(stop), train::Outcome::finished);
  t.model->eval();
  generate::Predictor predictor(*t.model, {.batch = 2});
  const data::Clips clips = data::read_clips(*dataset, data::Split::test, 0, 2, 7);
  predictor.start(data::frames_of(clips, 0, 4));
  t.future = generate::rollout(predictor, clips.actions.slice(1, 4), 3);
  EXPECT_EQ(t.future.device(), device);
  t.future = t.future.cpu();
  return t;
}

void expect_same(const Trained& found, const Trained& expected) {
  ASSERT_EQ(found.lines.size(), expected.lines.size());
  for (size_t i = 0; i < expected.lines.size(); ++i) {
    for (const auto& [key, value] : expected.lines[i].items()) {
      EXPECT_NEAR(found.lines[i].at(key).get<double>(), value.get<double>(), 2e-4 * (1 + std::abs(value.get<double>())))
          << key << " of line " << i;
    }
  }
  EXPECT_LT(distance(found.future, expected.future), 3e-3);
  const auto parameters = expected.model->named_parameters();
  for (const auto& item : found.model->named_parameters()) {
    // The first steps of AdamW are of size lr, here 0.01, whatever the gradient: rounding turns those that are almost zero, such as those
    // of a bias before a norm. Three steps of other gradients would be some 0.01 apart.
    EXPECT_LT((item.value().cpu() - parameters[item.key()]).abs().mean().item<double>(), 4e-3) << item.key();
  }
}

TEST(Devices, EveryModelTrainsAndForecastsWithPlainKernels) {
  for (const auto& [name, options] : all_subjects()) {
    SCOPED_TRACE(name);
    const Trained fast = train_on(at::kCPU, options);
    const ops::PlainKernels plain;
    expect_same(train_on(at::kCPU, options), fast);
  }
}

TEST(Devices, EveryModelTrainsAndForecastsOnAnotherDevice) {
  if (const auto why = testing::obstacle_to_gradients(); !why.empty()) GTEST_SKIP() << why;
  for (const auto& [name, options] : all_subjects()) {
    SCOPED_TRACE(name);
    const int64_t before = testing::operations_on_other_device();
    const Trained found = train_on(other_device(), options);
    EXPECT_GT(testing::operations_on_other_device(), before + 1000);
    expect_same(found, train_on(at::kCPU, options));
  }
}

TEST(Devices, ARandomFutureIsTheSameOnEveryDevice) {
  const auto future = [](at::Device device) {
    testing::DrawingModel model;
    model.to(device);
    generate::Predictor predictor(model, {.batch = 2});
    predictor.start({testing::randn({2, 3, 1, 4, 4}, 5).to(at::kFloat).clamp(-1, 1)}, {7, 8});
    return generate::rollout(predictor, {}, 6).cpu();
  };
  EXPECT_TRUE(future(other_device()).equal(future(at::kCPU)));
}

TEST(Devices, AStateGoesOnOnAnotherDevice) {
  const auto options = all_subjects()[0].second;
  const auto model = models::make_model(options, {1, kSide, kSide}),
             there = models::make_model(options, {1, kSide, kSide});
  there->to(other_device());
  generate::Predictor here(*model), other(*there);
  here.start({testing::randn({1, 3, 1, kSide, kSide}, 5).to(at::kFloat).clamp(-1, 1)});
  here.next();
  other.start(here.state());
  const at::Tensor expected = here.next();
  EXPECT_LT(distance(other.next().cpu(), expected), 1e-5);
}

TEST(Devices, FramesOfAnyDeviceAreScoredAndWritten) {
  const auto dataset = std::make_shared<Clips>();
  const auto model = models::make_model(all_subjects()[0].second, dataset->format());
  const auto options = evaluate::EvaluateOptions::from_json(
      {{"samples", 2}, {"batch", 2}, {"context", 2}, {"horizons", {3}}, {"metrics", {"psnr_f01"}}});
  const auto metrics = evaluate::make_metrics(options, dataset->format(), metrics::WeightFolder());
  const auto score = [&] { return evaluate::evaluate(*model, *dataset, options, metrics, "model").metrics["curves"]; };
  const nlohmann::json here = score();
  model->to(other_device());
  const nlohmann::json there = score();
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(there["psnr_f01"]["model"][k].get<double>(), here["psnr_f01"]["model"][k].get<double>(), 1e-3);
  }
  const ScratchFolder folder;
  for (const char* ending : {".npy", ".npz", ".gif", ".png"}) {
    const auto sink = generate::open_sink(folder.path(std::string("a") + ending), dataset->format(), {2, 10, 1});
    for (int64_t k = 0; k < 2; ++k) sink->write(at::zeros({1, kSide, kSide}, other_device()));
    sink->close();
  }
}

TEST(Devices, OneThatIsNotThereIsRefused) {
  testing::expect_error([] { ops::parse_device("gpu"); }, {"expected cpu, cuda or cuda:N, got 'gpu'"});
  testing::expect_error([] { ops::parse_device("cuda:99"); }, {"[device] 'cuda:99' is asked for, but", "cpu"});
  testing::expect_error([] { ops::parse_device("xpu:99"); }, {"[device] 'xpu:99' is asked for, but there are only"});
  EXPECT_EQ(ops::parse_device("cpu"), at::Device(at::kCPU));
  EXPECT_EQ(ops::parse_device("xpu"), other_device());
  EXPECT_EQ(ops::device_names().front(), "cpu");
}

}  // namespace
}  // namespace convssm
