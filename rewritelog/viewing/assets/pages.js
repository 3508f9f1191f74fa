// What the scripts of all pages share: plots by name, packed numbers, elements and tables.
"use strict";

const Pages = (() => {
  const MOST_ROWS = 100;
  const byId = (id) => document.getElementById(id);
  const json = (id) => JSON.parse(byId(id).textContent);
  const models = new Map();

  function model(name) {
    for (const one of models.has(name) ? [] : Bokeh.documents) {
      const found = one.get_model_by_name(name);
      if (found) models.set(name, found);
    }
    return models.get(name) || null;
  }

  function bytes(text) {
    const raw = atob(text);
    const found = new Uint8Array(raw.length);
    for (let k = 0; k < raw.length; k++) found[k] = raw.charCodeAt(k);
    return found.buffer;
  }
  const floats = (text) => Array.from(new Float32Array(bytes(text)));
  const integers = (text) => Array.from(new Uint32Array(bytes(text)));

  function element(tag, content, attributes = {}) {
    const made = document.createElement(tag);
    if (content !== null) made.textContent = content;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  function options(select, labels) {
    select.replaceChildren(...labels.map((label, k) => element("option", label, { value: k })));
  }

  // Shows at most 100 of the rows; there can be more of them than are given.
  function fillTable(id, caption, heads, rows, total = rows.length) {
    const shown = rows.slice(0, MOST_ROWS);
    const more = total > shown.length ? `: the first ${shown.length} of ${total}` : "";
    const table = element("table", null);
    table.append(element("caption", caption + more));
    const head = table.createTHead().insertRow();
    head.append(...heads.map((one) => element("th", one, { scope: "col" })));
    const body = table.createTBody();
    for (const row of shown) body.insertRow().append(...row.map((cell) => element("td", cell)));
    byId(id).replaceChildren(table);
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

  // Gives an axis ("x" or "y") of a plot a logarithmic scale or a linear one.
  function setScale(name, axis, logarithmic) {
    const plot = model(name), kind = logarithmic ? "Log" : "Linear";
    const range = plot[`${axis}_range`];
    if (plot[`${axis}_scale`].type !== `${kind}Scale`) {
      range.scale_hint = logarithmic ? "log" : "auto";
      plot[`${axis}_scale`] = made(`${kind}Scale`);
      for (const one of plot[axis === "x" ? "below" : "left"]) {
        if (!("ticker" in one)) continue;
        const ticker = made(`${logarithmic ? "Log" : "Basic"}Ticker`);
        const formatter = logarithmic
          ? made("LogTickFormatter", { ticker }) : made("PrintfTickFormatter", { format: "%.6g" });
        one.setv({ ticker, formatter });
      }
    }
    range.reset();
  }

  function setLabel(name, place, words) {
    for (const one of model(name)[place]) if ("axis_label" in one) one.axis_label = words;
  }

  // A legend names what is in the plot, and nothing of which there is none.
  function showLegend(name) {
    for (const legend of model(name).below) {
      for (const item of legend.items || []) {
        const visible = item.renderers.some((one) => one.data_source.get_length() > 0);
        if (item.visible !== visible) item.visible = visible;
      }
    }
  }

  function whenDrawn(names, then) {
    if (Bokeh.documents.length && names.every(model)) then();
    else setTimeout(() => whenDrawn(names, then), 5);
  }

  function ready() {
    document.documentElement.dataset.ready = "yes";
  }

  return { MOST_ROWS, byId, json, model, floats, integers, element, options, fillTable, isWide, setScale,
    setLabel, showLegend, whenDrawn, ready };
})();
