// From a config to a trainer at work. Nothing is written before everything has been found to be possible.
#include "convssm/run/training_run.h"

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/json.h"
#include "convssm/base/log.h"
#include "convssm/io/yaml.h"
#include "convssm/models/registry.h"
#include "convssm/nn/modules.h"
#include "convssm/run/checkpoint.h"
#include "convssm/run/perceptual.h"
#include "convssm/run/tokenizer_section.h"

namespace convssm::run {
namespace {

// The values of the frames must mean what they meant when the run began.
void check_ranges(const io::SafetensorsFile& file, const data::FrameFormat& now) {
  const auto found = file.metadata().find("frames");
  if (found == file.metadata().end()) return;
  const auto before = data::FrameFormat::from_json(parse_json(found->second, "the header of the checkpoint"));
  if (before.same_ranges(now)) return;
  fail(ErrorKind::data, "the run began with values from {} as [-1,1], now the data gives {}; set {}",
       before.range_text(), now.range_text(), before.range_options());
}

// Mistakes in the options of the model are told before the data is read, which can take long.
std::shared_ptr<const data::Dataset> open_data(const Config& config) {
  models::check_model(config.model);
  return make_dataset(config);
}

}  // namespace

TrainingRun::TrainingRun(const Config& given, RunFolder& folder, bool resume, std::function<void()> refresh,
                         at::Device device)
    : dataset_(open_data(given)) {
  const Config config = with_tokenizer(given);
  if (folder.has_checkpoints() && !resume) {
    fail(ErrorKind::usage, "{} holds a run already; go on with it by --resume, or give another --run", folder.path());
  }
  const uint64_t program = memory_.held();
  for (const std::string& line : dataset_->summary()) log_info("data: {}", line);
  dataset_->check();
  nn::take_fewer_groups();  // of other models
  const data::FrameFormat frames = frames_of(config, *dataset_);
  model_ = make_model(config, frames);
  if (!folder.has_checkpoints()) load_tokenizer(*model_, config);
  model_->to(device);
  give_perceptual(*model_);
  if (!folder.has_checkpoints()) {
    for (const std::string& line : nn::take_fewer_groups()) log_info("{}", line);
  }
  recorder_ = std::make_unique<Recorder>(folder, config, *model_, frames, std::move(refresh));
  trainer_ = std::make_unique<train::Trainer>(*model_, dataset_, config.train, config.seed, *recorder_);
  if (folder.has_checkpoints()) load(folder.path("checkpoints"), frames);
  if (trainer_->step() >= config.train.steps) {
    log_info("the run is finished: step {} of {}; train.steps=N goes on", trainer_->step(), config.train.steps);
  }
  trainer_->prepare(program);
  replace_file(folder.path("config.yaml"), io::to_yaml(config.to_json()));
  recorder_->begin(trainer_->step());
}

void TrainingRun::load(const std::string& checkpoints, const data::FrameFormat& frames) {
  const CheckpointRecord record = find_checkpoint(checkpoints);
  const io::SafetensorsFile file(record.tensors);
  check_ranges(file, frames);
  load_arrays(*model_, file);
  trainer_->restore(file, record.step, record.extras);
  set_aside_checkpoints_after(checkpoints, record.step);
  log_info("going on from step {} ({})", record.step, record.tensors);
}

}  // namespace convssm::run
