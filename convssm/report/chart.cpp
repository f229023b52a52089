// The axes go into a data attribute, so that the page's script can read values back from the drawn lines: every number
// stands in the page once.
#include "convssm/report/chart.h"

#include <fmt/format.h>

#include "convssm/report/html.h"
#include "convssm/report/plot.h"
#include "convssm/report/style.h"

namespace convssm::report {
namespace {

std::string legend(const Chart& chart) {
  std::string out;
  for (const Line* line : legend_lines(chart)) {
    out += fmt::format("<span><i class=\"c{}{}\"></i>{}</span>", line->color % line_colors, stroke_class(line->stroke),
                       escape(line->name));
  }
  return out.empty() ? "" : "<div class=\"legend\">" + out + "</div>";
}

}  // namespace

std::string draw(const Chart& chart) {
  if (!has_points(chart)) return "";
  const Plot plot = make_plot(chart);
  const Axis &x = plot.axes.x, &y = plot.axes.y;
  std::string out =
      fmt::format("<figure class=\"chart\" id=\"{}\">\n<figcaption><h3>{}</h3>", escape(chart.id), escape(chart.title));
  if (!plot.hint.empty()) out += fmt::format("<span class=\"soft small\">{}</span>", escape(plot.hint));
  out += legend(chart) + "</figcaption>\n";
  out += fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" data-x=\"{}\" data-axes=\"{} {} {} {} {} {} {} {} {} "
      "{}\">\n",
      kPlotWidth, kPlotHeight, escape(chart.title), escape(chart.x_label), x.low, x.high, x.begin, x.end, y.low, y.high,
      y.begin, y.end, y.log ? 1 : 0, x.log ? 1 : 0);
  return out + plot.elements + "</svg>\n</figure>\n";
}

}  // namespace convssm::report
