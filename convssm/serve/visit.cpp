#include "convssm/serve/visit.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/data/picture.h"
#include "convssm/generate/generate.h"

namespace convssm::serve {
namespace {

uint64_t bytes_of(const Moment& moment) {
  uint64_t bytes = sizeof(Moment) + moment.seen.pixels.size() + moment.truth.pixels.size();
  for (const auto& [name, value] : moment.state.items()) bytes += value.nbytes();
  return bytes;
}

}  // namespace

uint64_t branch_seed(uint64_t seed, int64_t number, int64_t branch) {
  return generate::future_seed(seed, number, branch);
}

Visit::Visit(Scene& scene, int64_t rewind, std::shared_ptr<uint64_t> used)
    : scene_(scene), most_(static_cast<size_t>(rewind) + 1), used_(std::move(used)), temperature_(scene.temperature()) {
  start({});
}

std::shared_ptr<const Moment> Visit::keep_moment(Moment moment) const {
  const uint64_t bytes = bytes_of(moment);
  *used_ += bytes;
  return {new Moment(std::move(moment)), [used = used_, bytes](const Moment* gone) {
            *used -= bytes;
            delete gone;
          }};
}

io::Image Visit::truth_at(const worlds::Pose& pose) const {
  if (!world_) return {};
  const worlds::View& view = world_->view();
  io::Image image{view.width, view.height, 3, std::vector<uint8_t>(static_cast<size_t>(view.bytes()))};
  world_->render(pose, image.pixels);
  return image;
}

void Visit::start(const WalkStart& start) {
  const int64_t count = scene_.beginnings().count();
  if (start.number < 0 || start.number >= count) {
    fail(ErrorKind::usage, "world must be from 0 to {}, got {}", count - 1, start.number);
  }
  const Beginning beginning = scene_.beginnings().at(start.number);
  const at::Tensor last = beginning.context.video.select(0, 0).select(0, beginning.context.frames() - 1);
  models::State state = scene_.start(beginning.context, start.seed);
  start_ = start;
  world_ = scene_.world().empty() ? nullptr : beginning.world;
  recording_.reset();
  chosen_ = 0;
  milliseconds_ = 0;
  rings_.assign(1, {});
  push(rings_[0],
       keep_moment({std::move(state), data::picture(last), truth_at(beginning.pose), beginning.pose, 0, start.seed}));
}

void Visit::push(Ring& ring, std::shared_ptr<const Moment> moment) const {
  if (ring.size() == most_) ring.pop_front();
  ring.push_back(std::move(moment));
}

Moment Visit::after(const Moment& before, const at::Tensor& action) {
  Scene::Made made = scene_.next(before.state, action, temperature_);
  milliseconds_ = made.milliseconds;
  const worlds::Pose pose = world_ ? world_->step(before.pose, action.item<int64_t>()) : before.pose;
  return {std::move(made.state), data::picture(made.frame), truth_at(pose), pose, before.number + 1, before.seed};
}

void Visit::step(const Action& action, bool all) {
  const at::Tensor tensor = scene_.action_tensor(action);
  std::vector<std::shared_ptr<const Moment>> next(rings_.size());
  for (size_t i = 0; i < rings_.size(); ++i) {
    if (all || i == chosen_) next[i] = keep_moment(after(*rings_[i].back(), tensor));
  }
  for (size_t i = 0; i < rings_.size(); ++i) {
    if (next[i]) push(rings_[i], std::move(next[i]));
  }
  if (recording_) recording_->add(now(chosen()).seen, now(chosen()).truth);
}

void Visit::rewind(int64_t frames, bool all) {
  if (frames < 1) fail(ErrorKind::usage, "frames must be 1 or more, got {}", frames);
  for (size_t i = 0; i < rings_.size(); ++i) {
    if (!all && i != chosen_) continue;
    const auto back = std::min<size_t>(static_cast<size_t>(frames), rings_[i].size() - 1);
    rings_[i].erase(rings_[i].end() - static_cast<std::ptrdiff_t>(back), rings_[i].end());
  }
}

void Visit::branch(int64_t count) {
  if (count < 2 || count > kMostBranches) {
    fail(ErrorKind::usage, "count must be from 2 to {}, got {}", kMostBranches, count);
  }
  keep();
  const Moment& here = now(0);
  for (int64_t i = 1; i < count; ++i) {
    Moment other = here;
    other.seed = branch_seed(here.seed, here.number, i);
    other.state = scene_.forecaster().reseeded(here.state, {other.seed});
    Ring ring = rings_[0];
    ring.back() = keep_moment(std::move(other));
    rings_.push_back(std::move(ring));
  }
}

void Visit::choose(int64_t branch) {
  if (branch < 0 || branch >= branches()) {
    fail(ErrorKind::usage, "branch must be from 0 to {}, got {}", branches() - 1, branch);
  }
  chosen_ = static_cast<size_t>(branch);
}

void Visit::keep() {
  Ring ring = std::move(rings_[chosen_]);
  rings_.clear();
  rings_.push_back(std::move(ring));
  chosen_ = 0;
}

void Visit::set_temperature(double value) {
  models::Forecaster& forecaster = scene_.forecaster();
  if (!temperature_) fail(ErrorKind::usage, "this model has no temperature: it draws nothing by one");
  const std::optional<double> before = forecaster.temperature();
  forecaster.set_temperature(value);  // refuses what cannot be one
  forecaster.set_temperature(*before);
  temperature_ = value;
}

void Visit::record(double fps) { recording_ = std::make_unique<Recording>(fps); }

void Visit::stop_recording() {
  if (!recording_) fail(ErrorKind::usage, "nothing is being recorded; start a recording first");
  recording_->close();
}

uint64_t Visit::kept_moments() const {
  uint64_t count = 0;
  for (const Ring& ring : rings_) count += ring.size() - 1;
  return count;
}

bool Visit::forget_oldest() {
  Ring& longest = *std::ranges::max_element(rings_, {}, &Ring::size);
  if (longest.size() < 2) return false;
  longest.pop_front();
  return true;
}

}  // namespace convssm::serve
