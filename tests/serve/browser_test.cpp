// The page in a real browser, by its keys: a walk of 50 steps, a rewind, branches, and the states behind them bit for bit those
// of the library's rollouts. Skipped where there is no Chromium.
#include "tests/browser.h"

#include "tests/base/scratch_folder.h"
#include "tests/serve/client.h"
#include "tests/serve/running_host.h"

namespace convssm::serve {
namespace {

using testing::Browser;
using testing::expect_same_state;
using testing::LibraryWalk;
using testing::RunningHost;

// What the keys of the walk do: forward, left, right, and two together.
struct Move {
  std::vector<std::string> keys;
  int64_t action;
};
const std::vector<Move> kMoves = {{{"ArrowUp"}, 1}, {{"ArrowLeft"}, 2}, {{"ArrowUp"}, 1}, {{"ArrowRight"}, 3}};

class Page {
 public:
  explicit Page(bool codes = false) : running_(codes), browser_(folder_.path("profile")) {
    browser_.set_size(1100, 900, false);
    browser_.open_page(running_.host().address());
    EXPECT_TRUE(browser_.wait_for(frame_is(0, 0))) << "the page is there";
    visitor_ = browser_.evaluate("sessionStorage.getItem('visitor')");
    browser_.evaluate("document.getElementById('speed').value = 30");
  }

  static std::string frame_is(int64_t branch, int64_t frame) {
    return fmt::format("document.querySelectorAll('.branch')[{}]?.dataset.frame === '{}'", branch, frame);
  }

  // The keys go down together and up together, after the frame that they led to is there.
  void walk(const Move& move, int64_t to, int64_t branch = 0) {
    for (const std::string& key : move.keys) browser_.key_down(key);
    for (const std::string& key : move.keys) browser_.key_up(key);
    ASSERT_TRUE(browser_.wait_for(frame_is(branch, to))) << to << told();
  }

  std::string told() { return browser_.evaluate("document.body.innerText"); }

  void expect_no_message() {
    for (const std::string& text : browser_.console()) ADD_FAILURE() << text;
  }

  ScratchFolder folder_;
  RunningHost running_;
  Browser browser_;
  std::string visitor_;
};

class ServedPage : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (testing::find_browser().empty()) GTEST_SKIP() << "no Chromium on this machine";
  }
};

TEST_P(ServedPage, WalkedRewoundAndBranchedItHasTheStatesOfTheLibrary) {
  Page page(GetParam());
  std::vector<int64_t> actions;
  for (int64_t k = 0; k < 50; ++k) {
    const Move& move = kMoves[static_cast<size_t>(k) % kMoves.size()];
    page.walk(move, k + 1);
    actions.push_back(move.action);
  }
  models::Model& model = page.running_.model();
  LibraryWalk whole(model, 0, 1);
  whole.walk(actions);
  expect_same_state(page.running_.state(page.visitor_, 0), whole.state());

  page.browser_.press("Backspace", true);
  ASSERT_TRUE(page.browser_.wait_for(Page::frame_is(0, 30))) << page.told();
  LibraryWalk part(model, 0, 1);
  part.walk({actions.begin(), actions.begin() + 30});
  expect_same_state(page.running_.state(page.visitor_, 0), part.state());

  page.browser_.press("b");
  ASSERT_TRUE(page.browser_.wait_for("document.querySelectorAll('.branch').length === 3"));
  page.browser_.evaluate("document.getElementById('all').checked = true");
  for (int64_t k = 0; k < 5; ++k) page.walk({{"ArrowUp"}, 1}, 31 + k, 2);
  for (int64_t i = 0; i < 3; ++i) {
    LibraryWalk branch = i == 0 ? LibraryWalk(model, part.state()) : part.branch(branch_seed(1, 30, i));
    branch.walk({1, 1, 1, 1, 1});
    expect_same_state(page.running_.state(page.visitor_, i), branch.state());
  }
  page.expect_no_message();
}

INSTANTIATE_TEST_SUITE_P(PixelsAndCodes, ServedPage, ::testing::Bool());

TEST(ServedPageKeys, EverythingCanBeDoneByThem) {
  if (testing::find_browser().empty()) GTEST_SKIP() << "no Chromium on this machine";
  Page page;
  Browser& browser = page.browser_;
  const auto frame = [&] {
    return std::stoll(browser.evaluate("document.querySelector('.branch').dataset.frame").get<std::string>());
  };

  browser.key_down("ArrowUp");  // held keys walk on, two of them do both
  browser.key_down("ArrowLeft");
  ASSERT_TRUE(browser.wait_for("Number(document.querySelector('.branch').dataset.frame) >= 6"));
  browser.key_up("ArrowUp");
  browser.key_up("ArrowLeft");

  browser.press(" ");  // time runs, and stops
  const int64_t before = frame();
  ASSERT_TRUE(
      browser.wait_for(fmt::format("Number(document.querySelector('.branch').dataset.frame) > {}", before + 4)));
  ASSERT_TRUE(browser.wait_for("document.getElementById('numbers').textContent.includes('p50 / p95')"));
  browser.press(" ");
  ASSERT_TRUE(browser.wait_for("document.getElementById('status').textContent === 'Paused.'"));

  browser.press("r");  // a recording of three frames
  ASSERT_TRUE(browser.wait_for("document.getElementById('record').ariaPressed === 'true'"));
  for (int i = 0; i < 3; ++i) page.walk({{"ArrowUp"}, 1}, frame() + 1);
  browser.press("r");
  ASSERT_TRUE(browser.wait_for("!document.getElementById('gif').hidden"));
  const auto gif =
      browser.evaluate("fetch(document.getElementById('gif').href).then(r => r.text()).then(t => t.slice(0, 6))");
  EXPECT_EQ(gif, "GIF89a");

  browser.press("b");
  ASSERT_TRUE(browser.wait_for("document.querySelectorAll('.branch').length === 3"));
  browser.press("n");
  ASSERT_TRUE(browser.wait_for("document.querySelectorAll('.branch')[1].ariaPressed === 'true'"));
  page.walk({{"ArrowRight"}, 3}, frame() + 1, 1);
  browser.press("k");
  ASSERT_TRUE(browser.wait_for("document.querySelectorAll('.branch').length === 1"));

  const auto shown = browser.evaluate("document.querySelector('.branch').dataset.frame").get<std::string>();
  browser.evaluate("location.reload()");  // the walk goes on after a reload
  ASSERT_TRUE(browser.wait_for("document.querySelector('.branch')?.dataset.frame === '" + shown + "'"));
  page.expect_no_message();
}

TEST(ServedPageKeys, FitsAPhone) {
  if (testing::find_browser().empty()) GTEST_SKIP() << "no Chromium on this machine";
  Page page;
  page.browser_.set_size(390, 844, true);
  const auto fits = [&] {
    return page.browser_.evaluate(
        "document.documentElement.scrollWidth <= window.innerWidth && window.innerWidth === 390");
  };
  EXPECT_EQ(fits(), true);
  page.browser_.press("b");
  ASSERT_TRUE(page.browser_.wait_for("document.querySelectorAll('.branch').length === 3"));
  EXPECT_EQ(fits(), true);
  const auto box = page.browser_.evaluate(
      "(() => { const b = document.querySelector('#moves .up'); b.scrollIntoView({block: 'center'}); const r = "
      "b.getBoundingClientRect(); "
      "return [r.left + r.width / 2, r.top + r.height / 2, r.width, r.height]; })()");
  EXPECT_GE(box[2], 44);  // for a thumb
  EXPECT_GE(box[3], 44);
  for (const char* type : {"mousePressed", "mouseReleased"}) {
    page.browser_.call("Input.dispatchMouseEvent",
                       {{"type", type}, {"x", box[0]}, {"y", box[1]}, {"button", "left"}, {"clickCount", 1}});
  }
  EXPECT_TRUE(page.browser_.wait_for(Page::frame_is(0, 1))) << page.told();
  page.expect_no_message();
}

}  // namespace
}  // namespace convssm::serve
