(async function () {
  // A long grid is deflated.
  async function inflated(text) {
    const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  }
  const written = document.getElementById("grid");
  if (written.type === "text/plain" && typeof DecompressionStream === "undefined") {
    document.getElementById("old").hidden = false;
    return;
  }
  const grid = JSON.parse(written.type === "text/plain" ? await inflated(written.textContent) : written.textContent);
  const element = (id) => document.getElementById(id);
  const symbol = {{ symbol|tojson }}, beside = {{ beside|tojson }}, rowsInWordsOfSetting = {{ rows_text|tojson }};
  const budget = element("budget"), rows = element("rows"), boxes = [];
  budget.max = grid.budgets.length - 1;
  rows.max = grid.rows.length - 1;
  grid.columns.forEach((column, place) => {
    const label = document.createElement("label"), box = document.createElement("input"), name = document.createElement("bdi");
    box.type = "checkbox";
    box.id = `column-${place}`;
    name.textContent = column.name;
    label.append(box, name);
    element("columns").append(label);
    box.addEventListener("change", () => { keepFactors(); show(); });
    boxes.push(box);
  });

  // What is computed from a column goes with it.
  function keepFactors() {
    grid.columns.forEach((column, place) => {
      const there = column.needs.every((name) => grid.columns.some((other, at) => other.name === name && boxes[at].checked));
      boxes[place].disabled = !there;
      if (!there) boxes[place].checked = false;
    });
  }

  function ask() {
    budget.value = grid.asked.budget;
    rows.value = grid.asked.rows;
    for (const box of boxes) box.checked = true;
    keepFactors();
    show();
  }

  function cell(tag, text, isNoise, isNumber) {
    const made = document.createElement(tag);
    made.textContent = text;
    made.className = [isNoise ? "noise" : "", isNumber ? "number" : ""].filter(Boolean).join(" ");
    return made;
  }

  function show() {
    const budgetSaid = `${symbol} = ${grid.budgets[budget.value]}${beside}`;
    const rowsSaid = `${grid.rows[rows.value].toLocaleString("en-US")} ${rowsInWordsOfSetting}`;
    element("budget-said").textContent = budgetSaid;
    element("rows-said").textContent = rowsSaid;
    budget.setAttribute("aria-valuetext", budgetSaid);
    rows.setAttribute("aria-valuetext", rowsSaid);
    const ticked = boxes.map((box) => box.checked), chosen = ticked.filter(Boolean).length;
    const found = planned(grid, ticked, Number(budget.value), Number(rows.value));
    const about = `${budgetSaid}, ${rowsSaid}, ${chosen} of ${boxes.length} columns. `;
    element("said").textContent = about + (found ? planInWords(found) : chosen ? "No release is possible with this budget." : "Tick a column.");
    const body = element("numbers").querySelector("tbody");
    body.replaceChildren(...(found ? rowsInWords(found) : []).map((line) => {
      const row = document.createElement("tr");
      line.forEach((text, place) => {
        const made = place ? cell("td", text, text === "noise" || text === "nothing", place < 6) : cell("th", text, false, false);
        if (!place) made.scope = "row";
        row.append(made);
      });
      return row;
    }));
  }

  element("choices").hidden = false;
  element("choices").addEventListener("submit", (event) => event.preventDefault());
  budget.addEventListener("input", show);
  rows.addEventListener("input", show);
  element("asked").addEventListener("click", ask);
  ask();
})();
