// convssm serve as a process: where walks begin, what it says, how it ends.
#include <signal.h>

#include <filesystem>

#include "program.h"
#include "tests/base/scratch_folder.h"
#include "tests/serve/client.h"
#include "tiny_run.h"

namespace convssm {
namespace {

using testing::http;
using testing::WebSocket;

const std::string kPretrained = std::string(CONVSSM_SOURCE_DIR) + "/pretrained/moving-digits-convs5";

// The program while it serves, from its first line to its end.
class Serving {
 public:
  Serving(const ScratchFolder& folder, const std::string& arguments)
      : out_(folder.path("serve.out")), err_(folder.path("serve.err")) {
    std::filesystem::remove(out_);
    std::filesystem::remove(err_);
    child_ = start(words_of("serve --port 0 " + arguments), out_, err_);
    while (read_all(out_).find('\n') == std::string::npos) {
      if (waitpid(child_, nullptr, WNOHANG) != 0) {  // it has ended
        child_ = 0;
        break;
      }
      usleep(20000);
    }
    const std::string address = read_all(out_);
    const size_t colon = address.rfind(':');
    port_ = colon == std::string::npos ? 0 : std::atoi(address.c_str() + colon + 1);
    EXPECT_GT(port_, 0) << said();
  }
  ~Serving() {
    if (child_ > 0) end(SIGKILL);
  }

  int end(int signal) {
    kill(child_, signal);
    return wait_for(std::exchange(child_, 0));
  }
  int port() const { return port_; }
  std::string said() const { return read_all(err_); }

 private:
  std::string out_, err_;
  pid_t child_ = 0;
  int port_ = 0;
};

std::string maze_config(const std::string& data) {
  return "model:\n"
         "  {actions: 6, encoder: {depths: [4]}, decoder: {depths: [4]}, core: {name: convs5, features: 4, state_size: "
         "4}}\n"
         "data: " +
         data +
         "\n"
         "train: {steps: 1, batch: 1, frames: 3, warmup: 1, sample_clips: 1, sample_context: 2, sample_frames: 1}\n"
         "evaluate: {context: 5, horizons: [2], samples: 1}\n";
}

std::string train_maze(const ScratchFolder& folder, const std::string& name, const std::string& data) {
  folder.write(name + ".yaml", maze_config(data));
  const Outcome trained = run("train " + folder.path(name + ".yaml") + " --run " + folder.path(name));
  EXPECT_EQ(trained.code, 0) << trained.err;
  return folder.path(name);
}

TEST(ServeCommand, PlaysAModelWithoutActionsFromItsOwnContext) {
  const ScratchFolder folder;
  Serving serving(folder, kPretrained);
  expect_contains(http(serving.port(), "/"), "HTTP/1.1 200");
  WebSocket socket(serving.port());
  const auto about = socket.ask_json({{"do", "join"}});
  EXPECT_EQ(about["actions"], 0);
  EXPECT_EQ(about["world"], "");
  EXPECT_EQ(socket.ask_json({{"do", "step"}})["branches"][0]["frame"], 1);
  EXPECT_EQ(serving.end(SIGINT), 128 + SIGINT);
  expect_contains(serving.said(), "up to 32 visitors");
  expect_contains(serving.said(), " came, 1 now");
}

TEST(ServeCommand, KnowsTheWorldOfAModelAndOfTheClipsItLearnedFrom) {
  const ScratchFolder folder;
  const std::string model =
      train_maze(folder, "maze", "{name: maze, size: 4, image_size: 16, clips: 3, test_clips: 2}");
  const auto about = [&](const std::string& arguments) {
    Serving serving(folder, arguments);
    WebSocket socket(serving.port());
    const auto words = socket.ask_json({{"do", "join"}});
    EXPECT_EQ(socket.ask_json({{"do", "step"}, {"action", 1}})["truth"], true);
    EXPECT_EQ(serving.end(SIGTERM), 128 + SIGTERM);
    return words["world"].get<std::string>() + "\n" + serving.said();
  };
  std::string told = about(model);
  expect_contains(told, "maze\n");
  expect_contains(told, "4 x 4 cells");
  expect_contains(told, "after 5 frames");
  told = about(model + " --context-frames 2 data.size=5");
  expect_contains(told, "5 x 5 cells");
  expect_contains(told, "after 2 frames");

  const Outcome made =
      run("data make --world maze size=4 image_size=16 --frames 6 --clips 2 --valid-clips 1 --test-clips "
          "1 --out " +
          folder.path("clips"));
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string other = train_maze(folder, "folder", "{name: folder, path: " + folder.path("clips") + "}");
  expect_contains(about(other), "4 x 4 cells");
  std::filesystem::remove_all(folder.path("clips"));
  expect_contains(about(other + " data.name=maze data.size=4 data.image_size=16"), "4 x 4 cells");
  expect_contains(about(other + " --world maze data.image_size=16"), "7 x 7 cells");
  const Outcome lost = run("serve " + other);
  EXPECT_EQ(lost.code, 2);
  expect_contains(lost.err, "--context FILE");
  expect_contains(lost.err, "--world NAME");
  const Outcome small = run("serve " + other + " --world maze");
  EXPECT_EQ(small.code, 3) << small.err;  // of other frames
}

TEST(ServeCommand, SaysWhatIsWrong) {
  const ScratchFolder folder;
  const auto fails = [](const std::string& arguments, int code, const std::string& part) {
    const Outcome out = run("serve " + arguments);
    EXPECT_EQ(out.code, code) << arguments;
    expect_contains(out.err, part);
  };
  fails("", 2, "model is required");
  fails(folder.path("nothing"), 4, "nothing");
  fails(kPretrained + " --port 70000", 2, "0 to 65535");
  fails(kPretrained + " --bind localhost", 2, "in numbers");
  fails(kPretrained + " --visitors 0", 2, "above 0");
  fails(kPretrained + " --memory much", 2, "1GiB");
  fails(kPretrained + " train.steps=3", 2, "train.steps=3");
  fails(kPretrained + " data.size=3", 2, "--world maze");
  fails(kPretrained + " --world maze --context a.npy", 2, "not both");
  fails(kPretrained + " --context a.npy data.size=3", 2, "goes on from a recording");
  fails(kPretrained + " --world maze", 3, "3 channels");
  fails(kPretrained + " --context " + folder.path("a.npy"), 4, "a.npy");
  Serving serving(folder, kPretrained);
  fails(kPretrained + " --port " + std::to_string(serving.port()), 4, "--port 0");
}

TEST(ServeCommand, WarnsIfOthersCanReachIt) {
  const ScratchFolder folder;
  Serving serving(folder, kPretrained + " --bind 0.0.0.0");
  expect_contains(http(serving.port(), "/"), "HTTP/1.1 200");
  EXPECT_EQ(serving.end(SIGINT), 128 + SIGINT);
  expect_contains(serving.said(), "warning: 0.0.0.0 is not a loopback address");
}

}  // namespace
}  // namespace convssm
