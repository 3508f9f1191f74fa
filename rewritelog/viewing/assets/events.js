// Fills the graphs with the data of the event that is chosen in the overview.
"use strict";

const Events = (() => {
  const { byId, text, time, percent, floats, element, fillTable, MOST_ROWS } = Pages;
  const PLAIN = ["measured", "predicted", "low", "high", "mark"];
  const state = { events: [], styles: [], event: 0, parameter: 1, shown: null, load: null };

  function columnsOf(event) {
    const all = floats(event.points), columns = { row: event.rows };
    [...PLAIN, ...event.names.map((_, k) => `p${k + 1}`)].forEach((name, k) => {
      columns[name] = all.slice(k * event.shown, (k + 1) * event.shown);
    });
    return columns;
  }

  function called(event, p) {
    const name = event.names[p - 1];
    return name === `p${p}` ? name : `p${p} (${name})`;
  }

  const named = (event, terms) => terms.replace(/\bp(\d+)\b/g, (p, number) => event.names[number - 1] ?? p);

  const logarithmic = (values) => byId("logarithms").checked && Pages.isWide(values);

  function quantile(sorted, share) {
    return sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(share * (sorted.length - 1))))];
  }

  // Residuals beyond three times the range of nearly all others are drawn at the edge.
  function residualsOf(columns) {
    const ratio = (m, p) => (m === p ? 1 : m / p);  // also of 0 to 0
    const all = columns.measured.map((m, k) => 100 * (ratio(m, columns.predicted[k]) - 1));
    const known = all.filter(Number.isFinite).sort((a, b) => a - b);
    if (!known.length) return { shown: all, exact: all, clipped: 0 };
    const low = quantile(known, 0.02), high = quantile(known, 0.98);
    const width = Math.max(high - low, 1e-6);
    const least = low - 2 * width, most = high + 2 * width;
    let clipped = 0;
    const shown = all.map((value) => {
      if (value < least || value > most) clipped++;
      return Math.min(Math.max(value, least), most);
    });
    return { shown, exact: all, clipped };
  }

  // Only live pages have lines that are left out, and a previous fit.
  function drawPoints(event, columns, residuals) {
    const order = columns.row.map((row) => row + 1);
    const all = {
      measured: columns.measured, predicted: columns.predicted, low: columns.low,
      high: columns.high, residual: residuals.shown,
      x: event.parameters ? columns[`p${state.parameter}`] : order, order, number: columns.row,
    };
    const marked = (mark) => Pages.mapped(all, (values) => values.filter((_, k) => columns.mark[k] === mark));
    const before = { predicted: [], measured: [] };
    if (event.before) Object.assign(before, { predicted: event.before.predicted, measured: columns.measured });
    const finite = columns.predicted.filter((value) => Number.isFinite(value) && value > 0);
    const ends = finite.length
      ? [finite.reduce((a, b) => Math.min(a, b)), finite.reduce((a, b) => Math.max(a, b))] : [];
    Pages.fill({
      "points-data": marked(0), "outliers-data": marked(1), "left-data": marked(2), "before-data": before,
      "diagonal-data": { x: ends, y: ends },
    });
    return all;
  }

  function singleTermsOf(event) {
    return event.singleTerms.filter((one) => one[0] === state.parameter);
  }

  function curvesOf(event) {
    const packed = event.parameters ? event.curves[state.parameter - 1] : "";
    const all = packed ? floats(packed) : [];
    return all.length ? (k) => all.slice(k * event.steps, (k + 1) * event.steps) : null;
  }

  function drawCurves(event) {
    const data = { xs: [], ys: [], label: [], colour: [], dash: [], width: [] };
    const column = curvesOf(event), before = event.before && curvesOf({ ...event, ...event.before });
    const add = (from, k, ...style) =>
      [from(0), from(k), ...style].forEach((value, at) => Object.values(data)[at].push(value));
    const singleTerms = singleTermsOf(event).slice(0, state.styles.length);
    if (before) add(before, 1, "the previous fit", "#9A9A9A", "solid", 5);
    if (column) {
      singleTerms.forEach((one, k) => add(column, k + 3,
        `${named(event, one[1])}: error ${percent(one[3])}`, ...state.styles[k], 2));
      const others = event.parameters > 1 ? ", others at their median" : "";
      const corrected = column(2).some(Number.isFinite);
      if (corrected) add(column, 2, "its formula, not corrected", "#000000", "dashed", 2);
      add(column, 1, `the fit${corrected ? ", corrected" : ""}${others}`, "#000000", "solid", 2);
    }
    Pages.fill({ "curves-data": data });
  }

  function adjust(event, all) {
    const x = event.parameters && logarithmic(all.x) ? "x" : "", y = logarithmic(all.measured) ? "y" : "";
    const below = event.parameters ? called(event, state.parameter) : "number of the line";
    Pages.adjust("predicted", logarithmic([...all.measured, ...all.predicted]) ? "xy" : "");
    Pages.adjust("fit", x + y, { below });
    Pages.adjust("residual", x, { below });
    Pages.adjust("order", "");
  }

  function fillLines(event, all, residuals) {
    const parameter = event.parameters ? [called(event, state.parameter)] : [];
    const rows = all.number.slice(0, MOST_ROWS).map((_, k) => [
      String(all.order[k]), ...parameter.map(() => text(all.x[k], 6)),
      ...["measured", "predicted", "low", "high"].map((column) => time(all[column][k])),
      text(residuals.exact[k], 3),
    ]);
    const edge = residuals.clipped ? ` (${residuals.clipped} residuals are drawn at the edge of the graphs)` : "";
    fillTable("lines", `The lines in the graphs${edge}`,
      ["line", ...parameter, "measured", "predicted", "from", "to", "residual, %"], rows, all.number.length);
  }

  function fillTexts(event) {
    byId("event-name").textContent = event.label;
    byId("event-summary").textContent = event.summary.join("\n");
    byId("event-warnings").replaceChildren(
      ...event.warnings.map((one) => element("p", one, { class: "warning" })));
    const classes = event.coefficients.some((row) => row[0]);
    const heads = ["term", "coefficient, s", "standard error, s"];
    fillTable("coefficients", "Coefficients", classes ? ["class", ...heads] : heads,
      event.coefficients.map(([of, term, ...numbers]) =>
        [...(classes ? [of || "all"] : []), named(event, term), ...numbers]));
    fillTable("single-terms", `Functions of one term in ${called(event, state.parameter)}, on held-out lines`,
      ["term", "R²", "mean error", "seconds ="],
      singleTermsOf(event).map(([, term, r2, error, formula]) =>
        [named(event, term), text(r2, 4), percent(error), named(event, formula)]));
    fillTable("outliers", "Outliers: off from the fit by more than a factor of 2, the furthest first",
      ["line", "parameters", "measured", "predicted", "ratio"],
      event.outliers.map(([where, params, measured, predicted, ratio]) =>
        [where, params, time(measured), time(predicted), text(ratio, 3)]));
  }

  function fillParameters(event) {
    const select = byId("parameter");
    const options = [];
    for (let p = 1; p <= event.parameters; p++) options.push(element("option", called(event, p), { value: p }));
    select.replaceChildren(...options);
    select.value = String(state.parameter);
    select.disabled = event.parameters < 2;
  }

  function markChosen() {
    for (const row of byId("overview").tBodies[0].rows) {
      const mine = Number(row.dataset.e) === state.event;
      row.classList.toggle("chosen", mine);
      for (const cell of row.cells) {
        cell.classList.toggle("chosen", mine && Number(cell.dataset.p) === state.parameter);
      }
    }
  }

  function bestParameter(event) {
    const known = event.singleTerms.filter((one) => one[2] !== null).sort((a, b) => b[2] - a[2]);
    return known.length ? known[0][0] : 1;
  }

  function show(number, parameter) {
    const event = state.events[number];
    state.event = number;
    if (!event) {
      state.parameter = parameter;
      markChosen();
      state.load(number);
      return;
    }
    state.parameter = parameter || bestParameter(event);
    redraw();
    if (state.shown) state.shown(number);
  }

  // Texts come at once; the graphs, which take longer to lay out, right after them.
  function redraw() {
    const event = state.events[state.event];
    fillParameters(event);
    fillTexts(event);
    markChosen();
    delete document.documentElement.dataset.drawn;
    draw();
  }

  const draw = Pages.delayed(0, () => {
    const event = state.events[state.event];
    if (!event) return; // it is loaded first
    const columns = columnsOf(event), residuals = residualsOf(columns);
    const all = drawPoints(event, columns, residuals);
    drawCurves(event);
    adjust(event, all);
    fillLines(event, all, residuals);
    document.documentElement.dataset.drawn = event.label;
    Pages.ready();
  });

  function start() {
    document.addEventListener("chosen", ({ detail }) => {
      show(detail.event, detail.parameter);
      byId("event-name").focus({ preventScroll: true });
      byId("event-name").scrollIntoView({ block: "start" });
    });
    byId("parameter").addEventListener("change", (event) => show(state.event, Number(event.target.value)));
    byId("logarithms").addEventListener("change", redraw);
    if (byId("overview").tBodies[0].rows.length) show(0, 0);
    else Pages.ready();
  }

  function begin() {
    Object.assign(state, Pages.json("events-data"));
    Pages.whenDrawn(["points-data"], start);
  }

  return { begin, show, called, state };
})();

Events.begin();
