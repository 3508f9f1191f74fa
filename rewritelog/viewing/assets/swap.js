// Puts the data of what is chosen in a list into the plots that it belongs to.
"use strict";

(() => {
  const { byId, model } = Pages;

  function rowsOf(option, sources, plot) {
    const rows = [], inSeconds = model(plot).below.some((side) => side.tags.includes("seconds"));
    const words = inSeconds ? Pages.time : Pages.text;
    for (const [name, label] of Object.entries(option.names)) {
      const values = Object.values(sources[name]);
      for (let k = 0; k < values[0].length; k++) {
        rows.push([label, ...values.map((column) => words(column[k], 6))]);
      }
    }
    return rows;
  }

  function show(given, number) {
    const option = given.options[number];
    const sources = {};
    for (const [name, columns] of Object.entries(option.sources)) {
      sources[name] = {};
      for (const [column, values] of Object.entries(columns)) {
        sources[name][column] = Pages.floats(values);
      }
      model(name).data = sources[name];
    }
    Pages.showLegend(given.plot);
    for (const [place, words] of Object.entries(option.axes)) Pages.setLabel(given.plot, place, words);
    for (const axis of ["x", "y"]) Pages.setScale(given.plot, axis, option.logarithmic.includes(axis));
    byId(`${given.select}-text`).textContent = option.text;
    Pages.fillTable(given.table, option.label, ["", ...option.heads], rowsOf(option, sources, given.plot));
  }

  const lists = Pages.json("swap-data");
  Pages.whenDrawn(lists.map((given) => given.plot), () => {
    for (const given of lists) {
      const select = byId(given.select);
      Pages.options(select, given.options.map((option) => option.label));
      select.addEventListener("change", () => show(given, Number(select.value)));
      if (given.of_overview) byId("overview").tBodies[0].addEventListener("click", (event) => {
        if (!event.target.closest("button")) return;
        select.value = event.target.closest("tr").dataset.e;
        show(given, Number(select.value));
        select.focus();
      });
      show(given, 0);
    }
    Pages.ready();
  });
})();
