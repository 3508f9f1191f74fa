// The overview: sorts by the head that is chosen, filters by name, and says which event is chosen.
"use strict";

(() => {
  const { byId } = Pages;
  const table = byId("overview");
  const field = byId("filter");
  const body = table.tBodies[0];
  const key = (row, place) => row.cells[place].dataset.v;

  function compare(x, y, sign, place) {
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
    return place === 0 ? sign * x.localeCompare(y) : sign * (Number(x) - Number(y));
  }

  function sortBy(head) {
    const place = head.cellIndex;
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const rows = [...body.rows];
    rows.sort((a, b) => compare(key(a, place), key(b, place), sign, place));
    body.append(...rows);
  }

  function filter() {
    const part = field.value.toLowerCase();
    let shown = 0;
    for (const row of body.rows) {
      row.hidden = !key(row, 0).toLowerCase().includes(part);
      shown += !row.hidden;
    }
    byId("filtered").textContent = part ? `${shown} of ${body.rows.length} events` : "";
  }

  function choose(target) {
    const cell = target.closest("td"), row = target.closest("tr");
    if (!target.closest("button") || !("e" in row.dataset)) return;
    const detail = { event: Number(row.dataset.e), parameter: Number(cell.dataset.p) || 0 };
    document.dispatchEvent(new CustomEvent("chosen", { detail }));
  }

  table.tHead.addEventListener("click", (event) => {
    const head = event.target.closest("th");
    if (head) sortBy(head);
  });
  body.addEventListener("click", (event) => choose(event.target));
  field.addEventListener("input", filter);
})();
