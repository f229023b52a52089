// convssm data inspect: what a file or folder holds, and how it would be read.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/terminal.h"
#include "convssm/cli/data.h"
#include "convssm/data/inspect.h"
#include "convssm/io/png.h"

namespace convssm::cli {
namespace {

struct InspectOptions {
  std::string path, key, layout, png, json;
};

constexpr int64_t strip_frames = 16;

void run(const InspectOptions& o) {
  const data::Inspection found = data::inspect(o.path, o.key, o.layout);
  for (const std::string& line : data::inspection_lines(found)) fmt::print("{}\n", printable(line));
  std::fflush(stdout);
  if (!o.json.empty()) replace_file(o.json, data::inspection_json(found).dump(2) + "\n");
  if (!found.problem.empty()) fail(ErrorKind::data, "{}", found.problem);
  if (!o.png.empty()) io::write_png(o.png, data::frame_strip(found, strip_frames));
}

}  // namespace

void add_data_inspect(CLI::App& data) {
  auto o = std::make_shared<InspectOptions>();
  CLI::App* command = data.add_subcommand("inspect", "What a file or folder holds, and how it would be read");
  command->add_option("path", o->path, "A .npy, .npz, .gif, .mp4, .png or IDX file, or a folder")->required();
  command->add_option("--key", o->key, "The array of .npz files that holds the clips; by default it is looked for");
  command->add_option("--layout", o->layout, "THW TCHW THWC NTHW NTCHW NTHWC; by default it is guessed");
  command->add_option("--png", o->png, "Draw frames of the first clip into this file")->type_name("FILE");
  command->add_option("--json", o->json, "Write the findings to this file too")->type_name("FILE");
  command->footer("Example:\n  convssm data inspect recordings --png frames.png");
  command->callback([o] { run(*o); });
}

}  // namespace convssm::cli
