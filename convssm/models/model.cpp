// What all models share: who learns when a model does not say, and parts that never do.
#include "convssm/models/model.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/io/checksum.h"
#include "convssm/models/forecaster.h"
#include "convssm/models/tokenizer.h"

namespace convssm::models {

std::vector<Player> Model::players() const {
  Player all{"model", {}};
  for (const auto& item : named_parameters()) {
    if (item.value().requires_grad()) all.parameters.emplace_back(item.key(), item.value());
  }
  return {all};
}

double Model::loss_terms(const Clips& clips) const {
  return static_cast<double>(clips.batch() * std::max<int64_t>(clips.frames() - 1, 1));
}

void Model::check_data(const data::DataFormat&) const {}

TokenizerPart Model::tokenizer_part() {
  Tokenizer* tokenizer = as_tokenizer();
  return tokenizer != nullptr ? TokenizerPart{shared_from_this(), tokenizer} : TokenizerPart{};
}

at::Tensor video_of(Model& model, const Clips& clips) {
  if (clips.video.defined()) return clips.video;
  Tokenizer* tokenizer = model.as_tokenizer();
  if (tokenizer == nullptr || !clips.codes.defined()) {
    fail(ErrorKind::usage, "the clips hold codes, and this model has no tokenizer to make frames of them: {}",
         model.description());
  }
  return tokenizer->decode(clips.codes.to(device_of(model)));
}

std::string hash_of(const TokenizerPart& part) {
  io::Checksum sum;
  const auto add = [&](const std::string& name, const at::Tensor& value) {
    const at::Tensor bytes = value.detach().cpu().contiguous();
    sum.add(std::as_bytes(std::span(name)));
    sum.add({static_cast<const std::byte*>(bytes.data_ptr()), bytes.nbytes()});
  };
  for (const auto& item : part.module->named_parameters()) add(item.key(), item.value());
  for (const auto& item : part.module->named_buffers()) add(item.key(), item.value());
  return sum.text();
}

void Model::train(bool on) {
  torch::nn::Module::train(on);
  for (const auto& part : frozen_) part->eval();
}

void Model::freeze(torch::nn::Module& part) {
  part.eval();
  for (at::Tensor& parameter : part.parameters()) parameter.requires_grad_(false);
}

at::Device device_of(const torch::nn::Module& module) {
  const std::vector<at::Tensor> parameters = module.parameters(), buffers = module.buffers();
  if (!parameters.empty()) return parameters[0].device();
  return buffers.empty() ? at::Device(at::kCPU) : buffers[0].device();
}

int64_t parameter_count(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const at::Tensor& p : module.parameters()) count += p.numel();
  return count;
}

int64_t learned_count(const Model& model) {
  int64_t count = 0;
  for (const Player& player : model.players())
    for (const auto& [name, value] : player.parameters) count += value.numel();
  return count;
}

Forecaster& forecaster_of(Model& model) {
  Forecaster* forecaster = model.as_forecaster();
  if (forecaster == nullptr) fail(ErrorKind::usage, "this model makes no forecasts: {}", model.description());
  return *forecaster;
}

}  // namespace convssm::models
