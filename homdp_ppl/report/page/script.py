"""The script of the page: it turns figures with data into charts that can be explored.

It needs no network and no library. Without it, the page shows the same curves as pictures.
"""

SCRIPT = r"""
"use strict";
(function () {
  const NS = document.documentElement.namespaceURI.replace("1999/xhtml", "2000/svg");
  const WIDEST = 700, LEFT = 62, RIGHT = 28, TOP = 12, BOTTOM = 46;
  const make = (name, attributes, parent) => {
    const made = document.createElementNS(NS, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (parent) parent.appendChild(made);
    return made;
  };
  const element = (name, words, parent) => {
    const made = document.createElement(name);
    if (words) made.textContent = words;
    if (parent) parent.appendChild(made);
    return made;
  };
  const shown = (value) => {
    const size = Math.abs(value);
    if (size < 1e-9) return "0";
    if (size >= 1000 && size < 1e7) return Math.round(value).toLocaleString("en");
    return String(Number(value.toPrecision(3)));
  };
  const ticks = (low, high, log) => {
    const found = [];
    if (log) {
      const decades = Math.log10(high / low);
      for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k++)
        for (const m of decades <= 2 ? [1, 2, 5] : [1]) {
          const value = m * Math.pow(10, k);
          if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
        }
      return found;
    }
    const raw = (high - low) / 6 || 1, power = Math.pow(10, Math.floor(Math.log10(raw)));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= raw);
    for (let k = Math.ceil(low / step); k * step <= high + 1e-9 * step; k++) found.push(k * step);
    return found;
  };


  function chart(figure) {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const hidden = new Set(), axes = { x: "linear", y: "linear" };
    let range = null, W = WIDEST, H = 400;
    const box = element("div");
    box.className = "chart";
    figure.insertBefore(box, figure.firstChild);
    figure.classList.add("explored");

    const controls = element("div", "", box);
    controls.className = "controls";
    data.rules.forEach((rule) => {
      const label = element("label", "", controls), check = element("input", "", label);
      check.type = "checkbox";
      check.checked = true;
      check.addEventListener("change", () => {
        if (check.checked) hidden.delete(rule.name); else hidden.add(rule.name);
        draw();
      });
      const swatch = element("span", "", label);
      swatch.className = "swatch";
      swatch.style.background = rule.colour;
      element("span", rule.name, label);
    });
    ["x", "y"].forEach((axis) => {
      const label = element("label", axis === "x" ? "episodes: " : "regret: ", controls);
      const select = element("select", "", label);
      select.setAttribute("data-axis", axis);
      ["linear", "log"].forEach((name) => { element("option", name, select).value = name; });
      select.addEventListener("change", () => { axes[axis] = select.value; draw(); });
    });
    const reset = element("button", "Show all", controls);
    reset.type = "button";
    reset.addEventListener("click", () => { range = null; draw(); });
    const save = element("button", "Download CSV", controls);
    save.type = "button";
    save.addEventListener("click", () => {
      const quoted = (name) => '"' + name.replace(/"/g, '""') + '"';
      const lines = ["rule,episode,mean,low,high"];
      data.rules.forEach((rule) => rule.x.forEach((x, k) => lines.push(
        [quoted(rule.name), x, rule.mean[k], rule.low[k], rule.high[k]].join(","))));
      const link = element("a");
      link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
      link.download = data.file;
      link.click();
      URL.revokeObjectURL(link.href);
    });

    const svg = make("svg", { role: "img", "aria-label": data.title });
    box.appendChild(svg);
    const readout = element("p", "Move over the chart to read values; drag to zoom.", box);
    readout.className = "readout";
    readout.setAttribute("aria-live", "polite");
    let across = null, up = null, drawn = [];

    function scale(low, high, from, to, log) {
      const f = log ? Math.log10 : (v) => v, a = f(low), b = f(high);
      const map = (v) => from + ((f(v) - a) / (b - a || 1)) * (to - from);
      map.back = (p) => {
        const v = a + ((p - from) / (to - from)) * (b - a);
        return log ? Math.pow(10, v) : v;
      };
      return map;
    }

    function draw() {
      svg.replaceChildren();
      // On a narrow screen fewer units, so that the words keep their size.
      W = Math.min(Math.max(box.clientWidth, 280), WIDEST);
      H = Math.max(Math.round((W * 4) / 7), 240);
      svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
      drawn = data.rules.filter((rule) => !hidden.has(rule.name));
      const all = data.rules.flatMap((rule) => rule.x);
      let [left, right] = range || [axes.x === "log" ? Math.min(...all) : 0, Math.max(...all)];
      if (axes.x === "log" && left <= 0) left = Math.min(...all);
      const inside = (rule) => rule.x.map((x, k) => k).filter(
        (k) => rule.x[k] >= left - 1e-9 && rule.x[k] <= right + 1e-9);
      const values = drawn.flatMap(
        (rule) => inside(rule).flatMap((k) => [rule.low[k], rule.high[k]]));
      const positive = values.filter((v) => v > 1e-9);
      let bottom = Math.min(0, ...values), top = Math.max(...values, bottom + 1e-9);
      if (axes.y === "log") {
        bottom = Math.min(...positive, 1);
        top = Math.max(...positive, bottom * 10);
      }
      across = scale(left, right, LEFT, W - RIGHT, axes.x === "log");
      up = scale(bottom, top, H - BOTTOM, TOP, axes.y === "log");
      const height = (v) => up(axes.y === "log" ? Math.max(v, bottom) : v);
      ticks(left, right, axes.x === "log").forEach((v) => {
        const x = across(v);
        make("line", { x1: x, x2: x, y1: TOP, y2: H - BOTTOM, class: "grid" }, svg);
        make("text", { x, y: H - BOTTOM + 16, "text-anchor": "middle" }, svg)
          .textContent = shown(v);
      });
      ticks(bottom, top, axes.y === "log").forEach((v) => {
        const y = up(v);
        make("line", { x1: LEFT, x2: W - RIGHT, y1: y, y2: y, class: "grid" }, svg);
        make("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, svg).textContent = shown(v);
      });
      const note = (axis) => (axes[axis] === "log" ? " (log scale)" : "");
      make("text", { x: (LEFT + W - RIGHT) / 2, y: H - 8, "text-anchor": "middle" }, svg)
        .textContent = "episodes" + note("x");
      const side = make("text", { transform: `translate(14 ${(TOP + H - BOTTOM) / 2}) rotate(-90)`,
        "text-anchor": "middle" }, svg);
      side.textContent = "regret" + note("y");
      drawn.forEach((rule) => {
        const at = inside(rule), point = (k, row) => `${across(rule.x[k])},${height(row[k])}`;
        if (!at.length) return;
        const band = [...at.map((k) => point(k, rule.high)),
          ...at.slice().reverse().map((k) => point(k, rule.low))];
        make("polygon", { points: band.join(" "), fill: rule.colour, "fill-opacity": 0.15 }, svg);
        make("polyline", { points: at.map((k) => point(k, rule.mean)).join(" "), fill: "none",
          stroke: rule.colour, "stroke-width": 2, "data-rule": rule.name }, svg);
      });
    }

    const place = (event) => {
      const frame = svg.getBoundingClientRect();
      return ((event.clientX - frame.left) / frame.width) * W;
    };
    const guide = (x) => {
      svg.querySelectorAll(".guide").forEach((line) => line.remove());
      if (x !== null) make("line", { x1: x, x2: x, y1: TOP, y2: H - BOTTOM, class: "guide" }, svg);
    };
    let start = null;
    svg.addEventListener("pointermove", (event) => {
      const p = Math.min(Math.max(place(event), LEFT), W - RIGHT), at = across.back(p);
      const nearest = (rule) => rule.x.reduce(
        (best, x, k) => (Math.abs(x - at) < Math.abs(rule.x[best] - at) ? k : best), 0);
      const words = drawn.map((rule) => {
        const k = nearest(rule);
        const band = `${shown(rule.low[k])} to ${shown(rule.high[k])}`;
        return `${rule.name} ${shown(rule.mean[k])} (${band})`;
      });
      if (!words.length) return;
      guide(p);
      readout.textContent = `Episode ${shown(drawn[0].x[nearest(drawn[0])])}: ${words.join("; ")}`;
    });
    svg.addEventListener("pointerleave", () => guide(null));
    svg.addEventListener("pointerdown", (event) => { start = place(event); });
    svg.addEventListener("pointerup", (event) => {
      const end = place(event);
      if (start !== null && Math.abs(end - start) > 12) {
        const ends = [start, end].map((p) => across.back(Math.min(Math.max(p, LEFT), W - RIGHT)));
        range = [Math.min(...ends), Math.max(...ends)];
        draw();
      }
      start = null;
    });
    window.addEventListener("resize", draw);
    draw();
  }
  document.querySelectorAll("figure[data-chart]").forEach(chart);
})();
"""
