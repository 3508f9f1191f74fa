// Fills a plot with the data of the option that is chosen in the list above it.
"use strict";

(() => {
  const { byId, mapped, model } = Pages;
  const { plot, of_overview: ofOverview, options } = Pages.json("swap-data");
  const select = byId(`${plot}-of`);

  function rowsOf(option, sources) {
    const rows = [], inSeconds = model(plot).below.some((side) => side.tags.includes("seconds"));
    const words = inSeconds ? Pages.time : Pages.text;
    for (const [name, label] of Object.entries(option.names)) {
      const columns = Object.values(sources[name]);
      columns[0].forEach((_, k) => rows.push([label, ...columns.map((column) => words(column[k], 6))]));
    }
    return rows;
  }

  function show(number) {
    const option = options[number];
    const sources = mapped(option.sources, (columns) => mapped(columns, Pages.floats));
    Pages.fill(sources);
    Pages.adjust(plot, option.logarithmic, option.axes);
    byId(`${plot}-of-text`).textContent = option.text;
    Pages.fillTable(`${plot}-table`, option.label, ["", ...option.heads], rowsOf(option, sources));
  }

  Pages.whenDrawn([plot], () => {
    select.append(...options.map(({ label }, k) => Pages.element("option", label, { value: k })));
    select.addEventListener("change", () => show(Number(select.value)));
    if (ofOverview) document.addEventListener("chosen", ({ detail }) => {
      select.value = detail.event;
      show(detail.event);
      select.focus();
    });
    show(0);
    Pages.ready();
  });
})();
