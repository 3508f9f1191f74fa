// Puts the data of what is chosen in a list into the plots that it belongs to.
"use strict";

(() => {
  const MOST_ROWS = 100;

  function model(name) {
    for (const one of Bokeh.documents) {
      const found = one.get_model_by_name(name);
      if (found) return found;
    }
    return null;
  }

  function numbers(column) {
    if (Array.isArray(column)) return column;
    const raw = atob(column);
    const bytes = new Uint8Array(raw.length);
    for (let k = 0; k < raw.length; k++) bytes[k] = raw.charCodeAt(k);
    return Array.from(new Float32Array(bytes.buffer));
  }

  function element(tag, content) {
    const made = document.createElement(tag);
    if (content !== null) made.textContent = content;
    return made;
  }

  function fillTable(id, option, sources) {
    const table = element("table", null);
    const rows = [];
    for (const [name, columns] of Object.entries(sources)) {
      const values = Object.values(columns);
      for (let k = 0; k < values[0].length; k++) {
        rows.push([option.names[name] || name, ...values.map((one) => Number(one[k]).toPrecision(6))]);
      }
    }
    const shown = rows.slice(0, MOST_ROWS);
    const more = rows.length > shown.length ? `: the first ${shown.length} of ${rows.length}` : "";
    table.append(element("caption", option.label + more));
    const head = table.createTHead().insertRow();
    for (const one of ["", ...option.heads]) {
      const cell = element("th", one);
      cell.scope = "col";
      head.append(cell);
    }
    const body = table.createTBody();
    for (const row of shown) {
      const line = body.insertRow();
      for (const cell of row) line.append(element("td", cell));
    }
    document.getElementById(id).replaceChildren(table);
  }

  function show(given, number) {
    const option = given.options[number];
    const sources = {};
    for (const [name, columns] of Object.entries(option.sources)) {
      sources[name] = {};
      for (const [column, values] of Object.entries(columns)) sources[name][column] = numbers(values);
      model(name).data = sources[name];
    }
    for (const [axis, words] of Object.entries(option.axes)) {
      for (const one of model(given.plot)[axis]) if ("axis_label" in one) one.axis_label = words;
    }
    if (option.text) document.getElementById(`${given.select}-text`).textContent = option.text;
    fillTable(given.table, option, sources);
  }

  function begin() {
    const pages = JSON.parse(document.getElementById("swap-data").textContent);
    if (!Bokeh.documents.length || pages.some((given) => !model(given.plot))) {
      setTimeout(begin, 20);
      return;
    }
    for (const given of pages) {
      const select = document.getElementById(given.select);
      given.options.forEach((option, k) => {
        const made = element("option", option.label);
        made.value = String(k);
        select.append(made);
      });
      select.addEventListener("change", () => show(given, Number(select.value)));
      show(given, 0);
    }
    document.documentElement.dataset.ready = "yes";
  }

  begin();
})();
