// Models of codes compiled to plans: the frames are those of the model run frame by frame, wherever one takes over from the
// other.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/models/code_golden.h"

namespace convssm::models {
namespace {

using testing::some_codes;

constexpr int64_t kEngineClips = 2, kEngineFrames = 5, kKnown = 6;

nlohmann::json engine_model(const std::string& name, const std::string& core, bool causal, int64_t width = 8) {
  nlohmann::json cells = {{"name", core}, {"features", width}, {"layers", 2}};
  if (core == "convs5") cells["state_size"] = width;
  nlohmann::json section = {{"name", name},
                            {"tokenizer", testing::shades(kKnown, 8, 8, 3)},
                            {"core", cells},
                            {"actions", 3},
                            {"action_features", 2}};
  const nlohmann::json coder = {{"depths", {width / 2, width}}, {"blocks", 1}};
  section["encoder"] = section["decoder"] = coder;
  if (causal) section["causal_masking"] = {{"context", 3}};
  if (name == "teco") {
    section.update({{"features", width - 3},
                    {"quantizer", {{"name", "cosine"}, {"size", 8}, {"features", 4}}},
                    {"maskgit",
                     {{"vocabulary", 6},
                      {"features", width},
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

// All states of the core in one row.
at::Tensor core_part(const State& state) {
  std::vector<at::Tensor> all;
  for (const auto& [name, value] : state.items()) {
    if (name.starts_with("core.")) all.push_back(value.flatten());
  }
  return at::cat(all);
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

// Codes are drawn with the same random numbers: what the rounding changes shows in few of them. Each frame goes on from the
// state in float32, so that differences do not grow.
TEST_P(CodeEngines, AreNearlyTheSameInBytes) {
  const auto& [name, core, causal] = GetParam();
  const auto wide = make_model(engine_model(name, core, causal, 32), {1, 8, 8});
  wide->eval();
  const auto exact = wide->as_forecaster()->compile({.batch = kEngineClips}),
             bytes = wide->as_forecaster()->compile({.batch = kEngineClips, .int8 = true});
  ASSERT_NE(bytes, nullptr);
  exact->start(engine_context(), {1, 2});
  bytes->start(engine_context(), {1, 2});
  at::Tensor first;
  for (int64_t k = 0; k < kEngineFrames; ++k) {
    const State before = exact->save();
    bytes->load(before);
    const at::Tensor expected = exact->next(coming(k)), found = bytes->next(coming(k));
    EXPECT_GT((found == expected).to(at::kDouble).mean().item<double>(), 0.8) << k;
    const at::Tensor x = core_part(exact->save()), y = core_part(bytes->save());
    const double allowed = std::string(core) == "convs5" ? 0.03 : 0.1;  // gates multiply what was rounded
    EXPECT_LT((x - y).norm().item<double>(), allowed * x.norm().item<double>()) << k;
    EXPECT_FALSE(x.equal(y)) << "not in bytes";
    if (k == 0) first = found;
  }
  bytes->start(engine_context(), {1, 2});
  EXPECT_TRUE(bytes->next(coming(0)).equal(first)) << "a second start gives the same";
}

// Causal masking hides forecasts from the frame on from which training hides them: those before are seen.
TEST(CodeEngineMasking, BeginsAfterTheContextOfTheTraining) {
  for (const char* name : {"codes", "teco"}) {
    nlohmann::json section = engine_model(name, "convs5", true);
    section["causal_masking"]["context"] = 6;
    const auto model = make_model(section, {1, 8, 8});
    model->eval();
    Forecaster& forecaster = *model->as_forecaster();
    const auto compiled = forecaster.compile({.batch = kEngineClips});
    State state = forecaster.start(engine_context(), {1, 2});  // frames 0 to 3
    compiled->start(engine_context(), {1, 2});
    const char* waits = std::string(name) == "codes" ? "codes" : "latent";
    for (int64_t number = 3; number < 9; ++number) {
      State other = state;
      const at::Tensor value = state.get(waits);
      other.set(waits, value.is_floating_point() ? value + 1 : (value + 1).remainder(kKnown));
      const Forecast next = forecaster.next(state, coming(number)), changed = forecaster.next(other, coming(number));
      const bool seen = !core_part(next.state).equal(core_part(changed.state));
      EXPECT_EQ(seen, number < 6) << name << ", frame " << number;
      EXPECT_TRUE(compiled->next(coming(number)).equal(next.frame)) << name << ", frame " << number;
      EXPECT_EQ(forecaster.frames_at_once(state, at::stack({coming(1), coming(2)}, 1)) > 1, number >= 5);
      state = next.state;
    }
  }
}

// What generation takes for the end of a model: a frame that is NaN.
TEST(CodeEngineMasking, AModelThatHasDivergedGivesNoFrames) {
  for (const char* name : {"codes", "teco"}) {
    const auto model = make_model(engine_model(name, "convs5", false), {1, 8, 8});
    model->eval();
    State state = model->as_forecaster()->start(engine_context(), {1, 2});
    for (const auto& [key, value] : state.items()) {
      if (key.starts_with("core.")) state.set(key, at::full_like(value, std::nan("")));
    }
    const auto compiled = model->as_forecaster()->compile({.batch = kEngineClips});
    compiled->load(state);
    EXPECT_TRUE(compiled->next(coming(0)).isnan().all().item<bool>()) << name;
    EXPECT_TRUE(model->as_forecaster()->next(state, coming(0)).frame.isnan().all().item<bool>()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CodeEngines,
                         ::testing::Values(EngineCase{"codes", "convs5", false}, EngineCase{"codes", "convlstm", true},
                                           EngineCase{"codes", "convgru", false}, EngineCase{"codes", "convrnn", false},
                                           EngineCase{"teco", "convs5", false}, EngineCase{"teco", "convs5", true},
                                           EngineCase{"teco", "convlstm", false}),
                         [](const auto& i) {
                           return std::string(std::get<0>(i.param)) + "_" + std::get<1>(i.param) +
                                  (std::get<2>(i.param) ? "_causal" : "");
                         });

}  // namespace
}  // namespace convssm::models
