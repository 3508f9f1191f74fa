// Timelines: tables that follow the zoom, and the critical path, whose steps lead to each other.
"use strict";

(() => {
  const { byId, json, model, floats, element, fillTable, percent, time } = Pages;

  // Words about what can be done on a screen, which are not printed.
  const onScreen = (words) => element("span", words, { class: "screen" });

  // Shows the PE time of each layer in view, as far as this run lasts.
  function fillShares(given, shares) {
    const range = model(given.plot).x_range, width = (given.to - given.from) / given.columns;
    const [from, to] = [range.start, range.end].map(
      (end) => Math.min(Math.max(end, given.run[0]), given.run[1]));
    const seconds = given.layers.map((_, layer) => {
      let sum = 0;
      for (let k = 0; k < given.columns; k++) {
        const left = given.from + k * width;
        const covered = Math.min(left + width, to) - Math.max(left, from);
        if (covered > 0) sum += shares[layer * given.columns + k] * covered;
      }
      return sum * given.pes;
    });
    const whole = (to - from) * given.pes;
    const row = (name, value) => [name, percent(whole > 0 ? value / whole : null), time(value)];
    const rows = given.layers.map((name, layer) => row(name, seconds[layer]));
    const busy = seconds.reduce((sum, value, layer) => sum + (given.over[layer] ? 0 : value), 0);
    const lanes = `${given.pes.toLocaleString("en")} ${given.lane[given.pes === 1 ? 0 : 1]}`;
    fillTable(given.table, `From ${time(from, 6)} to ${time(to, 6)}, ${lanes}`,
      ["", "share", `${given.lane[0]} time`], [...rows, row(`all ${given.item}s`, busy)]);
    byId(given.table).querySelector("caption").append(onScreen(" (zoom in the graphs)"));
  }

  function follow(given) {
    const shares = floats(given.shares), range = model(given.plot).x_range;
    const later = Pages.delayed(50, () => fillShares(given, shares));
    for (const end of ["start", "end"]) range.properties[end].change.connect(later);
    fillShares(given, shares);
  }

  function followPath(shown) {
    const steps = model("path-steps"), path = steps.data, plot = model("timeline-0");
    const whole = { x: [plot.x_range.start, plot.x_range.end], y: [plot.y_range.start, plot.y_range.end] };

    function mark(k) {
      for (const row of rows) row.classList.toggle("chosen", row === rows[k]);
      const left = path.start[k], right = left + path.ran[k];
      model("path-chosen").data = { y: [path.y[k]], left: [left], right: [right] };
    }

    // Zooms to a step and its surroundings: ten times its length, and nine rows.
    function zoom(k) {
      const length = Math.max(path.ran[k], (whole.x[1] - whole.x[0]) / 1e5);
      const from = Math.max(whole.x[0], path.start[k] - 4.5 * length);
      plot.x_range.setv({ start: from, end: Math.min(whole.x[1], from + 10 * length) });
      const top = Math.max(0, Math.min(path.y[k] - 4.5, whole.y[0] - 9));
      plot.y_range.setv({ start: Math.min(whole.y[0], top + 9), end: top });
    }

    const heads = ["step", shown.lane[0], shown.item, "name", "start", "takes", "came by"];
    const rows = fillTable("path", "", heads, path.step.map((step, k) => [
      element("button", step, { type: "button" }),
      path.pe[k], path.seb[k], path.name[k], time(path.start[k], 6), time(path.ran[k]),
      path.bytes[k] < 0 ? "" : `${path.bytes[k].toLocaleString("en")} bytes in ${time(path.transit[k])}`,
    ]), path.step.length, Infinity);
    rows.forEach((row, k) => row.addEventListener("click", () => {
      mark(k);
      zoom(k);
      document.querySelector("figure").scrollIntoView({ block: "nearest" });
    }));
    steps.selected.properties.indices.change.connect(() => {
      const [k] = steps.selected.indices;
      if (k === undefined) return;
      mark(k);
      byId("path").scrollTo({ top: rows[k].offsetTop - 60 });
    });
  }

  const panels = json("timelines");
  Pages.whenDrawn(panels.map((given) => given.plot), () => {
    panels.forEach(follow);
    if (byId("path")) followPath(panels[0]);
    Pages.ready();
  });
})();
