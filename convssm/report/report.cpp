// The page is built in memory and replaces the old one in a single step, so that a browser that reloads it during
// training never sees half of it.
#include "convssm/report/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "convssm/base/atomic_file.h"
#include "convssm/report/html.h"
#include "convssm/report/run_view.h"
#include "convssm/report/sections.h"

namespace convssm::report {
namespace {

// As text they take a third more: the page stays below 2 MB.
constexpr uint64_t kSampleBytes = 1'200'000;
constexpr int kRefreshSeconds = 10;

std::string footer(bool running) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("<footer>Written {:%Y-%m-%d %H:%M:%S} UTC by convssm.{}</footer>\n", fmt::gmtime(now),
                     running ? fmt::format(" Loads itself again every {} seconds.", kRefreshSeconds) : "");
}

}  // namespace

void write_report(const std::string& run_folder) {
  const RunView run = read_run_view(run_folder, kSampleBytes);
  const bool running = text_at(run.status, "state") == "running";
  const std::string body = overview(run) + sample_images(run) + evaluation(run) + training_curves(run) +
                           validation_curves(run) + commands(run) + configuration(run) + notes(run) + footer(running);
  replace_file(run_folder + "/report.html", render({page_title(run), body, running ? kRefreshSeconds : 0}));
}

}  // namespace convssm::report
