"use strict";
// The forecast follows its numbers, and pages show the progress of a reading. Without this script there are buttons for both.
const live = document.querySelector("form[data-live]");
if (live) {
  let waiting, asked = 0;
  live.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const mine = ++asked, shown = document.getElementById("live");
      shown.setAttribute("aria-busy", "true");
      const answer = await fetch("/forecast?" + new URLSearchParams(new FormData(live)));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("live");
      if (mine !== asked || !fresh) return;
      shown.replaceWith(fresh);
      const names = document.getElementById("mechanisms"), fit = page.getElementById("mechanisms");
      if (fit.dataset.names !== names.dataset.names) {
        fit.open = names.open;
        names.replaceWith(fit);
      }
    }, 400);
  });
}
const bar = document.querySelector("progress[data-poll]");
if (bar) {
  const look = async () => {
    const job = await (await fetch("/progress")).json();
    if (!job.running) return location.reload();
    if (job.fraction !== null) bar.value = job.fraction;
    document.getElementById("pass").textContent = `Pass ${job.passes} over the table`;
    setTimeout(look, 500);
  };
  setTimeout(look, 500);
}
