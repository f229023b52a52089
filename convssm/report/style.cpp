// Colours are variables, redefined for dark systems. Charts use the classes c0 to c7 for lines, so that the same SVG
// serves both. The script only reads what is drawn and adds the value under the pointer.
#include "convssm/report/style.h"

namespace convssm::report {

const char* const style_sheet = R"css(
:root {
  color-scheme: light dark;
  --page: #f5f6f8; --card: #ffffff; --ink: #1c2330; --soft: #5d6778; --edge: #dfe3ea; --grid: #e8ebf0;
  --accent: #1f6feb; --good: #1a7f4b; --bad: #c2362b; --wait: #9a6700;
  --c0: #1f6feb; --c1: #d9541e; --c2: #2a9d5c; --c3: #9b4fd3; --c4: #b8860b; --c5: #d6407f; --c6: #1a96a8; --c7: #6b7280;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f141b; --card: #171d26; --ink: #e4e8ee; --soft: #98a2b3; --edge: #2b3340; --grid: #252d39;
    --accent: #58a6ff; --good: #4cc38a; --bad: #ff7b72; --wait: #e3b341;
    --c0: #58a6ff; --c1: #ff8f57; --c2: #4cc38a; --c3: #c08cf0; --c4: #e3b341; --c5: #f778ba; --c6: #4fc4d6; --c7: #9aa4b2;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
}
main { max-width: 1180px; margin: 0 auto; padding: 28px 20px 40px; }
h1 { font-size: 25px; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 34px 0 12px; }
h3 { font-size: 15px; margin: 0; }
.charts + h3, .wide + h3 { margin-top: 30px; }
p { margin: 8px 0; }
.soft { color: var(--soft); }
.small { font-size: 13px; }
.title { display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: center; }
.badge {
  font-size: 13px; font-weight: 600; padding: 2px 11px; border-radius: 999px; border: 1px solid currentColor;
}
.running { color: var(--accent); } .finished { color: var(--good); }
.failed { color: var(--bad); } .stopped { color: var(--wait); }
.bar { height: 8px; border-radius: 4px; background: var(--edge); margin: 16px 0 6px; overflow: hidden; }
.bar div { height: 100%; background: var(--accent); border-radius: 4px; }
.bar.done div { background: var(--good); }
.note {
  background: var(--card); border: 1px solid var(--edge); border-left: 4px solid var(--soft); border-radius: 6px;
  padding: 8px 14px; margin: 14px 0; white-space: pre-wrap; overflow-wrap: anywhere;
}
.note.failed { border-left-color: var(--bad); color: inherit; }
.numbers { display: grid; grid-template-columns: repeat(auto-fill, minmax(148px, 1fr)); gap: 12px; margin: 18px 0 8px; }
.number { background: var(--card); border: 1px solid var(--edge); border-radius: 8px; padding: 10px 13px; }
.number b { display: block; font-size: 20px; line-height: 1.3; font-weight: 600; overflow-wrap: anywhere; }
.number span { color: var(--soft); font-size: 12.5px; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 16px; }
.charts > :only-child { max-width: 760px; }
figure { margin: 0; }
.chart {
  position: relative; background: var(--card); border: 1px solid var(--edge); border-radius: 8px;
  padding: 14px 14px 8px; min-width: 0;
}
.chart figcaption { display: flex; flex-wrap: wrap; gap: 2px 14px; align-items: baseline; margin-bottom: 6px; }
.chart svg { display: block; width: 100%; height: auto; overflow: visible; touch-action: pan-y; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; font-size: 13px; color: var(--soft); }
.legend i { display: inline-block; width: 16px; border-top: 3px solid; vertical-align: 4px; margin-right: 6px; }
.legend i.dashed { border-top-style: dashed; }
.legend i.dotted { border-top-style: dotted; }
.chart text { font-size: 12px; fill: var(--soft); font-variant-numeric: tabular-nums; }
.grid { stroke: var(--grid); stroke-width: 1; }
.axis { stroke: var(--edge); stroke-width: 1.5; }
.line { fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
.line.faint { stroke-width: 1; opacity: .28; }
.line.dashed { stroke-dasharray: 6 4; stroke-linecap: butt; }
.line.dotted { stroke-dasharray: 1.5 4; stroke-linecap: butt; }
.dot { fill: currentColor; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); }
.c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); } .c7 { color: var(--c7); }
.cursor { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 3 3; }
.tip {
  position: absolute; pointer-events: none; background: var(--card); color: var(--ink); border: 1px solid var(--edge);
  border-radius: 6px; padding: 5px 9px; font-size: 12.5px; line-height: 1.45; box-shadow: 0 2px 10px #0003;
  white-space: nowrap; z-index: 1;
}
.tip i { display: inline-block; width: 9px; height: 9px; border-radius: 50%; background: currentColor; margin-right: 6px; }
.wide { overflow-x: auto; background: var(--card); border: 1px solid var(--edge); border-radius: 8px; margin-bottom: 16px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 7px 8px; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { font-weight: 600; color: var(--soft); font-size: 13.5px; }
thead tr:last-child th { border-bottom: 1px solid var(--edge); }
th.left, td.left { text-align: left; }
tbody tr + tr td { border-top: 1px solid var(--grid); }
tbody tr + tr.first td { border-top-color: var(--edge); }
td[rowspan] { vertical-align: top; font-weight: 600; }
td .soft, th .soft { font-size: 11.5px; font-weight: 400; }
.samples { display: flex; flex-wrap: wrap; gap: 16px; align-items: flex-start; }
.sample { background: var(--card); border: 1px solid var(--edge); border-radius: 8px; padding: 12px; max-width: 100%; }
.pair { display: flex; gap: 10px; }
.rows { display: flex; flex-direction: column; justify-content: space-around; font-size: 13px; color: var(--soft); }
.sample img { display: block; min-width: 0; max-width: 100%; height: auto; image-rendering: pixelated; background: #808080; }
.sample figcaption { font-size: 13px; color: var(--soft); margin-top: 6px; overflow-wrap: anywhere; }
.charts + details { margin-top: 16px; }
details { background: var(--card); border: 1px solid var(--edge); border-radius: 8px; padding: 10px 14px; }
summary { cursor: pointer; }
pre { margin: 10px 0 2px; overflow-x: auto; font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
ul { margin: 8px 0; padding-left: 20px; }
footer { margin-top: 30px; color: var(--soft); font-size: 13px; }
@media (max-width: 520px) {
  main { padding: 18px 12px 30px; }
  .chart text { font-size: 15px; }
}
)css";

const char* const script = R"js(
'use strict';
// The values are read back from the drawn lines, so that the page holds every number once.
function format(v) {
  const a = Math.abs(v);
  if (a !== 0 && (a < 1e-3 || a >= 1e6)) return v.toExponential(2);
  return String(Number(v.toPrecision(4)));
}
function nearest(points, x) {
  let best = points[0];
  for (const p of points) if (Math.abs(p[0] - x) < Math.abs(best[0] - x)) best = p;
  return best;
}
for (const chart of document.querySelectorAll('.chart')) {
  const svg = chart.querySelector('svg');
  const [x0, x1, left, right, y0, y1, bottom, top, log, logX] = svg.dataset.axes.split(' ').map(Number);
  const toX = p => { const v = x0 + (p - left) / (right - left) * (x1 - x0); return logX ? 10 ** v : v; };
  const toY = p => { const v = y0 + (p - bottom) / (top - bottom) * (y1 - y0); return log ? 10 ** v : v; };
  const lines = [...svg.querySelectorAll('.line:not(.faint)')].map(line => ({
    name: line.dataset.name, color: line.dataset.color,
    points: (line.getAttribute('d').match(/[\d.]+ [\d.]+/g) || []).map(p => p.split(' ').map(Number))
  })).filter(line => line.points.length);
  if (!lines.length) continue;
  const cursor = document.createElementNS(svg.namespaceURI, 'line');
  cursor.setAttribute('class', 'cursor');
  cursor.setAttribute('y1', top);
  cursor.setAttribute('y2', bottom);
  const tip = document.createElement('div');
  tip.className = 'tip';
  const hide = () => { cursor.remove(); tip.remove(); };
  const show = event => {
    const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale;
    if (x < left - 8 || x > right + 8) return hide();
    const at = nearest(lines.map(line => nearest(line.points, x)), x)[0];
    cursor.setAttribute('x1', at);
    cursor.setAttribute('x2', at);
    svg.append(cursor);
    tip.textContent = svg.dataset.x + ' ' + format(Math.round(toX(at)));
    for (const line of lines) {
      const p = nearest(line.points, at);
      if (Math.abs(p[0] - at) > 4) continue;
      const row = document.createElement('div'), mark = document.createElement('i');
      mark.className = line.color;
      row.append(mark, (lines.length > 1 ? line.name + ' ' : '') + format(toY(p[1])));
      tip.append(row);
    }
    chart.append(tip);
    const frame = chart.getBoundingClientRect(), place = box.left - frame.left + at / scale;
    tip.style.left = Math.max(4, place + (place > frame.width / 2 ? -12 - tip.offsetWidth : 12)) + 'px';
    tip.style.top = box.top - frame.top + 10 + 'px';
  };
  svg.addEventListener('pointermove', show);
  svg.addEventListener('pointerdown', show);
  svg.addEventListener('pointerleave', hide);
}
)js";

}  // namespace convssm::report
