#include "convssm/train/reporter.h"

#include <algorithm>
#include <filesystem>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/folder.h"
#include "convssm/base/log.h"

namespace convssm::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kStatusInterval = std::chrono::seconds(5);

void add_scalars(io::EventWriter& events, const std::string& group, int64_t step, const nlohmann::json& numbers) {
  for (const auto& item : numbers.items()) events.scalar(group + "/" + item.key(), step, item.value().get<double>());
}

}  // namespace

Reporter::Reporter(RunFolder& folder, int64_t first_step, nlohmann::json about, std::function<void()> refresh)
    : folder_(folder),
      about_(std::move(about)),
      refresh_(std::move(refresh)),
      events_(folder.path("tensorboard"), std::filesystem::exists(folder.path("tensorboard")) ? first_step + 1 : -1) {
  folder.forget_log_after(first_step);
  make_folder(folder.path("samples"));
}

void Reporter::attempt(const char* what, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    log_warning("{} could not be written: {}", what, error.what());
  }
}

void Reporter::line(int64_t step, const nlohmann::json& scores, const nlohmann::json& speeds) {
  attempt("a line of the log", [&] {
    nlohmann::json all = {{"step", step}};
    all.update(scores);
    all.update(speeds);
    folder_.log(all);
    add_scalars(events_, "train", step, scores);
    add_scalars(events_, "speed", step, speeds);
    events_.flush();
  });
}

void Reporter::samples(int64_t step, const Validation& validation) {
  attempt("the samples", [&] {
    folder_.log({{"step", step}, {"validation", validation.scores}});
    add_scalars(events_, "validation", step, validation.scores);
    events_.image("validation/truth above, forecast below", step, strip(validation));
    events_.flush();
    save_pictures(validation, folder_.path(fmt::format("samples/step-{:06}", step)));
  });
}

void Reporter::status(const std::string& state, int64_t step, double seconds, const std::string& note) {
  if (state == "running" && Clock::now() < next_status_) return;
  const auto begin = Clock::now();
  nlohmann::json status = about_;
  status.update({{"state", state}, {"step", step}, {"seconds", seconds}, {"note", note}});
  attempt("the status", [&] {
    replace_file(folder_.path("status.json"), status.dump(1) + "\n");
    if (refresh_) refresh_();
  });
  // The report of a long run takes a while to write: at most a fiftieth of the time goes into it.
  const auto now = Clock::now();
  next_status_ = now + std::max<Clock::duration>(kStatusInterval, 50 * (now - begin));
}

}  // namespace convssm::train
