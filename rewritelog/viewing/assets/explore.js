// What changes a fit: formulas, options, lines left out, undo; and the conversation with the server.
"use strict";

(() => {
  const { byId, element, fillTable, text, time } = Pages;
  const { percent } = Events;
  const OPTIONS = ["weights", "loss", "exact_match"];
  const given = Pages.json("explore-data");
  const states = [];
  let left = new Set();
  let busy = false;
  let asked = false; // whether a fit was asked for that has not begun
  let again = false; // whether to fit once more when the fit in progress has ended
  let fitting = given.fitting;

  const address = location.origin.replace("http:", "ws:") + location.pathname + `socket?version=${given.version}`;
  const socket = new WebSocket(address);

  function send(message) {
    const text = JSON.stringify(message);
    if (socket.readyState === WebSocket.OPEN) socket.send(text);
    else if (socket.readyState === WebSocket.CONNECTING) {
      socket.addEventListener("open", () => socket.send(text), { once: true });
    }
  }

  function say(words) {
    byId("status").textContent = words;
  }

  const lines = () => byId("terms").value.split("\n").map((line) => line.trim()).filter(Boolean);

  const choices = () => ({
    terms: lines(),
    category: byId("category").value.trim(),
    left_out: [...left].sort((a, b) => a - b),
    ...Object.fromEntries(OPTIONS.map((name) => [name, byId(name).value])),
  });

  const sendChoices = (kind) => send({ do: kind, event: Events.state.event, choices: choices() });

  function refit() {
    byId("terms-error").textContent = "";
    again = busy || asked;
    if (again) return;
    asked = true;
    sendChoices("refit");
  }

  // ---- what is shown of an event

  function candidates(event) {
    const terms = new Set(["1", ...states[Events.state.event].terms, ...event.singleTerms.map((one) => one[1])]);
    for (let a = 1; a <= event.parameters; a++) {
      for (let b = a + 1; b <= Math.min(event.parameters, 6); b++) terms.add(`p${a}*p${b}`);
    }
    return [...terms];
  }

  function fillCandidates(event) {
    const chosen = new Set(lines());
    const box = byId("candidates");
    box.replaceChildren(element("legend", "candidate terms"));
    for (const term of candidates(event)) {
      const tick = element("input", null, { type: "checkbox", value: term });
      const label = element("label", tick);
      tick.checked = chosen.has(term);
      tick.addEventListener("change", () => ticked(term, tick.checked));
      label.append(` ${term}`);
      box.append(label, " ");
    }
  }

  function ticked(term, on) {
    const terms = lines().filter((one) => one !== term);
    if (on) terms.push(term);
    byId("terms").value = terms.join("\n");
    refit();
  }

  function fillPredict(event) {
    const form = element("form", "time at "), attributes = { type: "text", inputmode: "decimal", size: 9 };
    const fields = event.names.map((_, k) => element("input", null, { ...attributes, "aria-label": `p${k + 1}` }));
    fields.forEach((field, k) => {
      const label = element("label", `${Events.called(event, k + 1)} `);
      label.append(field);
      form.append(label);
    });
    const button = element("button", "predict", { type: "submit" });
    form.append(button, " ", element("output", "", { id: "time-at" }));
    form.addEventListener("submit", (submitted) => {
      submitted.preventDefault();
      const params = fields.map((field) => Number(field.value.trim() || "NaN"));
      if (!params.every(Number.isFinite)) {
        byId("time-at").textContent = "each parameter must be a number";
        return;
      }
      send({ do: "predict", event: Events.state.event, params });
    });
    byId("predict-at").replaceChildren(form);
  }

  function number(name, value) {
    return name.startsWith("R²") ? text(value, 4) : percent(value);
  }

  function fillComparison(event, state) {
    const before = event.before ? event.before.numbers : null;
    const heads = before ? ["", "previous fit", "current fit"] : ["", "current fit"];
    const rows = Object.entries(state.numbers).map(([name, value]) =>
      [name, ...(before ? [number(name, before[name])] : []), number(name, value)]);
    fillTable("old-and-new", before ? "The previous fit, and the current one" : "The current fit",
      heads, rows);
  }

  function showLeftOut() {
    byId("left-out-count").textContent = left.size ? `${left.size} left out` : "";
  }

  function shown(place) {
    const event = Events.state.events[place], state = states[place];
    byId("terms").value = state.choices.terms.join("\n");
    byId("category").value = state.choices.category;
    for (const name of OPTIONS) byId(name).value = state.choices[name];
    left = new Set(state.choices.left_out);
    byId("terms-error").textContent = "";
    fillCandidates(event);
    fillPredict(event);
    fillComparison(event, state);
    showLeftOut();
  }

  // ---- lines chosen in the graphs

  function chosenRows() {
    const rows = new Set();
    for (const name of ["points", "outliers", "left"]) {
      const source = Pages.model(`${name}-data`);
      for (const k of source.selected.indices) rows.add(source.data.number[k]);
    }
    return rows;
  }

  function leaveOut(rows) {
    left = rows;
    showLeftOut();
    refit();
  }

  // ---- what the server says

  function taken(message) {
    Events.state.events[message.event] = message.data;
    states[message.event] = message.state;
    setRow(message.event, message.data.row, message.state.changed);
    steps(message.steps);
  }

  const rowOf = (place) => document.querySelector(`#overview tbody tr[data-e="${place}"]`);

  function setRow(place, html, changed) {
    const made = document.createElement("template");
    made.innerHTML = html;
    const row = made.content.firstElementChild;
    row.classList.toggle("changed", changed);
    row.classList.toggle("chosen", place === Events.state.event);
    row.hidden = rowOf(place).hidden;
    rowOf(place).replaceWith(row);
  }

  function loaded(message) {
    taken(message);
    if (message.event === Events.state.event) Events.show(message.event, Events.state.parameter);
  }

  function refitted(message) {
    taken(message);
    Events.show(message.event, message.event === Events.state.event ? Events.state.parameter : 0);
    say(`${message.data.label}: R² ${text(message.state.numbers["R² on held-out lines"], 4)} on held-out lines`);
  }

  function firstFit(message) {
    setRow(message.first, message.row, false);
    Events.state.events[message.first] = undefined;
    if (message.first === Events.state.event) Events.show(message.first, 0);
    sayFitted(message.fitted);
  }

  function sayFitted(fitted) {
    say(`${fitted} of ${given.count} events are fitted …`);
  }

  // The worst event comes first, now that all are known.
  function allFitted(fitted) {
    fitting = false;
    working(busy ? "fitting" : null);
    const heads = byId("overview").tHead.rows[0];
    if (!heads.querySelector("[aria-sort]")) {
      [...heads.cells].find((one) => one.textContent === "fit: R²").querySelector("button").click();
    }
    say(fitted === given.count ? "all events are fitted"
      : `the fit was stopped: ${fitted} of ${given.count} events are fitted`);
  }

  function steps(counts) {
    byId("undo").disabled = !counts.undo;
    byId("redo").disabled = !counts.redo;
  }

  function failed(message) {
    const field = message.where === "category" ? "category" : "terms";
    const source = field === "terms" ? lines()[message.line - 1] : byId("category").value;
    let words = message.error;
    if (message.line && message.column && source !== undefined) {
      words += `\n${source}\n${" ".repeat(Math.max(0, message.column - 1))}^`;
    }
    byId("terms-error").textContent = words;
    say(message.line ? "the formula is invalid" : message.error);
    asked = false;
    if (again && !busy) refit();
  }

  function working(what) {
    busy = Boolean(what);
    asked = false;
    byId("stop").disabled = !busy && !fitting;
    if (what) say(`${what} …`);
    else if (again) refit();
  }

  function predicted(found) {
    const band = found.low === null ? "" : `, 90 % from ${time(found.low)} to ${time(found.high)}`;
    byId("time-at").textContent = `${time(found.seconds, 6)} by ${found.by}${band}`;
  }

  function effect(told) {
    const body = byId("effect");
    body.replaceChildren(element("h3", "Effect on the run"), ...told.verdict.map((words) => element("p", words)),
      ...told.warnings.map((words) => element("p", words, { class: "warning" })),
      element("div", null, { id: "effect-table" }));
    fillTable("effect-table", "The whole run, and its brackets by event",
      ["", "old", "new by the first fits", "new by the current fits"],
      told.seconds.map(([name, ...seconds]) => [name, ...seconds.map((value) => time(value))]));
    body.scrollIntoView({ block: "nearest" });
    say("rewritten and replayed in memory; nothing was written");
  }

  function rewrite() {
    const dilation = Number(byId("dilation").value.trim() || "NaN");
    if (dilation > 0 && Number.isFinite(dilation)) send({ do: "rewrite", dilation });
    else say("the dilation must be a number above 0");
  }

  // What is done with each kind of message, which has one of these keys.
  const KINDS = {
    error: failed,
    busy: (message) => working(message.busy),
    valid: () => { byId("terms-error").textContent = ""; },
    predicted: (message) => predicted(message.predicted),
    saved: (message) => say(`saved: ${message.saved.join(", ")}`),
    stopped: () => say("the fit was stopped; all is as it was"),
    rewrite: (message) => effect(message.rewrite),
    event: refitted,
    shown: (message) => loaded(message.shown),
    first: firstFit,
    fitting: (message) => allFitted(message.fitted),
    verdict: (message) =>
      document.querySelector(".verdict").replaceChildren(...message.verdict.map((line) => element("p", line))),
  };

  function received(message) {
    for (const [key, take] of Object.entries(KINDS)) if (key in message) take(message);
  }

  let waiting = null;
  function check() {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      fillTicks();
      sendChoices("check");
    }, 250);
  }

  function fillTicks() {
    const chosen = new Set(lines());
    for (const tick of byId("candidates").querySelectorAll("input")) tick.checked = chosen.has(tick.value);
  }

  function start() {
    byId("refit").addEventListener("click", refit);
    byId("automatic").addEventListener("click", () => {
      byId("terms").value = "";
      byId("category").value = "";
      fillTicks();
      refit();
    });
    for (const name of ["terms", "category"]) byId(name).addEventListener("input", check);
    byId("leave-out").addEventListener("click", () => leaveOut(new Set([...left, ...chosenRows()])));
    byId("put-back").addEventListener("click", () => {
      const chosen = chosenRows();
      leaveOut(new Set([...left].filter((row) => !chosen.has(row))));
    });
    byId("put-all-back").addEventListener("click", () => leaveOut(new Set()));
    byId("rewrite").addEventListener("click", rewrite);
    for (const name of ["undo", "redo", "stop", "save"]) {
      byId(name).addEventListener("click", () => send({ do: name }));
    }
    byId("effect-of").hidden = given.dilation === null;
    byId("dilation").value = given.dilation ?? "";
    if (fitting) sayFitted(given.fitted);
    else allFitted(given.fitted);
    byId("stop").disabled = !fitting;
    steps(given.steps);
    given.changed.forEach((place) => rowOf(place).classList.add("changed"));
  }

  socket.addEventListener("message", (event) => received(JSON.parse(event.data)));
  socket.addEventListener("close", () => {
    byId("gone").hidden = false;
    for (const button of document.querySelectorAll(".bar button, #controls button")) button.disabled = true;
    say("");
  });
  start();
  Events.state.shown = shown;
  Events.state.load = (event) => send({ do: "show", event });
})();
