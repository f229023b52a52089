// A trained model on frames of another size: the weights of its file, its compiled engine, and models that cannot.
#include "convssm/run/frame_size.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/generate/predictor.h"
#include "convssm/models/registry.h"
#include "tests/base/scratch_folder.h"
#include "tests/support.h"

namespace convssm::run {
namespace {

using nlohmann::json;
using testing::distance;
using testing::expect_error;

const data::FrameFormat kTrainedFrames{2, 12, 16}, kOtherFrames{2, 21, 18};  // the others are no whole multiples

json size_test_options(json core) {
  core.update({{"features", 8}, {"layers", 2}});
  if (core["name"].get<std::string>().ends_with("s5")) core["state_size"] = 8;
  if (core["name"] == "convs5") core["groups"] = 4;
  if (core["name"] == "transformer" || core["name"] == "performer") core.update({{"heads", 2}, {"mlp", 8}});
  const json coder = {{"depths", {4, 8}}, {"groups", 2}};
  return {{"name", "pixel"}, {"encoder", coder}, {"decoder", coder}, {"core", core}};
}

// A model file whose weights are not those that the seed gives.
std::string write_trained(const ScratchFolder& scratch, const json& options) {
  const auto model = models::make_model(options, kTrainedFrames);
  torch::NoGradGuard no_grad;
  uint64_t seed = 7;
  for (at::Tensor& p : model->parameters()) p.add_(testing::randn(p.sizes(), ++seed).to(at::kFloat), 0.02);
  for (auto& item : model->named_parameters())
    if (item.key() == "decoder.last.weight") item.value().mul_(0.25);  // else rollouts are chaotic: any rounding grows
  save_model(scratch.path("m.safetensors"), *model, {options, kTrainedFrames, json::object(), 3});
  return scratch.path("m.safetensors");
}

std::vector<json> size_test_cores() {
  std::vector<json> cores{{{"name", "convlstm"}},
                          {{"name", "convgru"}},
                          {{"name", "convrnn"}},
                          {{"name", "hybrid"}, {"state_size", 8}, {"heads", 1}, {"window", 3}},
                          {{"name", "convs5"}, {"init", "gaussian"}},
                          {{"name", "convs5"}, {"dynamics", "gated"}, {"output_gate", "swish"}}};
  for (const char* block : {"resnet", "standard", "half_glu", "diag_resnet", "sparse", "convnext", "s4nd"}) {
    cores.push_back({{"name", "convs5"}, {"activation_block", block}});
  }
  return cores;
}

TEST(OtherFrameSize, WeightsOfCoresOnFramesDoNotDependOnIt) {
  for (const json& core : size_test_cores()) {
    const ScratchFolder scratch;
    const json options = size_test_options(core);
    const std::string path = write_trained(scratch, options);
    const LoadedModel before = load_model(path);
    LoadedModel loaded = load_model(path);
    change_frame_size(loaded, kOtherFrames.height, kOtherFrames.width);
    EXPECT_TRUE(loaded.recipe.frames.same_size(kOtherFrames)) << core;
    EXPECT_TRUE(loaded.trained.same_size(kTrainedFrames)) << core;
    EXPECT_FALSE(loaded.model->is_training());
    const auto then = before.model->named_parameters(), now = loaded.model->named_parameters();
    ASSERT_EQ(then.size(), now.size());
    for (const auto& item : then) EXPECT_TRUE(item.value().equal(now[item.key()])) << core << item.key();
    change_frame_size(loaded, kTrainedFrames.height, kTrainedFrames.width);
    const at::Tensor video = testing::randn({1, 3, 2, 12, 16}, 1).tanh().to(at::kFloat);
    const auto forecast = [&](const LoadedModel& of) { return of.model->as_forecaster()->forecasts({video}, {}); };
    EXPECT_EQ(distance(forecast(loaded), forecast(before)), 0) << "there and back, " << core;
  }
}

// True frames go in, so that rounding does not grow from forecast to forecast.
TEST(OtherFrameSize, TheCompiledEngineRunsAsTheModelDoes) {
  const at::Tensor video = testing::randn({2, 16, 2, 21, 18}, 2).tanh().to(at::kFloat);
  for (const json& core : size_test_cores()) {
    const ScratchFolder scratch;
    LoadedModel loaded = load_model(write_trained(scratch, size_test_options(core)));
    change_frame_size(loaded, kOtherFrames.height, kOtherFrames.width);
    const auto frames = [&](bool compile) {
      generate::Predictor predictor(*loaded.model, {.batch = 2, .compile = compile});
      EXPECT_EQ(predictor.compiled(), compile && core["name"] != "hybrid");  // which has no plan
      predictor.start({video.slice(1, 0, 4)});
      std::vector<at::Tensor> all{predictor.next()};
      for (int64_t k = 4; k < video.size(1); ++k) all.push_back(predictor.next(video.select(1, k)));
      return at::stack(all, 1);
    };
    const at::Tensor compiled = frames(true), whole = loaded.model->as_forecaster()->forecasts({video}, {});
    EXPECT_EQ(compiled.sizes(), at::IntArrayRef({2, 13, 2, 21, 18}));
    EXPECT_GT(testing::max_abs(compiled), 1e-3) << core;
    EXPECT_LT(distance(compiled, frames(false)), 1e-4) << core;
    EXPECT_LT(distance(compiled, whole.slice(1, 3)), 1e-4) << "all frames at once, " << core;
  }
}

// Whether the weights really belong to one size is asked of the weights themselves.
bool have_other_shapes(const json& options) {
  const auto small = models::make_model(options, kTrainedFrames);
  const auto shapes = [](const models::Model& model) {
    std::vector<std::vector<int64_t>> all;
    for (const at::Tensor& p : model.parameters()) all.push_back(p.sizes().vec());
    return all;
  };
  return shapes(*small) != shapes(*models::make_model(options, {2, 24, 32}));
}

TEST(OtherFrameSize, CoresOnTokensSayWhyNot) {
  for (const json& core : std::vector<json>{{{"name", "s5"}},
                                            {{"name", "transformer"}},
                                            {{"name", "performer"}},
                                            {{"name", "transformer"}, {"patch", 2}},
                                            {{"name", "performer"}, {"patch", 2}}}) {
    const ScratchFolder scratch;
    const json options = size_test_options(core);
    EXPECT_TRUE(have_other_shapes(options)) << core;
    LoadedModel loaded = load_model(write_trained(scratch, options));
    expect_error([&] { change_frame_size(loaded, 24, 32); },
                 {"expected frames of 12 x 16", "got 24 x 32", core["name"],
                  core.contains("patch") ? "12 tokens" : "1 token,", "'patch'", "convs5", "Bring the frames"});
    EXPECT_TRUE(loaded.recipe.frames.same_size(kTrainedFrames));
    EXPECT_NO_THROW(change_frame_size(loaded, 12, 16)) << "its own size";
  }
}

// Attention on patches wants features that are whole patches: said when a model is made, not at its first frame.
TEST(OtherFrameSize, FeaturesMustBeWholePatches) {
  const ScratchFolder scratch;
  const json hybrid = {{"name", "hybrid"}, {"state_size", 8}, {"heads", 1}, {"patch", 2}};
  LoadedModel loaded = load_model(write_trained(scratch, size_test_options(hybrid)));
  EXPECT_NO_THROW(change_frame_size(loaded, 24, 32));
  expect_error([&] { change_frame_size(loaded, 22, 32); },
               {"hybrid cannot take the 11x16 features", "whole patches of 2x2", "patch"});
}

TEST(OtherFrameSize, ExplainsWrongSizes) {
  const ScratchFolder scratch;
  LoadedModel loaded = load_model(write_trained(scratch, size_test_options({{"name", "convs5"}})));
  expect_error([&] { change_frame_size(loaded, 0, 16); }, {"at least 1 x 1", "0 x 16"});
  EXPECT_NO_THROW(change_frame_size(loaded, 1, 1));
}

// A model of somebody else that takes any size by its word and not by its weights.
class WordOnly : public models::Model {
 public:
  explicit WordOnly(const data::FrameFormat& frames) { register_parameter("map", at::zeros({frames.height})); }
  models::LossOutput loss(const data::Clips&, const models::LossContext&, const models::State&) override { return {}; }
  std::string obstacle_to_other_sizes() const override { return ""; }
  std::string description() const override { return "a map"; }
};

TEST(OtherFrameSize, AModelThatIsWrongAboutItselfIsFoundOut) {
  models::register_model({"word-only", "a map of the frame", [](const json&, const data::FrameFormat& frames) {
                            return std::make_shared<WordOnly>(frames);
                          }});
  const ScratchFolder scratch;
  const json options = {{"name", "word-only"}};
  save_model(scratch.path("m.safetensors"), *models::make_model(options, kTrainedFrames),
             {options, kTrainedFrames, json::object(), 3});
  LoadedModel loaded = load_model(scratch.path("m.safetensors"));
  expect_error([&] { change_frame_size(loaded, 21, 18); }, {"'map'", "[12]", "[21]"});
}

}  // namespace
}  // namespace convssm::run
