// What all pages share: plots by name, times in SI units, packed numbers, tables, paper.
"use strict";

const Pages = (() => {
  const MOST_ROWS = 100;
  const UNITS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  const PAPER_WIDTH = 700, TEXT_HEIGHT = 11; // A4 and Letter upright, between usual margins
  const NARROW = 600, MOST_LETTERS = 28;
  const byId = (id) => document.getElementById(id);
  const json = (id) => JSON.parse(byId(id).textContent);
  const models = new Map();

  function model(name) {
    for (const root of models.has(name) ? [] : Bokeh.documents) {
      const named = root.get_model_by_name(name);
      if (named) models.set(name, named);
    }
    return models.get(name) || null;
  }

  // Texts of a number, and of a time in seconds, with `digits` significant digits.
  const text = (value, digits = 4) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    const size = Math.abs(value);
    if (size >= 10 ** digits && size < 1e9) return Math.round(value).toLocaleString("en");
    return String(Number(Number(value).toPrecision(digits)));
  };
  function time(value, digits = 4) {
    if (value === null || value === undefined || !Number.isFinite(value)) return text(value);
    const size = Math.abs(Number(value.toPrecision(digits)));
    const [unit, name] = UNITS.find(([least]) => size >= least) || (size ? UNITS.at(-1) : UNITS[0]);
    return `${text(value / unit, digits)}\u00a0${name}`;
  }

  const percent = (value) =>
    (value === null || Number.isNaN(value) ? "–" : `${(100 * value).toFixed(1)}\u00a0%`);

  const mapped = (object, change) =>
    Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));

  // Returns a function that calls `then` once, `ms` after the last of its own calls.
  function delayed(ms, then) {
    let waiting = null;
    return () => {
      clearTimeout(waiting);
      waiting = setTimeout(then, ms);
    };
  }

  const bytes = (packed) => Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0)).buffer;
  const floats = (packed) => Array.from(new Float32Array(bytes(packed)));

  function element(tag, content, attributes = {}) {
    const made = document.createElement(tag);
    if (content !== null) made.append(content);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  // Shows at most `most` of the rows, and returns them; `total` also counts rows that are not given.
  // Without rows there is no table.
  function fillTable(id, caption, heads, rows, total = rows.length, most = MOST_ROWS) {
    const shown = rows.slice(0, most), table = element("table", null);
    const more = total > shown.length ? `: the first ${shown.length} of ${total}` : "";
    if (caption) table.append(element("caption", caption + more));
    const head = table.createTHead().insertRow(), body = table.createTBody();
    head.append(...heads.map((words) => element("th", words, { scope: "col" })));
    for (const row of shown) body.insertRow().append(...row.map((cell) => element("td", cell)));
    byId(id).replaceChildren(...(rows.length ? [table] : []));
    return [...body.rows];
  }

  function isWide(values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (!Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return low > 0 && high > 100 * low;
  }

  const made = (kind, attributes = {}) => new (Bokeh.Models.get(kind))(attributes);

  // Gives an axis of a plot ticks, and labels that are times if the axis is one of seconds.
  function setTicks(axis, logarithmic) {
    const narrow = innerWidth < NARROW ? { desired_num_ticks: 3 } : {};
    const ticker = made(`${logarithmic ? "Log" : "Basic"}Ticker`, narrow);
    const inSeconds = axis.tags.includes("seconds");
    const formatter = logarithmic && !inSeconds
      ? made("LogTickFormatter", { ticker }) : made("PrintfTickFormatter", { format: "%.6g" });
    if (inSeconds) formatter.doFormat = (ticks) => ticks.map((tick) => time(tick, 6));
    axis.setv({ ticker, formatter });
  }

  function setScale(plot, axis, logarithmic) {
    const kind = logarithmic ? "Log" : "Linear", range = plot[`${axis}_range`];
    if (plot[`${axis}_scale`].type !== `${kind}Scale`) {
      range.scale_hint = logarithmic ? "log" : "auto";
      plot[`${axis}_scale`] = made(`${kind}Scale`);
      for (const side of plot[axis === "x" ? "below" : "left"]) {
        if ("ticker" in side) setTicks(side, logarithmic);
      }
    }
    range.reset();
    // A single value is in the middle of a range as large as itself.
    const first = plot.renderers.map(({ glyph, data_source }) => data_source.data[glyph[axis]?.field]?.[0]);
    const size = Math.max(...first.filter(Number.isFinite).map(Math.abs));
    if (!logarithmic && size > 0) range.default_span = size;
  }

  // Puts columns into the data sources that the page has, by their names.
  function fill(sources) {
    for (const [name, data] of Object.entries(sources)) {
      const source = model(name);
      if (source) source.data = data;
    }
  }

  // Adapts a plot to new data: which axes are logarithmic, their labels by place, and the legend,
  // which hides items without data.
  function adjust(name, logarithmic, labels = {}) {
    const plot = model(name);
    for (const axis of ["x", "y"]) setScale(plot, axis, logarithmic.includes(axis));
    for (const [place, words] of Object.entries(labels)) {
      for (const side of plot[place]) if ("axis_label" in side) side.axis_label = words;
    }
    for (const item of plot.below.flatMap((side) => side.items ?? [])) {
      item.visible = item.renderers.some((drawn) => drawn.data_source.get_length() > 0);
    }
  }

  // Cuts the middle out of a label of more than `most` letters.
  const cut = (label, most) =>
    (label.length > most ? `${label.slice(0, most / 2)}…${label.slice(1 - most / 2)}` : label);

  function whenDrawn(names, then) {
    if (Bokeh.documents.length && names.every(model)) then();
    else setTimeout(() => whenDrawn(names, then), 5);
  }

  function ready() {
    document.documentElement.dataset.ready = "yes";
  }

  if (typeof Bokeh !== "undefined") whenDrawn([], () => {
    for (const root of Bokeh.documents) {
      for (const one of root.all_models) {
        if (one.tags.includes("seconds")) setTicks(one, one.type === "LogAxis");
        if (innerWidth < NARROW && one.major_label_overrides) {
          const labels = [...one.major_label_overrides];
          one.major_label_overrides = new Map(labels.map(([at, label]) => [at, cut(label, MOST_LETTERS)]));
        }
      }
    }
  });

  // Plots keep their width on the screen, so the page is scaled down for paper, and text enlarged.
  addEventListener("beforeprint", () => {
    const zoom = Math.min(1, PAPER_WIDTH / document.body.clientWidth);
    document.body.style.zoom = zoom;
    document.body.style.setProperty("--text-on-paper", `${TEXT_HEIGHT / zoom}px`);
  });
  addEventListener("afterprint", () => {
    document.body.style.zoom = "";
  });

  return { MOST_ROWS, byId, json, model, text, time, percent, mapped, delayed, floats, element,
    fillTable, isWide, fill, adjust, whenDrawn, ready };
})();
