// What changes a fit: formulas, options, lines left out, undo; and the conversation with the server.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const { element, fillTable, text, percent } = Events;
  const OPTIONS = ["weights", "loss", "exact_match"];
  const given = JSON.parse(byId("explore-data").textContent);
  const states = given.events;
  const numbersFirst = states.map((one) => one.numbers);
  let left = new Set();
  let busy = false;

  const address = location.origin.replace("http:", "ws:") + location.pathname + "socket";
  const socket = new WebSocket(address);

  function send(message) {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
  }

  function say(words) {
    byId("status").textContent = words;
  }

  const lines = () => byId("terms").value.split("\n").map((one) => one.trim()).filter(Boolean);

  function choices() {
    const found = { event: Events.state.event, terms: lines(), category: byId("category").value.trim() };
    for (const name of OPTIONS) found[name] = byId(name).value;
    found.left_out = [...left].sort((a, b) => a - b);
    return found;
  }

  function refit() {
    byId("terms-error").textContent = "";
    send({ do: "refit", ...choices() });
  }

  // ---- what is shown of an event

  function candidates(event) {
    const terms = new Set(["1", ...states[Events.state.event].terms, ...event.laws.map((law) => law[1])]);
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
      const label = element("label", null);
      const tick = element("input", null, { type: "checkbox", value: term });
      tick.checked = chosen.has(term);
      tick.addEventListener("change", () => ticked(term, tick.checked));
      label.append(tick, ` ${term}`);
      box.append(label, " ");
    }
  }

  function ticked(term, on) {
    const terms = lines().filter((one) => one !== term);
    if (on) terms.push(term);
    byId("terms").value = terms.join("\n");
    check();
  }

  function fillPredict(event) {
    const form = element("form", null);
    const fields = [];
    form.append("time at ");
    for (let p = 1; p <= event.parameters; p++) {
      const label = element("label", `p${p} `);
      const field = element("input", null, { type: "text", inputmode: "decimal", size: 9, "aria-label": `p${p}` });
      fields.push(field);
      label.append(field);
      form.append(label);
    }
    const button = element("button", "predict", { type: "submit" });
    form.append(button, " ", element("output", "", { id: "predicted" }));
    form.addEventListener("submit", (submitted) => {
      submitted.preventDefault();
      const params = fields.map((field) => Number(field.value.trim() || "NaN"));
      if (!params.every(Number.isFinite)) {
        byId("predicted").textContent = "each parameter must be a number";
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
    const heads = before ? ["", "law before", "law now"] : ["", "law now"];
    const rows = Object.entries(state.numbers).map(([name, value]) =>
      [name, ...(before ? [number(name, before[name])] : []), number(name, value)]);
    fillTable("old-and-new", before ? "The law before the last step, and the law now" : "The law now",
      heads, rows, rows.length);
    if (!before) return;
    const laws = element("div", null, { class: "columns" });
    for (const [title, summary] of [["law before", event.before.summary], ["law now", event.summary]]) {
      const side = element("div", null);
      side.append(element("h3", title), element("pre", summary.join("\n")));
      laws.append(side);
    }
    byId("old-and-new").append(laws);
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
      const source = Events.model(`${name}-data`);
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
    const row = document.querySelector(`#overview tbody tr[data-e="${message.event}"]`);
    const made = document.createElement("template");
    made.innerHTML = message.data.row;
    row.replaceWith(made.content.firstElementChild);
    document.querySelector(`#overview tbody tr[data-e="${message.event}"]`)
      .classList.toggle("changed", message.state.changed);
    Events.show(message.event, message.event === Events.state.event ? Events.state.parameter : 0);
    steps(message.steps);
    say(`${message.data.label}: R² ${text(message.state.numbers["R² on unseen lines"], 4)} on unseen lines`);
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
  }

  function working(what) {
    busy = Boolean(what);
    byId("stop").disabled = !busy;
    byId("refit").disabled = busy;
    if (what) say(`${what} …`);
  }

  function predicted(found) {
    const band = found.low === null ? "" : `, nine in ten from ${text(found.low)} to ${text(found.high)} s`;
    byId("predicted").textContent = `${text(found.seconds, 6)} s by ${found.by}${band}`;
  }

  function effect(found) {
    const body = byId("effect");
    body.replaceChildren(element("h2", "Effect on the rewrite"));
    found.verdict.forEach((one) => body.append(element("p", one)));
    body.append(element("div", null, { id: "effect-table" }));
    fillTable("effect-table", "Seconds of brackets by event", ["event", "old, s", "new by the first fits, s",
      "new now, s"], found.events, found.events.length);
    say("rewritten in memory; nothing was written");
  }

  function received(message) {
    if ("error" in message) failed(message);
    else if ("busy" in message) working(message.busy);
    else if ("valid" in message) byId("terms-error").textContent = "";
    else if ("predicted" in message) predicted(message.predicted);
    else if ("saved" in message) say(`saved: ${message.saved.join(", ")}`);
    else if ("stopped" in message) say("the fit was stopped; all is as it was");
    else if ("rewrite" in message) effect(message.rewrite);
    else if ("event" in message) taken(message);
  }

  let waiting = null;
  function check() {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      fillTicks();
      send({ do: "check", ...choices() });
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
    for (const name of ["undo", "redo", "stop", "save", "rewrite"]) {
      byId(name).addEventListener("click", () => send({ do: name }));
    }
    byId("rewrite").hidden = !given.logs;
    steps(given.steps);
    states.forEach((state, k) => {
      const row = document.querySelector(`#overview tbody tr[data-e="${k}"]`);
      if (row) row.classList.toggle("changed", state.changed);
    });
  }

  socket.addEventListener("message", (event) => received(JSON.parse(event.data)));
  socket.addEventListener("close", () => {
    byId("gone").hidden = false;
    for (const button of document.querySelectorAll(".bar button, #controls button")) button.disabled = true;
    say("");
  });
  start();
  Events.state.shown = shown;
  if (document.documentElement.dataset.ready) shown(Events.state.event);
})();
