// The page in a real browser: no message on the console, all sections there, the tooltips work. Skipped where there is
// no Chromium.
#include "tests/browser.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "convssm/report/report.h"
#include "tests/report/fake_run.h"

namespace convssm::report {
namespace {

using testing::find_browser;

struct Visit {
  int exit_code;
  std::string dom;
  std::string console;  // the lines that the page wrote, warnings and errors too
};

Visit visit(const ScratchFolder& folder, const std::string& page) {
  const std::string command = fmt::format(
      "timeout 60 {} --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --user-data-dir='{}' "
      "--enable-logging=stderr --v=0 --dump-dom 'file://{}' > '{}' 2> '{}'",
      find_browser(), folder.path("profile"), folder.path(page), folder.path("dom"), folder.path("messages"));
  const int result = std::system(command.c_str());
  Visit out{WEXITSTATUS(result), read_text(folder.path("dom")), ""};
  std::istringstream lines(read_text(folder.path("messages")));
  for (std::string line; std::getline(lines, line);) {
    if (line.find(":CONSOLE") != std::string::npos) out.console += line + "\n";
  }
  return out;
}

// The page with a script of the test at its end.
void add_script(const ScratchFolder& folder, const std::string& script, const std::string& name) {
  std::string page = read_text(folder.path("report.html"));
  page.insert(page.rfind("</body>"), "<script>" + script + "</script>");
  folder.write(name, page);
}

TEST(Browser, ShowsThePageWithoutAMessage) {
  if (find_browser().empty()) GTEST_SKIP() << "no Chromium on this machine";
  const ScratchFolder folder;
  write_whole_run(folder);
  write_report(folder.path());
  // Points at every chart, then says what a reader would see.
  add_script(folder, R"js(
    for (const svg of document.querySelectorAll('.chart svg')) {
      const box = svg.getBoundingClientRect();
      svg.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width / 2, clientY: box.top + 9}));
    }
    // The page is loaded once its pictures are, and only then handed out: nothing here may end later than this.
    window.addEventListener('load', () => {
      document.body.dataset.images = [...document.images].map(image => image.naturalWidth).join();
    });
    document.body.dataset.charts = document.querySelectorAll('.chart svg').length;
    document.body.dataset.tips = document.querySelectorAll('.tip').length;
    document.body.dataset.overflow = document.documentElement.scrollWidth > window.innerWidth;
  )js",
             "pointed.html");
  const Visit seen = visit(folder, "pointed.html");
  ASSERT_EQ(seen.exit_code, 0);
  EXPECT_EQ(seen.console, "");
  for (const char* part :
       {"<header id=\"overview\"", "<section id=\"training\"", "<section id=\"validation\"",
        "<section id=\"evaluation\"", "<section id=\"samples\"", "<section id=\"config\"", "data-charts=\"9\"",
        "data-tips=\"9\"", "data-overflow=\"false\"", "data-images=\"1,1\"", "# &lt;/script&gt;&lt;script&gt;alert("}) {
    EXPECT_NE(seen.dom.find(part), std::string::npos) << part;
  }
}

TEST(Browser, WouldReportAMistakeOfThePage) {
  if (find_browser().empty()) GTEST_SKIP() << "no Chromium on this machine";
  const ScratchFolder folder;
  write_report(folder.path());
  add_script(folder, "fetch('https://example.invalid/');", "reaching_out.html");
  EXPECT_NE(visit(folder, "reaching_out.html").console.find("Content Security Policy"), std::string::npos);
}

}  // namespace
}  // namespace convssm::report
