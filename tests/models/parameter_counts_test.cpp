// The published configs have as many parameters that learn as the published models: rounded, these are the paper's numbers
// where it has them right.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convssm/io/yaml.h"
#include "convssm/models/model.h"
#include "convssm/models/registry.h"
#include "convssm/ssm/initializers.h"

namespace convssm::models {
namespace {

struct CountedConfig {
  const char* config;
  int64_t parameters;
};

class PublishedCount : public ::testing::TestWithParam<CountedConfig> {};

TEST_P(PublishedCount, IsThePublishedOne) {
  const std::string path = std::string(CONVSSM_SOURCE_DIR) + "/configs/" + GetParam().config + ".yaml";
  const nlohmann::json model = io::read_yaml(path)["model"];
  const ssm::WithoutValues without;
  EXPECT_EQ(learned_count(*make_model(model, {1, 64, 64})), GetParam().parameters);
}

INSTANTIATE_TEST_SUITE_P(
    All, PublishedCount,
    ::testing::Values(
        CountedConfig{"dmlab/convs5", 99220336}, CountedConfig{"dmlab/s5", 254275952},
        CountedConfig{"dmlab/transformer", 152050544}, CountedConfig{"dmlab/teco_convs5", 175374000},
        CountedConfig{"dmlab/teco_s5", 180407472}, CountedConfig{"dmlab/teco_transformer", 173088944},
        CountedConfig{"minecraft/teco_convs5", 214754544}, CountedConfig{"minecraft/teco_transformer", 271278832},
        CountedConfig{"habitat/teco_transformer", 386098544}, CountedConfig{"habitat/teco_convs5", 351100784},
        CountedConfig{"moving_mnist/cwvae_300", 20112617}, CountedConfig{"dmlab/cwvae", 111103388},
        CountedConfig{"minecraft/cwvae", 139959316}, CountedConfig{"dmlab/fitvid", 165026536},
        CountedConfig{"minecraft/fitvid", 176006903}, CountedConfig{"dmlab/perceiver_ar", 29689856},
        CountedConfig{"minecraft/perceiver_ar", 166910976}, CountedConfig{"habitat/perceiver_ar", 199731712},
        CountedConfig{"dmlab/latent_fdm", 31342212 + 7 * 512},
        CountedConfig{"minecraft/latent_fdm", 32718468 + 7 * 512},
        CountedConfig{"habitat/latent_fdm", 87063556 + 7 * 512}),
    [](const auto& i) {
      std::string name = i.param.config;
      std::ranges::replace(name, '/', '_');
      return name;
    });

TEST(WithoutValues, ShapesAreThoseOfDrawnModels) {
  const nlohmann::json coder = {{"depths", {4, 8}}};
  for (const char* core : {"convs5", "s5", "transformer", "performer", "convlstm"}) {
    nlohmann::json model = {{"encoder", coder}, {"decoder", coder}, {"core", {{"name", core}, {"features", 8}}}};
    if (std::string(core).ends_with("s5")) model["core"]["state_size"] = 8;
    const auto drawn = make_model(model, {1, 8, 8});
    std::shared_ptr<Model> empty;
    {
      const ssm::WithoutValues without;
      empty = make_model(model, {1, 8, 8});
    }
    const auto expected = drawn->named_parameters(), found = empty->named_parameters();
    ASSERT_EQ(found.size(), expected.size()) << core;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].key(), expected[i].key());
      EXPECT_EQ(found[i].value().sizes(), expected[i].value().sizes()) << found[i].key();
      EXPECT_EQ(found[i].value().scalar_type(), expected[i].value().scalar_type()) << found[i].key();
    }
    // What was not solved is not remembered.
    const auto again = make_model(model, {1, 8, 8});
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(again->parameters()[i].equal(expected[i].value())) << expected[i].key();
    }
  }
}

}  // namespace
}  // namespace convssm::models
