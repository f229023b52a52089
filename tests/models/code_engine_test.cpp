// Models of codes compiled to plans: the frames are those of the model run frame by frame, wherever one takes over from the
// other.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/models/code_golden.h"

namespace convssm::models {
namespace {

using testing::some_codes;

constexpr int64_t kEngineClips = 2, kEngineFrames = 5, kKnown = 6;

nlohmann::json engine_model(const std::string& name, const std::string& core, bool causal) {
  nlohmann::json cells = {{"name", core}, {"features", 8}, {"layers", 2}};
  if (core == "convs5") cells["state_size"] = 8;
  nlohmann::json section = {{"name", name},
                            {"tokenizer", testing::shades(kKnown, 8, 8, 3)},
                            {"core", cells},
                            {"actions", 3},
                            {"action_features", 2}};
  const nlohmann::json coder = {{"depths", {4, 8}}, {"blocks", 1}};
  section["encoder"] = section["decoder"] = coder;
  if (causal) section["causal_masking"] = {{"context", 3}};
  if (name == "teco") {
    section.update({{"features", 5},
                    {"quantizer", {{"name", "cosine"}, {"size", 8}, {"features", 4}}},
                    {"maskgit",
                     {{"vocabulary", 6},
                      {"features", 8},
                      {"layers", 2},
                      {"heads", 2},
                      {"draft", 3},  // chunks of 6, 5 and 5 tokens
                      {"revise", 4},
                      {"rounds", 1}}}});
  }
  return section;
}

Clips engine_context() {
  Clips clips;
  clips.codes = some_codes({kEngineClips, 4, 8, 8}, kKnown, 5);
  clips.actions = at::arange(kEngineClips * 4).view({kEngineClips, 4}).remainder(3);
  return clips;
}

at::Tensor coming(int64_t k) { return at::tensor({k % 3, (k + 1) % 3}, at::kLong); }

std::vector<at::Tensor> run_engine(FrameEngine& engine, int64_t first, int64_t frames) {
  std::vector<at::Tensor> all;
  for (int64_t k = first; k < first + frames; ++k) all.push_back(engine.next(coming(k)));
  return all;
}

using EngineCase = std::tuple<const char*, const char*, bool>;
class CodeEngines : public ::testing::TestWithParam<EngineCase> {
 protected:
  CodeEngines() {
    const auto& [name, core, causal] = GetParam();
    model = make_model(engine_model(name, core, causal), {1, 8, 8});
    model->eval();
    eager = eager_engine(*model->as_forecaster());
    compiled = model->as_forecaster()->compile({.batch = kEngineClips});
  }
  std::shared_ptr<Model> model;
  std::unique_ptr<FrameEngine> eager, compiled;
};

TEST_P(CodeEngines, MakeTheFramesOfTheModel) {
  ASSERT_NE(compiled, nullptr);
  EXPECT_TRUE(compiled->empty());
  eager->start(engine_context(), {1, 2});
  compiled->start(engine_context(), {1, 2});
  const auto expected = run_engine(*eager, 0, kEngineFrames), found = run_engine(*compiled, 0, kEngineFrames);
  bool differ = false;
  for (size_t k = 0; k < expected.size(); ++k) {
    EXPECT_TRUE(found[k].equal(expected[k])) << k;
    differ = differ || !expected[k].equal(expected[0]);
  }
  EXPECT_TRUE(differ) << "frames that are all the same show nothing";
}

TEST_P(CodeEngines, GoOnFromEachOthersStates) {
  eager->start(engine_context(), {1, 2});
  const auto expected = run_engine(*eager, 0, kEngineFrames);
  compiled->start(engine_context(), {1, 2});
  run_engine(*compiled, 0, 2);
  const State middle = compiled->save();
  run_engine(*compiled, 2, 1);  // a state is a value
  eager->load(middle);
  EXPECT_TRUE(run_engine(*eager, 2, 1)[0].equal(expected[2]));
  compiled->load(eager->save());
  const auto rest = run_engine(*compiled, 3, 2);
  EXPECT_TRUE(rest[0].equal(expected[3]));
  EXPECT_TRUE(rest[1].equal(expected[4]));
}

TEST_P(CodeEngines, TakeTrueFramesIn) {
  const at::Tensor truth = model->as_tokenizer()->decode(some_codes({kEngineClips, 1, 8, 8}, kKnown, 9)).squeeze(1);
  for (FrameEngine* engine : {eager.get(), compiled.get()}) {
    engine->start(engine_context(), {1, 2});
    run_engine(*engine, 0, 1);
    engine->observe(truth, coming(0));
  }
  EXPECT_TRUE(run_engine(*compiled, 1, 1)[0].equal(run_engine(*eager, 1, 1)[0]));
  State one = compiled->save();
  testing::expect_error([&] { model->as_forecaster()->compile({.batch = 3})->load(one); }, {"3 clips", "holds 2"});
}

// Codes are drawn with the same random numbers: what the rounding changes shows in few of them.
TEST_P(CodeEngines, AreNearlyTheSameInBytes) {
  const auto bytes = model->as_forecaster()->compile({.batch = kEngineClips, .int8 = true});
  ASSERT_NE(bytes, nullptr);
  bytes->start(engine_context(), {1, 2});
  compiled->start(engine_context(), {1, 2});
  const at::Tensor expected = compiled->next(coming(0)), found = bytes->next(coming(0));
  EXPECT_GT((found == expected).to(at::kDouble).mean().item<double>(), 0.8);
  bytes->start(engine_context(), {1, 2});
  EXPECT_TRUE(bytes->next(coming(0)).equal(found)) << "a second start gives the same";
}

INSTANTIATE_TEST_SUITE_P(All, CodeEngines,
                         ::testing::Values(EngineCase{"codes", "convs5", false}, EngineCase{"codes", "convlstm", true},
                                           EngineCase{"codes", "convgru", false}, EngineCase{"teco", "convs5", false},
                                           EngineCase{"teco", "convs5", true}, EngineCase{"teco", "convlstm", false}),
                         [](const auto& i) {
                           return std::string(std::get<0>(i.param)) + "_" + std::get<1>(i.param) +
                                  (std::get<2>(i.param) ? "_causal" : "");
                         });

}  // namespace
}  // namespace convssm::models
