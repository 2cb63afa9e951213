"""The style sheet of the page: system fonts, and rules for small screens and for print."""

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; background: #fff; color: #1c1c1c; line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 74rem; margin: 0 auto; padding: 1rem 1rem 4rem; overflow-wrap: break-word; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 1rem 0 0.5rem; }
h2 { font-size: 1.4rem; margin: 2.5rem 0 0.5rem; padding-top: 1rem; border-top: 2px solid #1c1c1c; }
h3 { font-size: 1.1rem; margin: 2rem 0 0.25rem; }
p { margin: 0.4rem 0 0.8rem; max-width: 46rem; }
.lead { font-size: 1.15rem; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.2rem 1.5rem; padding: 0; margin: 0.5rem 0;
  list-style: none; }
a { color: #0b4f8a; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: 0.88rem; margin: 0.5rem 0;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: 0.25rem 0; color: #444; }
th, td { padding: 0.3rem 0.7rem 0.3rem 0; text-align: right; vertical-align: top;
  border-bottom: 1px solid #ddd; white-space: nowrap; }
thead th { border-bottom: 1.5px solid #1c1c1c; vertical-align: bottom; white-space: normal;
  min-width: 4rem; }
th:first-child, table:has(td.words) th { text-align: left; }
tbody th { font-weight: 600; }
td.words { text-align: left; white-space: normal; min-width: 14rem; }
.mark { display: inline-block; padding: 0 0.4em; border: 1px solid #a85b00; border-radius: 0.3em;
  color: #8a4b00; font-size: 0.8em; font-weight: 400; }
.warning { border-left: 4px solid #a85b00; padding: 0.5rem 0.9rem; background: #fff7ec;
  margin: 1rem 0; }
.note { color: #444; }
figure { margin: 0.6rem 0 1.2rem; }
figure img { display: block; width: 100%; max-width: 46rem; height: auto; }
figure.explored > .scroll { display: none; }
.chart svg { display: block; width: 100%; max-width: 46rem; height: auto; touch-action: pan-y;
  font-size: 12px; cursor: crosshair; user-select: none; }
.chart .grid { stroke: #e4e4e4; }
.chart .guide { stroke: #444; stroke-dasharray: 3 3; }
.controls { display: flex; flex-wrap: wrap; gap: 0.3rem 1rem; font-size: 0.92rem;
  align-items: center; }
.controls label { display: inline-flex; gap: 0.3rem; align-items: center; }
.controls button, .controls select { font: inherit; padding: 0.1rem 0.5rem; }
.swatch { width: 1em; height: 0.35em; }
.readout { font-size: 0.9rem; min-height: 3em; font-variant-numeric: tabular-nums; }
.unfold { font-size: 0.92rem; margin: 0 0 1.2rem; }
.unfold ul { margin: 0.2rem 0 0.2rem 0.4rem; padding-left: 1rem; list-style: none;
  border-left: 1px solid #ddd; }
.unfold p { margin: 0; padding-left: 1rem; }
.unfold summary { cursor: pointer; }
figcaption { color: #444; font-size: 0.92rem; max-width: 46rem; }
pre { background: #f5f5f5; padding: 0.6rem 0.8rem; overflow-x: auto; font-size: 0.85rem; }
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1rem; font-size: 0.92rem; }
dt { font-weight: 600; }
dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 34rem) {
  h1 { font-size: 1.45rem; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: 0.4rem; }
}
@media print {
  .chart { display: none; }
  figure.explored > .scroll { display: block; }
  body { font-size: 9.5pt; }
  main { max-width: none; padding: 0; }
  nav { display: none; }
  details::details-content { content-visibility: visible; block-size: auto; }
  a { color: inherit; text-decoration: none; }
  h2 { break-before: page; }
  #results h2 { break-before: auto; }
  h2, h3, caption { break-after: avoid; }
  figure, table, tr, .warning { break-inside: avoid; }
  figure img { min-width: 0 !important; max-width: 15cm; }
  .scroll { overflow: visible; }
  table { font-size: 7.5pt; }
  th, td { white-space: normal; }
  pre { white-space: pre-wrap; border: 1px solid #ccc; }
}
"""
