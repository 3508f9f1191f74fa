// What changes a fit: formulas, options, lines left out, undo; and the requests to the server.
"use strict";

(() => {
  const { byId, element, fillTable, floats, percent, text, time } = Pages;
  const OPTIONS = ["weights", "loss", "exact_match"];
  const given = Pages.json("explore-data");
  const states = [];
  let left = new Set();
  let busy = false;
  let next = null; // the event and its choices to fit once the work in progress has ended
  let fitting = true; // whether first fits are in progress
  const known = new Set(given.fitted); // the events with a first fit

  // The choices for each changed event, and the steps to undo and redo: an event, its choices
  // (null: those of the first fit), and what was shown of that fit, which alone a reload forgets.
  const { changed, done, undone } = JSON.parse(sessionStorage.getItem(location.pathname)
    || '{ "changed": {}, "done": [], "undone": [] }');

  function keep() {
    const kept = (steps) => steps.map(({ event, choices }) => ({ event, choices }));
    sessionStorage.setItem(location.pathname,
      JSON.stringify({ changed, done: kept(done), undone: kept(undone) }));
    enable();
  }

  function enable() {
    byId("undo").disabled = busy || !done.length;
    byId("redo").disabled = busy || !undone.length;
    byId("stop").disabled = !busy && !fitting;
  }

  // The answer to a request; null if the server refuses it, has stopped it, or is gone.
  async function ask(request, choices = changed, refused = failed) {
    const body = JSON.stringify({ changed: choices, ...request });
    let answer;
    try {
      answer = await (await fetch(location.pathname, { method: "POST", body })).json();
    } catch {
      gone();
      return null;
    }
    if ("verdict" in answer) {
      document.querySelector(".verdict").replaceChildren(...answer.verdict.map((line) => element("p", line)));
    }
    if (answer.stopped) say("the fit was stopped; all is as it was");
    if (answer.error) refused(answer);
    return answer.stopped || answer.error ? null : answer;
  }

  // The answer to a request that takes long, and can be stopped.
  async function work(what, request, choices = changed) {
    busy = true;
    enable();
    say(`${what} …`);
    const answer = await ask(request, choices);
    busy = false;
    enable();
    return answer;
  }

  function gone() {
    byId("gone").hidden = false;
    for (const button of document.querySelectorAll(".bar button, #controls button")) button.disabled = true;
    say("");
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

  function refit() {
    allowed();
    next = { event: Events.state.event, chosen: choices() };
    if (!busy) fitNext();
  }

  async function fitNext() {
    const { event, chosen } = next;
    next = null;
    const answer = await work("fitting", { do: "fit", event }, { ...changed, [event]: chosen });
    if (answer) {
      done.push(stepBack(event));
      undone.length = 0;
      changed[event] = chosen;
      keep();
      refitted(answer, !next && event === Events.state.event); // else what was chosen meanwhile
    }
    if (next) fitNext();
  }

  // ---- steps

  // Returns the step that leads back to the current fit of an event.
  function stepBack(event) {
    const data = Events.state.events[event], state = states[event];
    const shown = data && state && {
      numbers: state.numbers, curves: data.curves, steps: data.steps,
      predicted: floats(data.points).slice(data.shown, 2 * data.shown),
    };
    return { event, choices: changed[event] ?? null, shown };
  }

  let steps = Promise.resolve(); // one after the other: answers may come in another order

  function step(from, to) {
    steps = steps.then(() => from.length && takeBack(from, to));
  }

  async function takeBack(from, to) {
    const { event, choices } = from.pop();
    to.push(stepBack(event));
    if (choices) changed[event] = choices;
    else delete changed[event];
    keep();
    const answer = await ask({ do: "show", event });
    if (answer) refitted(answer);
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
    const box = byId("candidates");
    box.replaceChildren(element("legend", "candidate terms"));
    for (const term of candidates(event)) {
      const tick = element("input", null, { type: "checkbox", value: term });
      const label = element("label", tick);
      tick.addEventListener("change", () => ticked(term, tick.checked));
      label.append(` ${term}`);
      box.append(label, " ");
    }
    fillTicks();
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
    form.addEventListener("submit", async (submitted) => {
      submitted.preventDefault();
      const params = fields.map((field) => Number(field.value.trim() || "NaN"));
      if (!params.every(Number.isFinite)) {
        byId("time-at").textContent = "each parameter must be a number";
        return;
      }
      const answer = await ask({ do: "predict", event: Events.state.event, params });
      if (answer) predicted(answer);
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
    allowed();
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

  function taken({ event, data, state }) {
    data.before = done.findLast((step) => step.event === event && step.shown)?.shown ?? null;
    Events.state.events[event] = data;
    states[event] = state;
    setRow(event, data.row);
  }

  const rowOf = (place) => document.querySelector(`#overview tbody tr[data-e="${place}"]`);

  function setRow(place, html) {
    const made = document.createElement("template");
    made.innerHTML = html;
    const row = made.content.firstElementChild;
    row.classList.toggle("changed", place in changed);
    row.classList.toggle("chosen", place === Events.state.event);
    row.hidden = rowOf(place).hidden;
    rowOf(place).replaceWith(row);
  }

  async function load(event) {
    const answer = await ask({ do: "show", event });
    if (!answer) return;
    taken(answer);
    if (event === Events.state.event) Events.show(event, Events.state.parameter);
  }

  function refitted(answer, shows = true) {
    taken(answer);
    if (shows) Events.show(answer.event, answer.event === Events.state.event ? Events.state.parameter : 0);
    say(`${answer.data.label}: R² ${text(answer.state.numbers["R² on held-out lines"], 4)} on held-out lines`);
  }

  // Requests the first fits that are missing, one at a time for each core.
  async function fitFirst() {
    const waiting = [...Array(given.count).keys()].filter((event) => !known.has(event));
    const refused = (answer) => say(answer.error);
    async function fitSome() {
      while (fitting && waiting.length) {
        const event = waiting.shift(), request = { do: "fit", event, first: true };
        const answer = await ask(request, changed, refused);
        if (answer) firstFit(event, answer.row);
      }
    }
    await Promise.all(Array.from({ length: given.cores }, fitSome));
    allFitted();
  }

  function firstFit(event, row) {
    known.add(event);
    if (!busy) say(`${known.size} of ${given.count} events are fitted …`);
    if (event in changed) return;
    setRow(event, row);
    Events.state.events[event] = undefined;
    if (event === Events.state.event) Events.show(event, 0);
  }

  // Sorts the worst event first, now that all fits are known.
  function allFitted() {
    fitting = false;
    enable();
    const heads = byId("overview").tHead.rows[0];
    if (!heads.querySelector("[aria-sort]")) {
      [...heads.cells].find((one) => one.textContent === "fit: R²").querySelector("button").click();
    }
    say(known.size === given.count ? "all events are fitted"
      : `the fit was stopped: ${known.size} of ${given.count} events are fitted`);
  }

  function failed({ error }) {
    byId("terms-error").textContent = error;
    say(error);
  }

  // Takes back what `failed` said.
  function allowed() {
    if (byId("terms-error").textContent) say("");
    byId("terms-error").textContent = "";
  }

  function predicted(found) {
    const band = found.low === null ? "" : `, 90 % from ${time(found.low)} to ${time(found.high)}`;
    byId("time-at").textContent = `${time(found.seconds, 6)} by ${found.by}${band}`;
  }

  function effect(told) {
    const body = byId("effect");
    body.replaceChildren(element("h3", "Effect on the run"), ...told.effect.map((words) => element("p", words)),
      ...told.warnings.map((words) => element("p", words, { class: "warning" })),
      element("div", null, { id: "effect-table" }));
    fillTable("effect-table", "The whole run, and its brackets by event",
      ["", "old", "new by the first fits", "new by the current fits"],
      told.seconds.map(([name, ...seconds]) => [name, ...seconds.map((value) => time(value))]));
    body.scrollIntoView({ block: "nearest" });
    say("rewritten and replayed in memory; nothing was written");
  }

  async function rewrite() {
    const dilation = Number(byId("dilation").value.trim() || "NaN");
    if (!(dilation > 0 && Number.isFinite(dilation))) {
      say("the dilation must be a number above 0");
      return;
    }
    const answer = await work("rewriting", { do: "rewrite", dilation, partial: !fitting });
    if (answer) effect(answer);
    if (next) fitNext();
  }

  async function save() {
    const answer = await ask({ do: "save", partial: !fitting });
    if (answer) say(`saved: ${answer.saved.join(", ")}`);
  }

  const check = Pages.delayed(250, async () => {
    fillTicks();
    const event = Events.state.event;
    const answer = await ask({ do: "check", event }, { ...changed, [event]: choices() });
    if (answer) allowed();
  });

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
    byId("undo").addEventListener("click", () => step(done, undone));
    byId("redo").addEventListener("click", () => step(undone, done));
    byId("stop").addEventListener("click", () => {
      fitting &&= busy;
      next = null;
      ask({ do: "stop" });
    });
    byId("save").addEventListener("click", save);
    byId("effect-of").hidden = given.dilation === null;
    byId("dilation").value = given.dilation ?? "";
    say(`${known.size} of ${given.count} events are fitted …`);
    enable();
    Object.keys(changed).forEach((event) => load(Number(event)));
    fitFirst();
  }

  Events.state.shown = shown;
  Events.state.load = load;
  start();
})();
